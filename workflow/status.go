package workflow

import (
	"time"

	"github.com/gopawl/pawl"
)

// Status is the state of a run.
type Status string

// The open statuses, and those of a run that has ended.
const (
	Running  Status = "running"  // it executes, or is about to
	Sleeping Status = "sleeping" // until a time: a sleep, or the retry of a step
	Waiting  Status = "waiting"  // for a signal, a child, the end of another run, or its turn to begin, see MaxOpen and StartRate
	Paused   Status = "paused"   // by an operator
	Blocked  Status = "blocked"  // its code does not fit its journal
	Dead     Status = "dead"     // its job is dead or gone

	Done       Status = "done"
	Failed     Status = "failed"
	Cancelled  Status = "cancelled"
	Terminated Status = "terminated"
)

// Ended reports whether a run with that status has ended.
func (s Status) Ended() bool {
	switch s {
	case Done, Failed, Cancelled, Terminated:
		return true
	}
	return false
}

// Info describes a run. It is read-only.
type Info struct {
	Run        pawl.ID // the run, which is also its job
	Flow       string
	ID         string            // given by its starter
	Key        string            // of its start, "" for none
	Attributes map[string]string // nil for none
	Status     Status
	Queue      string
	Build      string // the build that ran it last, "" before the first execution

	Created time.Time
	Ended   time.Time     // zero while it is open
	Retain  time.Duration // how long it is kept after its end; 0 means for good

	// Cancelling is the reason if the run is being cancelled or terminated.
	Cancelling string

	Deadline time.Time // when it is cancelled, zero for never
	Due      time.Time // when a sleeping or waiting run continues by itself, zero for never; a paused run has none
	Waits    []string  // names of the signals that it waits for
	Place    string    // what has too many open runs for this run to begin: "key tenant/42" or "flow order"; see MaxOpen
	Rate     string    // what has too many starts for this run to begin before Due, or now if it is paused: "key tenant/42" or "flow order"; see StartRate
	Holders  []pawl.ID // some of the runs that it waits for, at most pawl.MaxHolders; a list of runs has none
	Declared []string  // names of the signals that its flow declares, in order; nil if it declares none
	Unread   int       // signals that were received and not consumed
	Steps    int       // entries in its journal, when it was last suspended or blocked, or ended
	Bytes    int64     // size of their results and errors at that time
	Restarts int
	Error    string  // of a failed, blocked or dead run, or of the step that will be retried; or the children that an undo waits for, or the condition of a shared value
	Parent   pawl.ID // the run that started it; zero if none
	Forked   pawl.ID // the run that it was forked from; zero if none
}
