package workflow

import (
	"time"

	"github.com/gopawl/pawl"
)

// Status is where a run stands.
type Status string

// The open statuses, and those in which a run has ended.
const (
	Running  Status = "running"  // it runs, or is about to
	Sleeping Status = "sleeping" // until a time: a sleep, or a step that is tried again
	Waiting  Status = "waiting"  // for a signal or a child
	Paused   Status = "paused"   // by an operator
	Blocked  Status = "blocked"  // its code does not fit its journal
	Dead     Status = "dead"     // its job is a dead letter, or is gone

	Done       Status = "done"
	Failed     Status = "failed"
	Cancelled  Status = "cancelled"
	Terminated Status = "terminated"
)

// Ended reports whether a run in that status is over.
func (s Status) Ended() bool {
	switch s {
	case Done, Failed, Cancelled, Terminated:
		return true
	}
	return false
}

// Info is what is known of a run. It is to read.
type Info struct {
	Run    pawl.ID // the run, and its job
	Flow   string
	ID     string // that its starter gave it
	Status Status
	Queue  string
	Build  string // which ran it last, "" before the first

	Created time.Time
	Ended   time.Time     // zero while it is open
	Retain  time.Duration // how long it is kept once it has ended

	// Cancelling says that it is to be cancelled or terminated, and why.
	Cancelling string

	Due      time.Time // while it sleeps or waits: when it goes on by itself, zero for never
	Waits    []string  // names of the signals that it waits for
	Declared []string  // names of the signals that its flow declares, in order; nil when it declares none
	Unread   int       // signals that came and were not consumed
	Steps    int       // entries in its journal, when it was last suspended or has ended
	Bytes    int64     // of their results and errors, then
	Restarts int
	Error    string  // of a run that failed, is blocked or dead, and of the step that is to be tried again
	Parent   pawl.ID // the run that started it, zero for none
	Forked   pawl.ID // the run that it was forked from, zero for none
}
