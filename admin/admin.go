package admin

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
)

// MaxFound is how many IDs one [Admin.FindIDs] returns.
const MaxFound = 20

// How many jobs one [Admin.Do] takes.
const (
	MaxIDs    = 1000
	MaxDryIDs = pawl.MaxBatchJobs // in a dry run
)

// Stats is a queue at one moment, and who has it.
type Stats struct {
	bolt.Stats
	Process *Process // that has the file open; nil for the file of a stopped app

	// Done is how many runs of each queue have ended since a [Server] began to serve; nil
	// without one.
	Done map[string]Done
}

// Process is an app that serves its queue.
type Process struct {
	PID     int
	Name    string // of the program
	Version string // of the library in it
	Started time.Time
}

// Done counts the runs that ended.
type Done struct {
	Succeeded, Failed int64
}

// Filter chooses jobs. The zero value chooses all. It is a [pawl.Condition].
type Filter struct {
	pawl.Filter

	// Queues, Kinds, States and Reasons choose jobs that have one of the values; an empty list
	// chooses any. One value is found faster by the field of pawl.Filter.
	Queues, Kinds []string
	States        []pawl.State
	Reasons       []pawl.Reason

	// Error chooses jobs whose last error has this text in it, in upper or lower case.
	Error string

	// Payload chooses jobs by what is in their payload, when all these terms hold:
	// "user.id=42" compares a field with a text, a number, true, false or null,
	// "user.id!=42" is the opposite, "user.name~ada" finds a text in a field, and "user.id"
	// asks only that the field is there. A number in the path is a place in a list.
	Payload []string

	// Since and Until choose jobs that were created in [Since, Until); zero is any time.
	Since, Until time.Time

	// Before chooses jobs that are in their state since before that time: see [StateSince].
	Before time.Time
}

// Detail is how much of each job a list has.
type Detail uint8

const (
	Summary  Detail = iota // all but the payload and all but the last entry of the history
	IDs                    // the ID, queue, kind and state alone
	Whole                  // everything
	Payloads               // a summary and the payload
)

var detailNames = []string{Summary: "summary", IDs: "ids", Whole: "whole", Payloads: "payloads"}

// MarshalText implements encoding.TextMarshaler.
func (d Detail) MarshalText() ([]byte, error) { return nameOf(detailNames, int(d)), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Detail) UnmarshalText(text []byte) error {
	at, err := named("detail", detailNames, text)
	*d = Detail(at)
	return err
}

// nameOf is names[i], or a number that the app refuses.
func nameOf(names []string, i int) []byte {
	if i < len(names) {
		return []byte(names[i])
	}
	return strconv.AppendInt(nil, int64(i), 10)
}

// named is the place of a name in names; "" is the first.
func named(field string, names []string, text []byte) (int, error) {
	if len(text) == 0 {
		return 0, nil
	}
	at := slices.Index(names, string(text))
	if at < 0 {
		return 0, invalid(field, "%q is none of %s", clip(string(text)), strings.Join(names, ", "))
	}
	return at, nil
}

// Query is one page of a list.
type Query struct {
	Filter
	Detail Detail
	After  string // where the page begins: Next of the one before, "" for the first
	Limit  int    // the most jobs of a page; 0 means [DefaultLimit], and more than [MaxLimit] are never given
}

// Limits of a page.
const (
	DefaultLimit = 50
	MaxLimit     = 1000
)

// Page is a part of a list of jobs, in the order of [bolt.Queue.Jobs].
type Page struct {
	Jobs []bolt.Listed
	Next string // where the next page begins, "" behind the last
}

// Verb is what is done to a job.
type Verb string

// The verbs of [Admin.Do].
const (
	Retry   Verb = "retry"   // a dead job becomes ready
	Cancel  Verb = "cancel"  // a job that waits dies, one that runs is asked to end: ErrCancelRequested
	Delete  Verb = "delete"  // a dead job or a completed record is removed for good
	RunNow  Verb = "run-now" // a delayed job becomes ready
	Forward Verb = "forward" // a dead job becomes a job of another queue of the file
)

// Action is a verb with its settings.
type Action struct {
	Verb         Verb
	KeepAttempts bool   // Retry goes on counting where the job stopped
	Force        bool   // Cancel ends the job of a workflow run too, and leaves the run dead with nothing undone
	Queue        string // that Forward enqueues on; "" means dlq.FailedJobs

	// If chooses among the jobs, in the transaction that changes them. What a list said of
	// them before does not count. Nil chooses all.
	If *Filter

	// DryRun returns what the action would return now, decided by the same code, and changes
	// nothing. Jobs that share a unique key are judged together within one call.
	DryRun bool
}

// Event is what happened to a job.
type Event struct {
	pawl.Event
	Missed int64 // how many events before this one were lost to a slow listener
}
