package admin

import (
	"context"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Admin is what an operator does to a queue. It has three implementations, and one test suite
// covers all of them: [Of] in the process that has the queue open, [Dial] from another process,
// and [Offline] for the queue of a stopped app. [Shared] is the third one for a queue on a server.
//
// Its methods are safe for concurrent use. When its context ends, a method returns the context's
// error; a change that the queue accepted may have happened. In all three implementations, errors
// match the sentinels of package pawl and of the engine, and [ErrUnreachable] if the app does not
// answer. An operation that the engine of the queue lacks returns an [*UnsupportedError].
type Admin interface {
	// Stats returns how many jobs each queue has in each state, and which process has the
	// queue open. It reads a few rows, whatever the number of jobs.
	Stats(ctx context.Context) (Stats, error)

	// Throughput returns what happened to the jobs of a queue, or of all, in the last minutes, hours, or
	// days, and the builds of the app that ran them. See [Metered].
	Throughput(ctx context.Context, q ThroughputQuery) (Throughput, error)

	// List reads one page of jobs. One call reads a bounded number of rows, so a page may have
	// fewer jobs than requested, even none, while Next says where to continue. [Jobs] iterates
	// over all pages.
	List(ctx context.Context, q Query) (Page, error)

	// Summary reads one page of a summary of dead jobs. One call reads a bounded number of rows,
	// so a page may have no group while Next says where to continue. [Summarize] merges all
	// pages.
	Summary(ctx context.Context, q SummaryQuery) (SummaryPage, error)

	// Job reads one job with its payload and history, or returns [pawl.ErrNotFound].
	Job(ctx context.Context, id pawl.ID) (*pawl.Envelope, error)

	// Await returns a job once it is dead or completed; see [pawl.Awaiter]. So [pawl.Task.Wait]
	// takes an Admin, in any process. If the record is removed at the end of the job, an Admin of
	// another process may return the job as completed, without its result. In the file of a stopped
	// app, Await returns [ErrNotLive] for a job that has not ended.
	Await(ctx context.Context, id pawl.ID) (*pawl.Envelope, error)

	// Progress returns how far up to [MaxIDs] jobs are, as their last attempts noted it. A note is
	// stored within a second. Jobs that noted nothing are left out. See [pawl.Job.Progress].
	Progress(ctx context.Context, ids ...pawl.ID) ([]JobProgress, error)

	// Logs returns the stored logs of the last attempts of a job, the oldest first, or [pawl.ErrNotFound].
	// See [pawl.Log].
	Logs(ctx context.Context, id pawl.ID) ([]pawl.RunLog, error)

	// Why returns what keeps a job from running now, or [pawl.ErrNotFound]. A job without an obstacle
	// waits for its turn.
	Why(ctx context.Context, id pawl.ID) ([]pawl.Obstacle, error)

	// Dependents returns the jobs that wait for the success of a job, directly or through other jobs: the
	// nearest first, and without dead ones. None of them can run once the job is dead or gone. See
	// [pawl.After]. [pawl.ErrBatchTooLarge] means that there are more than [pawl.MaxBatchJobs].
	Dependents(ctx context.Context, id pawl.ID) ([]pawl.ID, error)

	// Keys reads one page of the keys of a queue that has limits per key. See [Explainer].
	Keys(ctx context.Context, q KeyQuery) (KeyList, error)

	// Key reads one key of a queue, with some of its running jobs, or returns [pawl.ErrNotFound].
	Key(ctx context.Context, queue, key string) (pawl.KeyStats, error)

	// EndRest ends the rest of a key, see [pawl.Throttle]. It does nothing if the key does not rest.
	EndRest(ctx context.Context, queue, key string) error

	// FindIDs returns the IDs of jobs that begin or end with part, at most [MaxFound]. It
	// resolves a shortened ID. Part has four hexadecimal digits or more. For the end of an ID it
	// compares a bounded number of IDs after a cursor, so it may return none before the end,
	// where next is "".
	FindIDs(ctx context.Context, part, after string) (ids []pawl.ID, next string, err error)

	// Do carries out one action on up to [MaxIDs] jobs, each by itself, and returns an error for
	// each ID in their order. Nil means done. The errors include [pawl.ErrNotFound];
	// [pawl.ErrNotEligible] for a job in a state in which the action does not apply, or that
	// does not match Action.If when the action is carried out; [pawl.ErrConflict] for a dead job
	// that may not be retried; and [pawl.ErrCorrupt] for a damaged job. If the second result is
	// an error, the action failed as a whole and the outcome of each job is unknown.
	Do(ctx context.Context, a Action, ids ...pawl.ID) ([]error, error)

	// Edit replaces the payload of a job that waits or is dead; a dead one becomes ready, as by Retry. It
	// keeps its ID and history, and a header names the old payload; see [driver.EditsOf]. If a worker of
	// the app runs the kind, Edit first decodes the payload into its type, and an error that matches
	// [pawl.ErrPayloadEncoding] names the field that does not fit. Errors for the job are those of Do, and
	// [ErrWorkflowJob] for the job of a workflow run. See [Editor].
	Edit(ctx context.Context, e Edit) (Edited, error)

	// Enqueue stores jobs, with the contract of [pawl.Enqueuer].
	Enqueue(ctx context.Context, jobs ...*pawl.Envelope) ([]pawl.Enqueued, error)

	// Pause stops all fetching from a queue until Resume, even across a restart.
	Pause(ctx context.Context, queue string) error

	// Resume ends a pause, and a rest of the queue, see [pawl.Throttle].
	Resume(ctx context.Context, queue string) error

	// SetLimits sets other limits for a queue than its program declares, until SetLimits with nil. See
	// [LimitSetter].
	SetLimits(ctx context.Context, queue string, l *pawl.Limits) error

	// Reap takes back expired leases and returns how many. In the file of a stopped app no
	// process holds a lease, so Reap takes back all of them and counts one crash for each.
	Reap(ctx context.Context) (int, error)

	// Effects reads a page of the idempotency keys that count as done, starting after a
	// position. Next is where the next page begins, "" at the end.
	Effects(ctx context.Context, after string) (effects []driver.Effect, next string, err error)

	// Restore stores jobs in the states of their envelopes, and effects; see [Store.Restore].
	Restore(ctx context.Context, jobs []*pawl.Envelope, effects []driver.Effect) error

	// Check compares every row of the queue with every other, see [Checker], and those of runs and of schedules.
	Check(ctx context.Context) error

	// Backup writes a snapshot of the file to w while the queue continues to work. A nil error
	// means that w received all of it. Backup reports progress to [driver.WithProgress].
	Backup(ctx context.Context, w io.Writer) error

	// Events iterates over future events. It ends with the error of ctx, or with
	// [pawl.ErrClosed] when the queue closes. A slow listener misses events, and the next event
	// says how many. The file of a stopped app has no events: [ErrNotLive].
	Events(ctx context.Context) iter.Seq2[Event, error]

	// Workflows returns the operations on workflow runs. It is valid until Close.
	Workflows() Workflows

	// Schedules returns the operations on schedules. It is valid until Close.
	Schedules() Schedules

	// Groups returns the operations on groups of jobs. It is valid until Close.
	Groups() Groups

	// Close closes the connection or the file. The queue of [Of] stays open.
	Close() error
}

// MaxFound is the most IDs that one [Admin.FindIDs] returns.
const MaxFound = 20

// Limits on the jobs of one [Admin.Do].
const (
	MaxIDs    = 1000
	MaxDryIDs = pawl.MaxBatchJobs // in a dry run
)

// Stats describes a queue at one moment, and the process that has it open.
type Stats struct {
	pawl.Stats
	Process *Process // nil for the file of a stopped app

	// Done counts the attempts of each queue that have ended since a [Server] began to serve;
	// nil without one.
	Done map[string]Done

	// Totals counts what the process has done since it opened the queue; nil without a process, and for an
	// engine that does not count.
	Totals *Totals
}

// Totals counts the transitions of jobs that a process has made since it opened the queue.
type Totals = driver.Totals

// Process is an app that serves its queue.
type Process struct {
	PID     int
	Name    string // name of the program
	Version string // version of this library in the program
	Started time.Time
}

// Done counts the attempts that ended.
type Done struct {
	Succeeded, Failed int64
}

// Filter selects jobs. The zero value selects all. It is a [pawl.Condition].
type Filter struct {
	pawl.Filter

	// Queues, Kinds, States and Reasons select jobs that have one of the values; an empty list
	// selects any. For a single value, the field of pawl.Filter is faster.
	Queues, Kinds []string
	States        []pawl.State
	Reasons       []pawl.Reason

	// Error selects jobs whose last error contains this text, in upper or lower case.
	Error string

	// Payload selects jobs by the content of their payload. All of these terms must hold:
	// "user.id=42" compares a field with a string, a number, true, false or null; "user.id!=42"
	// is the opposite; "user.name~ada" finds a substring of a field; and "user.id" requires only
	// that the field exists. A number in the path is an index into a list.
	Payload []string

	// Since and Until select jobs that were created in [Since, Until); zero means any time.
	Since, Until time.Time

	// Before selects jobs that have been in their state since before that time: see
	// [StateSince].
	Before time.Time
}

// Detail is how much of each job a list returns.
type Detail uint8

const (
	Summary  Detail = iota // everything but the payload; of the history, the newest entry
	IDs                    // only the ID, queue, kind and state
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

// nameOf returns names[i], or a number that the app refuses.
func nameOf(names []string, i int) []byte {
	if i < len(names) {
		return []byte(names[i])
	}
	return strconv.AppendInt(nil, int64(i), 10)
}

// named returns the index of a name in names; "" is the first.
func named(field string, names []string, text []byte) (int, error) {
	if len(text) == 0 {
		return 0, nil
	}
	at := slices.Index(names, string(text))
	if at < 0 {
		return 0, invalid(field, "%q is none of %s", truncate(string(text)), strings.Join(names, ", "))
	}
	return at, nil
}

// Query is one page of a list.
type Query struct {
	Filter
	Detail Detail
	After  string // where the page begins: Next of the previous page, "" for the first
	Limit  int    // the most jobs of a page; 0 means [DefaultLimit], and [MaxLimit] is the maximum
}

// Limits of a page.
const (
	DefaultLimit = 50
	MaxLimit     = 1000
)

// Page is a part of a list of jobs, in the order of its filter.
type Page struct {
	Jobs []pawl.Listed
	Next string // where the next page begins, "" after the last
}

// Verb is an action on a job.
type Verb string

// The verbs of [Admin.Do].
const (
	Retry      Verb = "retry"       // a dead job becomes ready
	Cancel     Verb = "cancel"      // a waiting job becomes dead; a running one is asked to end: ErrCancelRequested
	Delete     Verb = "delete"      // a dead job or a completed record is removed permanently
	RunNow     Verb = "run-now"     // a delayed job becomes ready
	ReleaseKey Verb = "release-key" // the other jobs of its key run although a dead job holds it
	Forward    Verb = "forward"     // a dead job becomes a job of another queue of the file
)

// Action is a verb with its settings.
type Action struct {
	Verb         Verb
	KeepAttempts bool   // Retry keeps the job's count of attempts
	Force        bool   // Cancel also ends the job of a workflow run, which leaves the run dead without undoing its steps
	Queue        string // the queue that Forward enqueues on; "" means dlq.FailedJobs

	// If selects among the jobs, in the transaction that changes them. What a list reported
	// earlier does not count. Nil selects all.
	If *Filter

	// DryRun returns what the action would return now, decided by the same code, and changes
	// nothing. One call judges jobs that share a unique key together.
	DryRun bool
}

// Edit is a new payload of a job.
type Edit struct {
	ID      pawl.ID
	Payload []byte // MessagePack; see [EncodeJSON]

	// Was is the SHA-256, in hex, of the payload that the editor has read. If the job has another one by
	// now, Edit returns [pawl.ErrNotEligible]. "" replaces any payload.
	Was string

	DryRun bool // only check the payload
}

// Edited is what is known of a new payload.
type Edited struct {
	// Typed reports that the payload was decoded into the type of its kind. It is false if no worker of
	// this app runs the kind now. Then nothing has checked the payload.
	Typed bool
}

// Event is something that happened to a job.
type Event struct {
	pawl.Event
	Missed int64 // how many events before this one a slow listener lost
}
