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
)

// Causes with which a handler's context ends; see context.Cause.
var (
	// ErrTimeout is the cause at the job's timeout.
	ErrTimeout = errors.New("the run took longer than its timeout")

	// ErrStopping is the cause when the worker stops.
	ErrStopping = errors.New("the worker is stopping")
)

// PanicError is the error of an attempt whose handler panicked, or called
// runtime.Goexit as t.FailNow does.
type PanicError struct {
	Value any    // what was given to panic, or a text about Goexit
	Stack string // of the handler's goroutine
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v\n\n%s", e.Value, e.Stack) }

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
	cancel  context.CancelCauseFunc
	err     error // of the handler; belongs to its goroutine

	// claimed goes to whoever settles the job: the return of the handler, or the
	// worker when it does not wait for that any more.
	claimed atomic.Bool
}

// claim reports whether the caller is the one to settle.
func (a *attempt) claim() bool { return a.claimed.CompareAndSwap(false, true) }

// timeout is that of the job, or the worker's; 0 for none.
func (a *attempt) timeout(o *Options) time.Duration {
	if a.Timeout > 0 {
		return a.Timeout
	}
	return o.Timeout
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
		p := &PanicError{Value: recover(), Stack: stackOfPanic(string(debug.Stack()))}
		if p.Value == nil {
			p.Value = "runtime.Goexit was called"
		}
		a.err = p
	}()
	a.err = a.handler.run(ctx, a.Envelope)
	if a.err != nil {
		_ = a.err.Error() // one that panics, such as a nil pointer in an error, does it here and not in the queue
	}
	returned = true
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
