package workflow

import (
	"fmt"
	"time"

	"github.com/gopawl/pawl"
)

// EntryKind is what sort of call an entry of a journal remembers.
type EntryKind string

// The kinds of entries.
const (
	KindStep    EntryKind = "step"
	KindStepTx  EntryKind = "step-tx"
	KindSleep   EntryKind = "sleep"
	KindWait    EntryKind = "wait"    // for a signal
	KindChild   EntryKind = "child"   // another run
	KindRace    EntryKind = "race"    // which of several branches was first
	KindVersion EntryKind = "version" // which version of the code runs
	KindUndo    EntryKind = "undo"    // a step that undoes another
	KindBranch  EntryKind = "branch"  // a branch began
	KindEach    EntryKind = "each"    // a list of branches, known by the keys of their items
)

// begins reports whether a call of the kind only begins something.
func (k EntryKind) begins() bool { return k == KindBranch || k == KindEach }

// EntryState is how far the call of an entry is.
type EntryState string

// The states of entries.
const (
	EntryPending EntryState = "pending" // it waits: for its time, a signal, a child, or its next attempt
	EntryDone    EntryState = "done"
	EntryFailed  EntryState = "failed" // it ended with an error, which the function got
	EntryBegun   EntryState = "begun"  // a branch, or a list of branches, began; its own calls tell how far it is
)

// entry is a row of a journal: one call.
type entry struct {
	//lint:ignore U1000 msgpack reads its tag
	_msgpack struct{} `msgpack:",as_array"`

	Scope      string
	At         int // its place among the entries of the scope, from 0; -1 for a version
	Name       string
	Occurrence int // how many calls of that name came in the scope, with this one
	Kind       EntryKind
	State      EntryState
	Attempts   int   // that have ended
	Begun      int64 // a step that runs at most once has begun
	Started    int64
	Finished   int64
	Due        int64 // while it is pending: when to go on, 0 for no time
	Error      string
	Chain      []errorText
	Result     []byte // what the function got, encoded; where it is large it lies apart
	Apart      bool
	Size       int    // bytes of the result
	Key        []byte // fingerprint that the author gave
	Build      string
	Child      pawl.ID
	Signal     uint64 // number of the signal that a wait got

	seq uint32 // its key
}

// Entry is one call that a run has made, as its journal has it. It is to read.
type Entry struct {
	Seq        uint32 // the order in which the calls were first written
	Scope      string // "" for the function itself, or the names of branches, joined by /
	Name       string
	Occurrence int // 1 for the first call of that name in its scope
	Kind       EntryKind
	State      EntryState
	Attempts   int       // that have ended
	Started    time.Time // of the first attempt, or when it began to wait
	Finished   time.Time // zero while it is pending
	Due        time.Time // while it is pending: when it goes on, zero for no time
	Error      string    // of the last attempt that failed
	Result     []byte    // MessagePack; see pawl.DecodePayload. Nil when it failed, is pending, or was not asked for
	Bytes      int       // of the result
	Build      string    // that wrote it
	Child      pawl.ID   // the run that it waits for or waited for
}

// Step is the identity of the call: its scope, its name, and its occurrence where that is
// not the first.
func (e *Entry) Step() string { return stepName(e.Scope, e.Name, e.Occurrence) }

func stepName(scope, name string, occurrence int) string {
	if scope != "" {
		name = scope + "/" + name
	}
	if occurrence > 1 {
		name = fmt.Sprintf("%s#%d", name, occurrence)
	}
	return name
}

func (e *entry) String() string {
	return fmt.Sprintf("%s %q", e.Kind, stepName(e.Scope, e.Name, e.Occurrence))
}

// same reports whether two entries are the same call.
func (e *entry) same(other *entry) bool {
	return e.Kind == other.Kind && e.Scope == other.Scope && e.Name == other.Name && e.Occurrence == other.Occurrence
}

// soundState reports whether an entry of its kind can have its state.
func (e *entry) soundState() bool {
	switch e.State {
	case EntryFailed:
		return e.Kind != KindEach
	case EntryBegun:
		return e.Kind.begins()
	case EntryPending, EntryDone:
		return !e.Kind.begins()
	}
	return false
}

// toRetry reports whether it is a step that failed and waits for its next attempt.
func (e *entry) toRetry() bool { return e.State == EntryPending && e.Error != "" && e.Due != 0 }

// public is the entry as others may see it.
func (e *entry) public() Entry {
	return Entry{
		Seq: ordinal(e.seq), Scope: e.Scope, Name: e.Name, Occurrence: e.Occurrence, Kind: e.Kind, State: e.State,
		Attempts: e.Attempts, Started: timeOf(e.Started), Finished: timeOf(e.Finished), Due: timeOf(e.Due),
		Error: e.Error, Result: e.Result, Bytes: e.Size, Build: e.Build, Child: e.Child,
	}
}

// weight is what a call that has ended adds to the bytes of its journal: its result, or its error.
func (e *entry) weight() int64 {
	if e.State == EntryPending {
		return 0
	}
	n := e.Size + len(e.Error)
	for _, t := range e.Chain {
		n += len(t.Type) + len(t.Text)
	}
	return int64(n)
}

// fail ends an entry with an error.
func (e *entry) fail(err error, now time.Time) {
	e.State, e.Finished, e.Due = EntryFailed, now.UnixNano(), 0
	e.Error, e.Chain, e.Result = textOf(err), chainOf(err), nil
}

// finish ends an entry with a result.
func (e *entry) finish(result []byte, now time.Time) {
	e.State, e.Finished, e.Due = EntryDone, now.UnixNano(), 0
	e.Result, e.Size, e.Error, e.Chain = result, len(result), "", nil
}

// err is what the function gets of an entry that failed.
func (e *entry) err() error {
	return &StepError{Step: stepName(e.Scope, e.Name, e.Occurrence), Text: e.Error, Attempts: e.Attempts, chain: e.Chain}
}
