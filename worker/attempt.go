package worker

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Causes with which a handler's context ends; see context.Cause.
var (
	// ErrTimeout is the cause at the job's timeout.
	ErrTimeout = errors.New("the run took longer than its timeout")

	// ErrDeadline is the cause at the job's deadline, where that comes first.
	ErrDeadline = errors.New("the deadline of the job has passed")

	// ErrCancelled is the cause when the job is cancelled.
	ErrCancelled = errors.New("the job was cancelled")

	// ErrStopping is the cause when the worker stops.
	ErrStopping = errors.New("the worker is stopping")

	// ErrLeaseInDoubt is the cause when the lease may have expired, and another process may have
	// the job: the queue, such as a server that is away, did not answer an extension in time.
	ErrLeaseInDoubt = errors.New("nobody knows whether the lease still holds")
)

// PanicError is the error of an attempt whose handler panicked, or called
// runtime.Goexit as t.FailNow does.
type PanicError struct {
	Value any    // what was given to panic, or a text about Goexit
	Stack string // of the handler's goroutine
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// StackTrace returns Stack, which a queue keeps beside the error.
func (e *PanicError) StackTrace() string { return e.Stack }

// Unwrap returns the value when it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// attempt is one run of one leased job, from the moment its lease comes to the
// worker until the queue has heard how it ended.
type attempt struct {
	*pawl.Lease
	handler handler
	queue   pawl.Queue
	notes   *driver.Notes
	ctx     context.Context // of the handler, once it has a slot
	cancel  context.CancelCauseFunc
	err     error     // of the handler; belongs to its goroutine
	until   time.Time // when the lease expires, as far as the worker knows; zero once it is in doubt; the session's mu guards it

	// claimed goes to whoever settles the job: the return of the handler, or the
	// worker when it does not wait for that any more.
	claimed atomic.Bool
}

// claim reports whether the caller is the one to settle.
func (a *attempt) claim() bool { return a.claimed.CompareAndSwap(false, true) }

// limit is how long a run that starts now may take, and the cause with which its
// context then ends, nil for no limit. The timeout is that of the job, or else the
// worker's; the deadline is a time of the wall clock.
func (a *attempt) limit(o *Options) (limit time.Duration, cause error) {
	limit = a.Timeout
	if limit == 0 {
		limit = o.Timeout
	}
	if limit > 0 {
		cause = ErrTimeout
	}
	if a.Deadline.IsZero() {
		return limit, cause
	}
	if left := time.Until(a.Deadline); cause == nil || left < limit {
		limit, cause = left, ErrDeadline
	}
	return limit, cause
}

// ended reports whether the job ended while it waited for a slot: a run would start
// with a context that has ended. However it is settled, its queue makes it dead.
func (a *attempt) ended() bool {
	return a.Cancelled.Fired() || !a.Deadline.IsZero() && time.Until(a.Deadline) <= 0
}

// settlingLease is the lease by which the queue is told how a run ended. The handler's own is
// not changed for that: one that ignores its timeout may be using it.
func (a *attempt) settlingLease(timedOut bool) *pawl.Lease {
	if !timedOut {
		return a.Lease
	}
	return &pawl.Lease{Envelope: a.Envelope, Token: a.Token, Length: a.Length, Expires: a.Expires,
		Cancelled: a.Cancelled, Started: a.Started, TimedOut: true}
}

// run calls the handler and keeps what it returned in err. A panic becomes an
// error, and so does runtime.Goexit, which t.FailNow calls: after it the goroutine
// runs deferred functions only.
func (a *attempt) run(ctx context.Context) {
	returned := false
	defer func() {
		if returned {
			return
		}
		a.err = panicked(recover())
	}()
	a.err = a.handler.run(driver.RunContext(ctx, a.queue, a.Lease, a.notes), a.Lease)
	if a.err != nil {
		_ = a.err.Error() // one that panics, such as a nil pointer in an error, does it here and not in the queue
	}
	returned = true
}

// panicked returns the error of a handler that did not return.
func panicked(value any) *PanicError {
	if value == nil {
		value = "runtime.Goexit was called"
	}
	return &PanicError{Value: value, Stack: stackOfPanic(string(debug.Stack()))}
}

// stackOfPanic leaves out what lies above the panic in a stack: the frames that
// took the stack, which would fill what the history keeps of it.
func stackOfPanic(stack string) string {
	head, rest, _ := strings.Cut(stack, "\n") // goroutine 7 [running]:
	if _, below, found := strings.Cut(rest, "\npanic("); found {
		if _, below, found = strings.Cut(below, "\n\t"); found { // where panic itself is
			if _, below, found = strings.Cut(below, "\n"); found {
				return head + "\n" + below
			}
		}
	}
	return stack
}
