package pawl

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Lease is the right to run one job until a time. Holding it proves nothing after
// Expires: the token is compared when it is used.
type Lease struct {
	*Envelope
	Token   uint64
	Length  time.Duration // how long a lease lasts from when it is given or extended
	Expires time.Time     // when this one ends unless it is extended, on this process's monotonic time

	// Cancelled fires when the job is cancelled while this lease holds it. Nil never
	// does.
	Cancelled *Signal

	// Set by the holder before it settles, for events and counters.

	Started  time.Time // when the run began, on monotonic time
	TimedOut bool      // the run was ended by its timeout

	settled uint32 // atomic: 1 once the job is settled; a plain number, so that a lease may be copied
}

// MarkSettled notes that the job was acked in a transaction of the app's, so that
// its holder neither settles nor extends it any more. Queues call it.
func (l *Lease) MarkSettled() { atomic.StoreUint32(&l.settled, 1) }

// Settled reports whether [Lease.MarkSettled] was called.
func (l *Lease) Settled() bool { return atomic.LoadUint32(&l.settled) == 1 }

type leaseKey struct{}

// Context returns a context for the handler that runs the job of l, which tells
// [Kind.Enqueue] which job that is; see [ErrOwnJob]. Workers call it.
func (l *Lease) Context(ctx context.Context) context.Context {
	return context.WithValue(ctx, leaseKey{}, l)
}

// runBy reports whether ctx belongs to the handler that runs the job id.
func runBy(ctx context.Context, id ID) bool {
	l, ok := ctx.Value(leaseKey{}).(*Lease)
	return ok && l.ID == id
}

// Took is how long the run has lasted, 0 when it did not begin.
func (l *Lease) Took() time.Duration {
	if l.Started.IsZero() {
		return 0
	}
	return time.Since(l.Started)
}

// Signal tells once that something happened. The zero value has not fired; a nil one
// never will. Its methods may be called from any goroutine.
type Signal struct {
	mu    sync.Mutex
	fired bool
	first func()   // mostly the only one
	more  []func() // behind it
}

// Fire makes s fire, and calls the functions that were given to [Signal.OnFire]. Only the
// first call does anything.
func (s *Signal) Fire() {
	if s == nil {
		return
	}
	s.mu.Lock()
	first, more := s.first, s.more
	s.fired, s.first, s.more = true, nil, nil
	s.mu.Unlock()
	if first != nil {
		first()
	}
	for _, fn := range more {
		fn()
	}
}

// Fired reports whether s has fired.
func (s *Signal) Fired() bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fired
}

// OnFire has fn called when s fires, at once if it has. Fn is short, calls no queue and
// does not panic: it runs where the queue does its work.
func (s *Signal) OnFire(fn func()) {
	if s == nil || fn == nil {
		return
	}
	s.mu.Lock()
	fired := s.fired
	switch {
	case fired:
	case s.first == nil:
		s.first = fn
	default:
		s.more = append(s.more, fn)
	}
	s.mu.Unlock()
	if fired {
		fn()
	}
}
