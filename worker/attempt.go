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
	ErrTimeout = errors.New("the attempt took longer than its timeout")

	// ErrDeadline is the cause at the job's deadline, if that comes before the timeout.
	ErrDeadline = errors.New("the deadline of the job has passed")

	// ErrCancelled is the cause when the job is cancelled.
	ErrCancelled = errors.New("the job was cancelled")

	// ErrStopping is the cause when the worker stops.
	ErrStopping = errors.New("the worker is stopping")

	// ErrLeaseInDoubt is the cause when the queue did not answer an extension in time, for
	// example because a server cannot be reached. The lease may have expired, and another
	// process may have the job.
	ErrLeaseInDoubt = errors.New("it is unknown whether the lease still holds")
)

// PanicError is the error of an attempt whose handler panicked, or called
// runtime.Goexit as t.FailNow does.
type PanicError struct {
	Value any    // the argument of panic, or a text about Goexit
	Stack string // stack of the handler's goroutine
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// StackTrace returns Stack, which a queue keeps beside the error.
func (e *PanicError) StackTrace() string { return e.Stack }

// Unwrap returns the value if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// attempt is one attempt of a leased job, from the time when the worker gets its lease until
// the lease is settled.
type attempt struct {
	*pawl.Lease
	handler handler
	queue   pawl.Queue
	notes   *driver.Notes
	ctx     context.Context // context of the handler, once it has a slot
	cancel  context.CancelCauseFunc
	err     error     // error of the handler; only its goroutine may use it
	until   time.Time // when the lease expires, as far as the worker knows; zero once the lease is in doubt; guarded by the session's mu

	// claimed is set by the code that settles the job: when the handler returns, or earlier by
	// a worker that no longer waits for that.
	claimed atomic.Bool
}

// claim reports whether the caller must settle the job.
func (a *attempt) claim() bool { return a.claimed.CompareAndSwap(false, true) }

// limit returns how long an attempt that starts now may take, and the cause with which
// its context ends after that. Cause is nil if there is no limit. The timeout
// comes from the job, or else from the worker. The deadline is a wall-clock time.
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

// ended reports whether the job was cancelled or passed its deadline while it waited for a
// slot. Its handler would start with a context that has ended. However the job is settled, its
// queue makes it dead.
func (a *attempt) ended() bool {
	return a.Cancelled.Fired() || !a.Deadline.IsZero() && time.Until(a.Deadline) <= 0
}

// settlingLease returns the lease for the settlement of an attempt. It is a copy, because a
// handler that ignores its timeout may still use its own lease.
func (a *attempt) settlingLease(timedOut bool) *pawl.Lease {
	if !timedOut {
		return a.Lease
	}
	return &pawl.Lease{Envelope: a.Envelope, Token: a.Token, Length: a.Length, Expires: a.Expires,
		Cancelled: a.Cancelled, Started: a.Started, TimedOut: true}
}

// run calls the handler and stores in err what it returned. A panic becomes an
// error, and so does runtime.Goexit, which t.FailNow calls. After Goexit the
// goroutine runs only deferred functions.
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
		_ = a.err.Error() // a panic of Error, for example because of a nil pointer, happens here and not in the queue
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

// stackOfPanic omits the frames above the panic: those of the code that took the stack. They
// would use up the part that the history keeps.
func stackOfPanic(stack string) string {
	head, rest, _ := strings.Cut(stack, "\n") // goroutine 7 [running]:
	if _, below, found := strings.Cut(rest, "\npanic("); found {
		if _, below, found = strings.Cut(below, "\n\t"); found { // the line of the code of panic itself
			if _, below, found = strings.Cut(below, "\n"); found {
				return head + "\n" + below
			}
		}
	}
	return stack
}
