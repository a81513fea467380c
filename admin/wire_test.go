package admin

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// sent returns v as it arrives at the other side: as an answer, and as a request.
func sent[T any](t *testing.T, v T) T {
	t.Helper()
	text, err := encode(v, PayloadBase64)
	require.NoError(t, err)
	var answer, request T
	require.NoError(t, decodeAnswer(text, &answer), "%s", text)
	require.NoError(t, decodeRequest(text, &request), "%s", text)
	require.Equal(t, answer, request)
	return answer
}

// Rule: a query means the same to the app and to the client, with every field set and with any
// bytes.
func TestQueryTravelsUnchanged(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	all := Query{
		Filter: Filter{
			Filter: pawl.Filter{State: pawl.Dead, Queue: "q\xff&", Kind: "k\n", Reason: pawl.ReasonPoison, DiedSince: at.Add(-1), DiedBefore: at, Order: pawl.OrderDied, Newest: true},
			Queues: []string{"a", "b\xff"}, Kinds: []string{"k", "l"},
			States: []pawl.State{pawl.Dead, pawl.Ready}, Reasons: []pawl.Reason{pawl.ReasonPoison, "r"},
			Error: "time\x00out", Payload: []string{"a=1", "b~x y", "a=1"}, Since: at.Add(1), Until: at.Add(2), Before: at.Add(3),
		},
		Detail: Whole, After: "x", Limit: 1000,
	}
	for _, q := range []Query{{}, {Limit: 7, After: "a b&c=d"}, {Detail: IDs}, all} {
		require.Equal(t, q, sent(t, q))
	}
	action := doRequest{Action{Verb: Forward, KeepAttempts: true, Force: true, Queue: "q\xff", If: &all.Filter, DryRun: true}, []pawl.ID{{1}, {2}}}
	require.Equal(t, action, sent(t, action))
}

// Rule: an answer is the same value on both sides: empty and missing lists, maps, errors, and
// times outside RFC 3339.
func TestAnswersTravelUnchanged(t *testing.T) {
	far := time.Date(12026, 1, 2, 3, 4, 5, 6, time.UTC)
	for _, s := range []Stats{
		{},
		{
			Stats:   pawl.Stats{Queues: []pawl.QueueStats{{Name: "q\xff", Counts: pawl.Counts{Ready: 1, Leased: 2}, Paused: true, Served: true, Oldest: far}}, Storage: pawl.Storage{Path: "p", Format: 3, Size: 1 << 40, Free: -1, Max: 1 << 41}},
			Process: &Process{1, "n", "v", far},
			Done:    map[string]Done{"q\xff": {1, 2}, "": {3, 4}},
			Totals:  &driver.Totals{Changes: 5, Enqueued: 1, Succeeded: 2, Retried: 3, Died: 4},
		},
		{Stats: pawl.Stats{Queues: []pawl.QueueStats{}}, Done: map[string]Done{}},
	} {
		require.Equal(t, s, sent(t, s))
	}
	for _, run := range []WorkflowRun{{}, {Input: []byte{}, Published: map[string][]byte{"k": nil, "l": {}}}} {
		require.Equal(t, run, sent(t, run))
	}
	errs := sent(t, outcomes{[]error{nil, fmt.Errorf("job 7: %w", pawl.ErrNotFound), errors.New("other")}}).Errors
	require.Len(t, errs, 3)
	require.NoError(t, errs[0])
	require.ErrorIs(t, errs[1], pawl.ErrNotFound)
	require.EqualError(t, errs[2], "other")
}

// Rule: missing, empty and full payloads stay distinct; a job that was listed briefly stays
// brief.
func TestJobsTravelUnchanged(t *testing.T) {
	id := pawl.NewID(noon)
	for _, e := range []*pawl.Envelope{
		{ID: id, Kind: "k\xff", Queue: "q", State: pawl.Dead},
		{ID: id, Kind: "k", Created: noon, MaxRetries: 3},
		{ID: id, Kind: "k", Created: noon, Payload: []byte{}},
		{ID: id, Kind: "k", Created: noon, Payload: []byte{0xc1}, Headers: map[string]string{"a": "\xff"}},
	} {
		page := Page{Jobs: []pawl.Listed{{Job: e}}, Next: "n"}
		require.Equal(t, page, sent(t, page))
		require.Equal(t, e, sent(t, e))
	}
}

// Rule: the JSON of a request has the names of its Go fields in snake case, including those of
// embedded structs; renaming a field fails this test.
func TestWireNames(t *testing.T) {
	for name, want := range map[string]string{
		"ID": "id", "IDs": "ids", "NewID": "new_id", "DiedSince": "died_since", "KeepAttempts": "keep_attempts", "PID": "pid", "If": "if", "N": "n",
	} {
		require.Equal(t, want, snake(name))
	}
	text, err := encode(doRequest{Action{Verb: Retry}, []pawl.ID{{15: 1}}}, PayloadNone)
	require.NoError(t, err)
	require.Equal(t, `{"verb":"retry","keep_attempts":false,"force":false,"queue":"","if":null,"dry_run":false,"ids":["00000000-0000-0000-0000-000000000001"]}`, strings.TrimSpace(string(text)))
}
