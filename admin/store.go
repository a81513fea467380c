package admin

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/dlq"
	"github.com/gopawl/pawl/driver"
)

// Store is what an [Admin] needs from a queue, such as a *bolt.Queue. Package queuetest has cases
// for each of its methods, so an engine that passes the suite can be operated.
//
// An engine may also have the methods of [Backuper], [Checker], [Counter], [Editor], [Explainer],
// [LimitSetter], [Listener], [Metered], [Rester], [pawl.Awaiter], and [workflow.Store]. An operation that
// needs a missing one fails with an [*UnsupportedError].
type Store interface {
	pawl.Enqueuer

	// Jobs, Job and Change read and change jobs in any state.
	dlq.Store

	// Stats returns how many jobs each queue has in each state, from a few rows.
	Stats(ctx context.Context) (pawl.Stats, error)

	// ListParts reads some of the jobs that match a filter, in its order, after a cursor: "" for
	// the beginning. It reads a bounded number of rows, so it may return fewer than max jobs,
	// even none, before the end, where Next is "". It reads only the given parts of each job. A
	// max outside of 1 to [pawl.MaxListed], a filter that is not valid, and a cursor of another
	// list return [pawl.ErrInvalid]. An unreadable job is in the list, with its error.
	ListParts(ctx context.Context, f pawl.Filter, parts driver.Parts, after string, max int) (pawl.Listing, error)

	// FindIDs returns at most most IDs that begin or end with part. It returns [pawl.ErrInvalid]
	// if part does not have four hexadecimal digits or more. It compares a bounded number of IDs
	// after a cursor, so it may return none before the end, where next is "".
	FindIDs(ctx context.Context, part, after string, most int) (ids []pawl.ID, next string, err error)

	// DryRun returns what Change would return for each job now, and changes nothing. It judges
	// jobs that share a unique key together.
	DryRun(ctx context.Context, c pawl.Change, ids ...pawl.ID) ([]error, error)

	// Transfer replaces a dead job with the job of the same ID, in one transition; see [dlq.Transferer].
	// It returns [pawl.ErrNotEligible] for a job that is not dead or does not match the condition.
	Transfer(ctx context.Context, job *pawl.Envelope, when pawl.Condition) error

	// Effects reads some of the idempotency keys that count as done, after a cursor, with the
	// rules of ListParts. An unreadable key returns [pawl.ErrCorrupt], with the keys before it
	// and a next that continues after it.
	Effects(ctx context.Context, after string, max int) (effects []driver.Effect, next string, err error)

	// Restore stores jobs in the state of their envelopes, and effects, atomically. It refuses
	// what [driver.CheckRestore] does. A leased job becomes ready, without a crash, in its old
	// place. An ID or a unique key that is taken returns [pawl.ErrConflict]. The jobs stay
	// unchanged.
	Restore(ctx context.Context, jobs []*pawl.Envelope, effects []driver.Effect) error

	// Pause stops all fetching from a queue until Resume, even across a restart.
	Pause(ctx context.Context, queue string) error

	// Resume ends a pause, and a rest of the queue.
	Resume(ctx context.Context, queue string) error

	// Reap takes back expired leases, and returns how many.
	Reap(ctx context.Context) (int, error)
}

// Checker is a [Store] that can look for damage in its data.
type Checker interface {
	// Check compares every row with every other. It returns [pawl.ErrCorrupt] for damage, and
	// reports progress to [driver.WithProgress].
	Check(ctx context.Context) error
}

// Backuper is a [Store] that can copy itself while it works.
type Backuper interface {
	// WriteBackup writes a copy of everything at one moment, and returns the number of bytes. It
	// reports progress to [driver.WithProgress], in bytes.
	WriteBackup(ctx context.Context, w io.Writer) (int64, error)
}

// Counter is a [Store] that counts its transitions.
type Counter interface {
	// Totals counts the transitions that this process has made since it opened the queue.
	Totals() driver.Totals
}

// Listener is a [Store] that emits events.
type Listener interface {
	// Listen calls fn for each event from now on, after its transition is durable, and from
	// several goroutines. It does not call fn after stop has returned. Fn must be short and
	// must not call the queue.
	Listen(fn func(pawl.Event)) (stop func())

	// Done returns a channel that is closed when the queue stops.
	Done() <-chan struct{}

	// Err returns why the queue stopped, such as [pawl.ErrClosed], and nil while it works.
	Err() error
}

// FileStore is a [Store] in a file of this machine, beside which [Serve] can put a socket.
type FileStore interface {
	Store

	// Path returns the path of the file.
	Path() string

	// MaxPayload returns the largest payload of a job in bytes.
	MaxPayload() int
}

// UnsupportedError means that the engine of the queue lacks the methods of an optional operation. It
// matches errors.ErrUnsupported.
type UnsupportedError struct {
	Operation string // "check", "backup", "events", "workflows", "schedules", "keys", "groups", "logs", "edits of jobs", "limits set by operators" or "throughput"
}

// Error implements error.
func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("the engine of this queue does not support %s: %v", e.Operation, errors.ErrUnsupported)
}

// Unwrap returns errors.ErrUnsupported.
func (e *UnsupportedError) Unwrap() error { return errors.ErrUnsupported }

// optional returns a store as one that has the methods of an optional operation, or an
// [*UnsupportedError].
func optional[T any](q Store, operation string) (T, error) {
	has, ok := q.(T)
	if !ok {
		return has, &UnsupportedError{operation}
	}
	return has, nil
}

// using calls fn with the store as one that has the methods of an optional operation.
func using[Q, T any](d direct, operation string, fn func(Q) (T, error)) (none T, err error) {
	q, err := optional[Q](d.q, operation)
	if err != nil {
		return none, err
	}
	return fn(q)
}

// usingTo is using for a function that returns only an error.
func usingTo[Q any](d direct, operation string, fn func(Q) error) error {
	_, err := using(d, operation, func(q Q) (nothing, error) { return nothing{}, fn(q) })
	return err
}
