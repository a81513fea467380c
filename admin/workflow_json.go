package admin

import (
	"maps"
	"slices"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/workflow"
)

// Workflow is one workflow run in JSON. Its field names are stable: fields may be added, and
// none is renamed. A field that does not apply to a run is null. Texts, times and durations have
// the form that they have in [Job]. [WorkflowOf] returns a Workflow.
type Workflow struct {
	Run           string          `json:"run"` // the ID of its job
	Flow          Text            `json:"flow"`
	ID            Text            `json:"id"`     // the ID from its starter
	Status        string          `json:"status"` // "" for an unreadable run: error has the reason
	Queue         Text            `json:"queue"`
	Build         *Text           `json:"build"` // the build that ran it last
	CreatedAt     Stamp           `json:"created_at"`
	EndedAt       Stamp           `json:"ended_at"`
	Retain        Span            `json:"retain"` // null: forever
	Cancelling    *Text           `json:"cancelling"`
	DeadlineAt    Stamp           `json:"deadline_at"`
	DueAt         Stamp           `json:"due_at"` // when it continues by itself
	WaitsFor      []Text          `json:"waits_for"`
	Key           *Text           `json:"key"`
	Place         *Text           `json:"place"`         // what has too many open runs for it to begin
	PlaceHolders  []string        `json:"place_holders"` // some of the runs that it waits for then; empty in a list
	Rate          *Text           `json:"rate"`          // what has too many starts for it to begin before due_at
	UnreadSignals int             `json:"unread_signals"`
	Declared      []Text          `json:"declared_signals"` // empty: its flow accepts any
	Steps         int             `json:"steps"`
	ValueBytes    int64           `json:"value_bytes"`
	Restarts      int             `json:"restarts"`
	Error         *Text           `json:"error"`
	Parent        *string         `json:"parent"`
	Attributes    map[string]Text `json:"attributes"`
	ForkedFrom    *string         `json:"forked_from"`
}

// WorkflowOf returns a run as JSON.
func WorkflowOf(i workflow.Info) Workflow {
	text := func(name string) Text { return Text(name) }
	w := Workflow{
		Run: i.Run.String(), Flow: Text(i.Flow), ID: Text(i.ID), Key: textOrNull(i.Key), Status: string(i.Status), Queue: Text(i.Queue),
		Build: textOrNull(i.Build), CreatedAt: Stamp{i.Created}, EndedAt: Stamp{i.Ended}, Retain: Span(i.Retain),
		Cancelling: textOrNull(i.Cancelling), DeadlineAt: Stamp{i.Deadline}, DueAt: Stamp{i.Due}, WaitsFor: each(i.Waits, text),
		Place: textOrNull(i.Place), PlaceHolders: each(i.Holders, pawl.ID.String), Rate: textOrNull(i.Rate), Attributes: make(map[string]Text), UnreadSignals: i.Unread, Declared: each(i.Declared, text),
		Steps: i.Steps, ValueBytes: i.Bytes, Restarts: i.Restarts, Error: textOrNull(i.Error),
		Parent: idOrNull(i.Parent), ForkedFrom: idOrNull(i.Forked),
	}
	for name, value := range i.Attributes {
		w.Attributes[name] = Text(value)
	}
	return w
}

// WorkflowCounts is a [workflow.Counts] in JSON, with the conventions of [Workflow].
type WorkflowCounts struct {
	Active     int  `json:"active"` // neither paused, blocked nor ended
	Paused     int  `json:"paused"`
	Blocked    int  `json:"blocked"`
	Done       int  `json:"done"`
	Failed     int  `json:"failed"`
	Cancelled  int  `json:"cancelled"`
	Terminated int  `json:"terminated"`
	Damaged    int  `json:"damaged"`
	More       bool `json:"more"` // there are more runs, which were not counted
}

func idOrNull(id pawl.ID) *string {
	if id.IsZero() {
		return nil
	}
	text := id.String()
	return &text
}

// WorkflowStep is one entry of the journal of a run in JSON, with the conventions of [Workflow].
type WorkflowStep struct {
	Seq        uint32  `json:"seq"`
	Step       Text    `json:"step"` // scope, name and occurrence, as Fork accepts it
	Scope      Text    `json:"scope"`
	Name       Text    `json:"name"`
	Occurrence int     `json:"occurrence"`
	Kind       string  `json:"kind"`
	State      string  `json:"state"`
	Attempts   int     `json:"attempts"`
	StartedAt  Stamp   `json:"started_at"`
	FinishedAt Stamp   `json:"finished_at"`
	Took       Span    `json:"took"`   // null while the step is pending
	DueAt      Stamp   `json:"due_at"` // when a pending step continues by itself
	Error      *Text   `json:"error"`  // the error of the last failed attempt
	Bytes      int     `json:"bytes"`  // size of its result
	Build      *Text   `json:"build"`  // the build that wrote the entry
	Child      *string `json:"child"`  // the run that it waits for or waited for

	// Result is null if there is none, or if it was not requested.
	Result *Payload `json:"result"`
}

// WorkflowStepOf returns an entry of a journal as JSON.
func WorkflowStepOf(e *workflow.Entry, form PayloadForm) WorkflowStep {
	s := WorkflowStep{
		Seq: e.Seq, Step: Text(e.Step()), Scope: Text(e.Scope), Name: Text(e.Name), Occurrence: e.Occurrence,
		Kind: string(e.Kind), State: string(e.State), Attempts: e.Attempts,
		StartedAt: Stamp{e.Started}, FinishedAt: Stamp{e.Finished}, DueAt: Stamp{e.Due},
		Error: textOrNull(e.Error), Bytes: e.Bytes, Build: textOrNull(e.Build), Child: idOrNull(e.Child),
		Result: valueOf(e.Result, form),
	}
	if !e.Started.IsZero() && !e.Finished.IsZero() {
		s.Took = Span(e.Finished.Sub(e.Started))
	}
	return s
}

// WorkflowValue is a value with its name: a signal, or what a run has published. After many
// large signals, the rest have only their size.
type WorkflowValue struct {
	Name   Text   `json:"name"`
	Number uint64 `json:"number"` // of a signal: its position in the order of arrival
	Payload
}

// WorkflowStream is a stream of a run in JSON.
type WorkflowStream struct {
	Name  Text   `json:"name"`
	First uint64 `json:"first"` // number of the first item that is kept
	Last  uint64 `json:"last"`
	Bytes int64  `json:"bytes"` // of the items that are kept
}

// WorkflowItem is an item of a stream in JSON.
type WorkflowItem struct {
	Number  uint64 `json:"number"`
	Skipped uint64 `json:"skipped"` // items directly before it that are no longer kept
	At      Stamp  `json:"at"`
	Step    *Text  `json:"step"`    // the step that appended it
	Attempt uint64 `json:"attempt"` // number of the first item of that attempt of the step, 0 without a step
	Payload
}

// WorkflowItemOf returns an item of a stream as JSON.
func WorkflowItemOf(i *workflow.Item[[]byte], form PayloadForm) WorkflowItem {
	return WorkflowItem{i.N, i.Skipped, Stamp{i.At}, textOrNull(i.Step), i.Attempt, *runValueOf(i.Value, form)}
}

// WorkflowDetail is a run with its journal in JSON. Input, output, signals, and published are null if they were
// not requested.
type WorkflowDetail struct {
	Workflow
	Input     *Payload         `json:"input"`
	Output    *Payload         `json:"output"`
	Journal   []WorkflowStep   `json:"journal"`
	Streams   []WorkflowStream `json:"streams"`
	Signals   []WorkflowValue  `json:"signals"`
	Published []WorkflowValue  `json:"published"`
}

// WorkflowDetailOf returns a run and its values as JSON.
func WorkflowDetailOf(w *WorkflowRun, form PayloadForm) WorkflowDetail {
	d := WorkflowDetail{Workflow: WorkflowOf(w.Info), Input: valueOf(w.Input, form), Output: valueOf(w.Output, form)}
	d.Journal = each(w.Journal, func(e workflow.Entry) WorkflowStep { return WorkflowStepOf(&e, form) })
	d.Streams = each(w.Streams, func(s workflow.StreamInfo) WorkflowStream {
		return WorkflowStream{Text(s.Name), s.First, s.Last, s.Bytes}
	})
	if w.Input == nil {
		return d
	}
	d.Signals = each(w.Signals, func(s workflow.Pending) WorkflowValue {
		v := WorkflowValue{Name: Text(s.Name), Number: s.N, Payload: Payload{Size: s.Bytes, Encoding: "unknown"}}
		if s.Payload != nil {
			v.Payload = *runValueOf(s.Payload, form)
		}
		return v
	})
	d.Published = each(slices.Sorted(maps.Keys(w.Published)), func(key string) WorkflowValue {
		return WorkflowValue{Name: Text(key), Payload: *runValueOf(w.Published[key], form)}
	})
	return d
}

// valueOf returns a value of a run that may be missing, or encoded by a codec of the app.
func valueOf(b []byte, form PayloadForm) *Payload {
	if b == nil {
		return nil
	}
	return runValueOf(b, form)
}

func runValueOf(b []byte, form PayloadForm) *Payload {
	p := payloadOf(b, form)
	if p != nil && workflow.Encoded(b) {
		p.Encoding = "codec"
	}
	return p
}
