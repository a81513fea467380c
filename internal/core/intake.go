package core

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Call is what a caller waits for. The calls of an engine embed it.
type Call struct {
	Ctx   context.Context
	Jobs  int // how many jobs it counts in a group
	Bytes int // of its payloads
	Err   error
	Done  chan struct{} // closed when Err is the answer

	// A call is either accepted by a transaction or withdrawn by its caller. The stage decides which. A transaction
	// that fails without an effect offers the call again.
	stage atomic.Int32
}

const (
	offered int32 = iota
	accepted
	withdrawn
)

// NewCall returns a call for an operation, which may have a method that returns the size bytes of its payloads.
func NewCall(ctx context.Context, op any) Call {
	bytes := 0
	if sized, ok := op.(interface{ Bytes() int }); ok {
		bytes = sized.Bytes()
	}
	return Call{Ctx: ctx, Jobs: 1, Bytes: bytes, Done: make(chan struct{})}
}

func (c *Call) base() *Call { return c }

// Answer gives a caller its answer, once.
func (c *Call) Answer(err error) {
	c.Err = err
	close(c.Done)
}

// Accept reports whether the caller waits for an answer of a transaction.
func (c *Call) Accept() bool {
	return c.stage.CompareAndSwap(offered, accepted) || c.stage.Load() == accepted
}

// Reopen offers a call again.
func (c *Call) Reopen() { c.stage.CompareAndSwap(accepted, offered) }

// Withdraw reports whether no transaction has accepted a call, and none will.
func (c *Call) Withdraw() bool { return c.stage.CompareAndSwap(offered, withdrawn) }

// IsWithdrawn reports whether the caller has withdrawn the call.
func (c *Call) IsWithdrawn() bool { return c.stage.Load() == withdrawn }

// Await waits for the answer, or until the context withdraws the call. Ended runs when the context has ended
// before the answer.
func (c *Call) Await(ended func()) error {
	select {
	case <-c.Done:
		return c.Err
	case <-c.Ctx.Done():
	}
	ended()
	if c.Withdraw() {
		return driver.NotAccepted(c.Ctx)
	}
	<-c.Done
	return c.Err
}

// Caller is a call of an engine, which embeds a Call.
type Caller interface{ base() *Call }

// Answer gives several callers the same answer.
func Answer[C Caller](calls []C, err error) {
	for _, c := range calls {
		c.base().Answer(err)
	}
}

// Withdraw answers the calls whose context has ended, and returns those that are still offered.
func Withdraw[C Caller](calls []C) []C {
	return slices.DeleteFunc(calls, func(of C) bool {
		c := of.base()
		if c.Ctx.Err() != nil && c.Withdraw() {
			c.Answer(driver.NotAccepted(c.Ctx))
		}
		return c.IsWithdrawn()
	})
}

// Dismiss answers the waiting calls among those whose context has ended, and returns the other waiting calls.
func Dismiss[C interface {
	Caller
	comparable
}](waiting, ended []C) []C {
	for _, of := range ended {
		if i := slices.Index(waiting, of); i >= 0 {
			waiting = slices.Delete(waiting, i, i+1)
			of.base().Answer(driver.NotAccepted(of.base().Ctx))
		}
	}
	return waiting
}

// Intake is where callers leave their calls for the scheduler, which takes them as a group. That is the group
// commit: calls that arrive during a transaction share the next one.
type Intake[C Caller, N any] struct {
	Signal chan struct{} // has a value when there is something to do

	jobs, bytes int // the limits of a group
	mu          sync.Mutex
	calls       []C
	notes       []N
	closed      bool  // it takes no more calls
	poison      error // it takes no more calls, since a commit failed
}

// NewIntake returns an intake whose groups have at most the given numbers of jobs and bytes. A single call may have
// more bytes.
func NewIntake[C Caller, N any](jobs, bytes int) *Intake[C, N] {
	return &Intake[C, N]{Signal: make(chan struct{}, 1), jobs: jobs, bytes: bytes}
}

// Submit leaves a call and waits for its answer, or until its context withdraws it.
func (in *Intake[C, N]) Submit(call C) error {
	c := call.base()
	if c.Ctx.Err() != nil {
		return driver.NotAccepted(c.Ctx)
	}
	if err := in.Put(call); err != nil {
		return err
	}
	return c.Await(func() {})
}

// Put takes a call, unless the intake takes no more.
func (in *Intake[C, N]) Put(c C) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if err := in.refusal(); err != nil {
		return err
	}
	in.calls = append(in.calls, c)
	in.Wake()
	return nil
}

// Note leaves a note for the scheduler.
func (in *Intake[C, N]) Note(n N) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.notes = append(in.notes, n)
	in.Wake()
}

// Wake makes the scheduler look for work.
func (in *Intake[C, N]) Wake() {
	select {
	case in.Signal <- struct{}{}:
	default:
	}
}

// Close makes the intake refuse all later calls with ErrClosed.
func (in *Intake[C, N]) Close() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.closed = true
	in.Wake()
}

// Fail makes the intake refuse all later calls with an error, until it is closed.
func (in *Intake[C, N]) Fail(err error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.poison = err
	in.Wake()
}

// Take returns the next group of calls, the notes, and whether there will be no more calls.
func (in *Intake[C, N]) Take() (calls []C, notes []N, closed bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	n, jobs, bytes := 0, 0, 0
	for ; n < len(in.calls); n++ {
		c := in.calls[n].base()
		if n > 0 && (jobs+c.Jobs > in.jobs || bytes+c.Bytes > in.bytes) {
			break
		}
		jobs, bytes = jobs+c.Jobs, bytes+c.Bytes
	}
	calls, in.calls = in.calls[:n:n], in.calls[n:]
	if len(in.calls) > 0 {
		in.Wake()
	}
	notes, in.notes = in.notes, nil
	return calls, notes, in.closed && len(in.calls) == 0
}

// Len returns how many calls wait.
func (in *Intake[C, N]) Len() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return len(in.calls)
}

// Refuses returns why the queue takes no more calls, nil if it does.
func (in *Intake[C, N]) Refuses() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.refusal()
}

func (in *Intake[C, N]) refusal() error {
	if in.closed {
		return pawl.ErrClosed
	}
	return in.poison
}

// Poisoned returns the error of a poisoned queue, whether it is closed or not, and nil for other queues.
func (in *Intake[C, N]) Poisoned() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.poison
}
