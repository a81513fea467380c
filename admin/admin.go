package admin

import (
	"context"
	"io"
	"iter"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
)

// Admin is what an operator does to a queue, whoever has its file. There are three
// implementations, which one suite of tests holds to this: [Of] in the process that has
// the queue, [Dial] from another one, and [File] over the file of a stopped app.
//
// Its methods may be called from several goroutines. A method whose ctx ends returns its
// error; a change that was accepted may have happened then. Errors match the sentinels of
// packages pawl and bolt in all three, and [ErrUnreachable] where the app does not answer.
type Admin interface {
	// Stats says what is looked at, and how many jobs each queue has in each state. It reads
	// a few rows, whatever the number of jobs.
	Stats(ctx context.Context) (Stats, error)

	// List reads one page of jobs. What it reads for one call is bounded, so a page may have
	// fewer jobs than asked for, even none, while Next says that there are more places to
	// look at. [Jobs] iterates over all pages.
	List(ctx context.Context, q Query) (Page, error)

	// Summary reads one page of a summary of dead jobs. What it reads for one call is bounded,
	// so a page may have no group, while Next says that there are more places to look at.
	// [Summarize] puts the pages together.
	Summary(ctx context.Context, q SummaryQuery) (SummaryPage, error)

	// Job reads one job with its payload and history, or [pawl.ErrNotFound].
	Job(ctx context.Context, id pawl.ID) (*pawl.Envelope, error)

	// FindIDs returns the IDs of jobs that begin or end with part, [MaxFound] at the most: what
	// somebody types who saw a shortened ID. Part has four hexadecimal digits or more.
	FindIDs(ctx context.Context, part string) ([]pawl.ID, error)

	// Do carries out one action on up to [MaxIDs] jobs, each by itself, and returns an error
	// for each ID in their order, nil where it was done: [pawl.ErrNotFound],
	// [pawl.ErrNotEligible] for a job in a state in which the action does not apply, or that
	// does not match its filter when it is carried out, [pawl.ErrConflict] for a dead job
	// that may not live again, [pawl.ErrCorrupt] for one that cannot be read. The second
	// error says that the action as a whole did not come through, and then nothing is known
	// of the jobs.
	Do(ctx context.Context, a Action, ids ...pawl.ID) ([]error, error)

	// Enqueue stores jobs; the contract is that of [pawl.Enqueuer].
	Enqueue(ctx context.Context, jobs ...*pawl.Envelope) error

	// Pause stops all fetching from a queue until Resume, also over a restart.
	Pause(ctx context.Context, queue string) error

	// Resume ends what Pause began.
	Resume(ctx context.Context, queue string) error

	// Reap takes back leases that have expired, and returns how many. Over a file no process
	// holds any, so all of them are taken back, with one crash counted for each.
	Reap(ctx context.Context) (int, error)

	// Effects reads a page of the idempotency keys that count as done, behind the place that
	// after names, and where the next begins, "" at the end.
	Effects(ctx context.Context, after string) (effects []bolt.Effect, next string, err error)

	// Restore stores jobs as they stand in their envelopes, whatever their state; see
	// [bolt.Queue.Restore].
	Restore(ctx context.Context, jobs []*pawl.Envelope, effects []bolt.Effect) error

	// Check compares every row of the queue with every other; see [bolt.Queue.Check]. It
	// tells its progress to [bolt.WithProgress].
	Check(ctx context.Context) error

	// Backup writes a copy of the file to w, as it is at one moment, while the queue works
	// on. A nil error means that w got all of it. It tells its progress to
	// [bolt.WithProgress].
	Backup(ctx context.Context, w io.Writer) error

	// Events iterates over what happens from now on, until ctx ends, which is its last
	// error, or the queue closes ([pawl.ErrClosed]). A listener that is too slow misses
	// events, and the next one says how many. Nothing happens in the file of a stopped app:
	// [ErrNotLive].
	Events(ctx context.Context) iter.Seq2[Event, error]

	// Workflows is what there is to do with runs of workflows. It is of use until Close.
	Workflows() Workflows

	// Close lets go of the connection or of the file. The queue of [Of] stays open.
	Close() error
}

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
	Retry   Verb = "retry"   // a dead letter becomes ready
	Cancel  Verb = "cancel"  // a job that waits dies, one that runs is asked to end: ErrCancelRequested
	Delete  Verb = "delete"  // a dead letter or a completed record is removed for good
	RunNow  Verb = "run-now" // a delayed job becomes ready
	Forward Verb = "forward" // a dead letter becomes a job of another queue of the file
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
