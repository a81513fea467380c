package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/workflow"
)

// filled sets every field of a struct to a distinct value, so that a lost field is noticed,
// including fields added to package workflow later.
func filled[T any](t *testing.T) (v T) {
	t.Helper()
	all := reflect.ValueOf(&v).Elem()
	for i := range all.NumField() {
		field, n := all.Field(i), i+1
		switch value := field.Addr().Interface().(type) {
		case *string:
			*value = fmt.Sprintf("text %d \xff", n)
		case *pawl.ID:
			*value = pawl.ID{15: byte(n)}
		case *time.Time:
			*value = noon.Add(time.Duration(n) * time.Nanosecond)
		case *[]string:
			*value = []string{fmt.Sprint(n), "\xff"}
		case *map[string]string:
			*value = map[string]string{"name": fmt.Sprint(n)}
		case *[]pawl.ID:
			*value = []pawl.ID{{15: byte(n)}, {14: byte(n)}}
		case *[]byte:
			*value = []byte{0xc4, 1, byte(n)}
		case *workflow.Status:
			*value = workflow.Blocked
		default:
			switch {
			case field.CanInt():
				field.SetInt(int64(n))
			case field.CanUint():
				field.SetUint(uint64(n))
			case field.Kind() == reflect.String:
				field.SetString(fmt.Sprint(n))
			default:
				require.Fail(t, "a field of a type that this test does not know", "%s", all.Type().Field(i).Name)
			}
		}
	}
	return v
}

// Rule: JSON preserves every field of a run, its journal and its values.
func TestWorkflowsTravelWhole(t *testing.T) {
	want := &WorkflowRun{
		Info:      filled[workflow.Info](t),
		Journal:   []workflow.Entry{filled[workflow.Entry](t), {Seq: 2, Error: "it cannot be read"}},
		Streams:   []workflow.StreamInfo{filled[workflow.StreamInfo](t)},
		Input:     []byte{0xc0},
		Output:    []byte{7},
		Signals:   []workflow.Pending{{Name: "a \xff", N: 1, Bytes: 1, Payload: []byte{0xc0}}, {Name: "b", N: 2, Bytes: 999}},
		Published: map[string][]byte{"k \xff": {0xc2}},
	}
	require.Equal(t, want, sent(t, want))
	page := workflow.Listing{Runs: []workflow.Info{want.Info}, Next: "n"}
	require.Equal(t, page, sent(t, page))
	items := streamItems{[]workflow.Item[[]byte]{{N: 7, Skipped: 2, At: noon, Value: []byte{0xc0}, Step: "a", Attempt: 3}}}
	require.Equal(t, items, sent(t, items))
}

// Rule: the JSON of a run has the names that programs know, strings for times, and values as
// JSON.
func TestWorkflowJSON(t *testing.T) {
	w := &WorkflowRun{
		Info: workflow.Info{Run: pawl.ID{15: 1}, Flow: "order", ID: "1", Status: workflow.Waiting, Queue: "q", Created: noon, Waits: []string{"approved"}, Declared: []string{"approved", "paid"}, Retain: time.Hour},
		Journal: []workflow.Entry{{
			Seq: 1, Scope: "eu", Name: "reserve", Occurrence: 2, Kind: workflow.KindStep, State: workflow.EntryDone, Attempts: 1,
			Started: noon, Finished: noon.Add(1500 * time.Millisecond), Bytes: 1, Build: "b", Result: []byte{42},
		}},
		Streams: []workflow.StreamInfo{{Name: "lines", First: 2, Last: 3, Bytes: 80}},
		Input:   []byte{7},
	}
	text, err := json.Marshal(WorkflowDetailOf(w, PayloadAuto))
	require.NoError(t, err)
	at := Stamp{noon}.String()
	require.JSONEq(t, `{"run":"00000000-0000-0000-0000-000000000001","flow":"order","id":"1","status":"waiting","queue":"q","build":null,
		"created_at":"`+at+`","ended_at":null,"retain":"1h0m0s","cancelling":null,"deadline_at":null,"due_at":null,"waits_for":["approved"],"key":null,"place":null,"place_holders":[],"rate":null,"unread_signals":0,"declared_signals":["approved","paid"],
		"steps":0,"value_bytes":0,"restarts":0,"error":null,"parent":null,"attributes":{},"forked_from":null,
		"input":{"size_bytes":1,"encoding":"messagepack","value":7,"base64":null,"hex":null},"output":null,
		"journal":[{"seq":1,"step":"eu/reserve#2","scope":"eu","name":"reserve","occurrence":2,"kind":"step","state":"done","attempts":1,
			"started_at":"`+at+`","finished_at":"`+Stamp{noon.Add(1500 * time.Millisecond)}.String()+`","took":"1.5s","due_at":null,"error":null,
			"bytes":1,"build":"b","child":null,"result":{"size_bytes":1,"encoding":"messagepack","value":42,"base64":null,"hex":null}}],
		"streams":[{"name":"lines","first":2,"last":3,"bytes":80}],
		"signals":[],"published":[]}`, string(text))
}

// Rule: a mismatch of a workflow and its journal reaches the client with all its fields.
func TestMismatchKeepsItsFields(t *testing.T) {
	want := filled[workflow.DeterminismError](t)
	for _, err := range []error{&want, fmt.Errorf("run 7: %w", &want)} {
		p, status := problemOf(err)
		require.Equal(t, codeMismatch, p.Code)
		require.Equal(t, 409, status)
		var got *workflow.DeterminismError
		require.True(t, errors.As(overWire(t, err), &got))
		require.Equal(t, want, *got)
	}
}
