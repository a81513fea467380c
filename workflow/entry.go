package workflow

import (
	"fmt"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// EntryKind is the sort of call that an entry of a journal records.
type EntryKind string

// The kinds of entries.
const (
	KindStep    EntryKind = "step"
	KindStepTx  EntryKind = "step-tx"
	KindSleep   EntryKind = "sleep"
	KindWait    EntryKind = "wait"    // waits for a signal
	KindChild   EntryKind = "child"   // runs another flow
	KindSelect  EntryKind = "select"  // which of several cases was ready
	KindRace    EntryKind = "race"    // which of several branches was first
	KindCancel  EntryKind = "cancel"  // a branch was cancelled
	KindAll     EntryKind = "all"     // all branches succeeded, or which failed first
	KindVersion EntryKind = "version" // which version of the code runs
	KindUndo    EntryKind = "undo"    // a step that undoes another
	KindBranch  EntryKind = "branch"  // a branch began
	KindEach    EntryKind = "each"    // a list of branches, identified by the keys of their items
	KindDecide  EntryKind = "decide"  // a value that was decided once

	KindShare     EntryKind = "share"     // a value for several branches, with its initial value
	KindChange    EntryKind = "change"    // a branch changed a shared value
	KindCondition EntryKind = "condition" // a branch waits for a shared value
)

// begins reports whether a call of the kind only begins something.
func (k EntryKind) begins() bool { return k == KindBranch || k == KindEach }

// abandons reports whether a call of the kind may end branches early.
func (k EntryKind) abandons() bool { return k == KindRace || k == KindCancel || k == KindAll }

// receives reports whether a call of the kind may receive a signal.
func (k EntryKind) receives() bool { return k == KindWait || k == KindSelect }

// EntryState is the progress of an entry's call.
type EntryState string

// The states of entries.
const (
	EntryPending EntryState = "pending" // it waits for its time, a signal, a child, or its next attempt
	EntryDone    EntryState = "done"
	EntryFailed  EntryState = "failed" // it ended with an error, which the function received
	EntryBegun   EntryState = "begun"  // a branch, a list of branches, or an UndoWith began; its own calls show its progress
)

// entry is a row of a journal: one call.
type entry struct {
	//lint:ignore U1000 msgpack reads its tag
	_msgpack struct{} `msgpack:",as_array"`

	Scope      string
	At         int // its position among the entries of the scope, from 0; -1 for a version
	Name       string
	Occurrence int // 1 for the first call of that name in the scope, and so on
	Kind       EntryKind
	State      EntryState
	Attempts   int   // attempts that have ended
	Begun      int64 // when an at-most-once step began
	Started    int64
	Finished   int64
	Due        int64 // when a pending entry continues, 0 for no time
	Error      string
	Chain      []errorText
	Result     []byte // what the function received, encoded; a large result is stored apart
	Apart      bool
	Size       int    // size of the result
	Key        []byte // fingerprint given by the author
	Build      string
	Child      pawl.ID
	Signal     uint64 // number of the signal that a wait received
	Order      uint64 // number of the change of a shared value that the call made; 0 for none

	seq     uint32   // its key
	works   bool     // an attempt runs that may append; guarded by the lock of the execution
	appends *appends // what that attempt has appended; nil if nothing
}

// Entry is one call that a run has made, as recorded in its journal. It is read-only.
type Entry struct {
	Seq        uint32 // the order in which the calls were first written
	Scope      string // "" for the function itself, or the names of branches, joined by /
	Name       string
	Occurrence int // 1 for the first call of that name in its scope
	Kind       EntryKind
	State      EntryState
	Attempts   int       // attempts that have ended
	Started    time.Time // start of the first attempt, or of the wait
	Finished   time.Time // zero while it is pending
	Due        time.Time // when a pending entry continues, zero for no time
	Error      string    // error of the last failed attempt
	Result     []byte    // MessagePack; see driver.DecodePayload. Nil if it failed, is pending, or was not requested
	Bytes      int       // size of the result
	Build      string    // the build that wrote it
	Child      pawl.ID   // the child run
}

// Selected returns which case the entry of a [Select] took: "signal approved", "branch search", "shared ramps", or "timer".
// It returns "" for other entries and for those without a Result. The Result of a Select is a map with the case, and with the
// value of its signal.
func (e *Entry) Selected() string {
	var s struct {
		Case string `msgpack:"case"`
	}
	if e.Kind != KindSelect || driver.DecodeKnown(e.Result, &s) != nil {
		return ""
	}
	return s.Case
}

// Step returns the identity of the call: its scope, its name, and its occurrence unless that is
// the first.
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
		return e.Kind.begins() || e.Kind == KindUndo
	case EntryPending, EntryDone:
		return !e.Kind.begins()
	}
	return false
}

// toRetry reports whether the entry is a failed step that waits for its next attempt.
func (e *entry) toRetry() bool { return e.State == EntryPending && e.Error != "" && e.Due != 0 }

// public returns the entry for callers outside the package.
func (e *entry) public() Entry {
	return Entry{
		Seq: ordinal(e.seq), Scope: e.Scope, Name: e.Name, Occurrence: e.Occurrence, Kind: e.Kind, State: e.State,
		Attempts: e.Attempts, Started: timeOf(e.Started), Finished: timeOf(e.Finished), Due: timeOf(e.Due),
		Error: e.Error, Result: e.Result, Bytes: e.Size, Build: e.Build, Child: e.Child,
	}
}

// weight returns how many bytes a call that has ended adds to its journal: its result or its
// error.
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

// err returns what the function receives for a failed entry.
func (e *entry) err() error {
	return &StepError{Step: stepName(e.Scope, e.Name, e.Occurrence), Text: e.Error, Attempts: e.Attempts, chain: e.Chain}
}
