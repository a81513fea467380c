package pawltest

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/memory"
)

// Queue is a queue in memory for one test. It records what was enqueued and how jobs ended, and the
// test can move its clock. Its methods are safe for concurrent use.
type Queue struct {
	*memory.Queue

	clock func() time.Time // the underlying clock
	ahead atomic.Int64     // offset of the queue's clock, in nanoseconds

	mu       sync.Mutex
	enqueued []*enqueued // in order; guarded by mu
	outcomes []Outcome   // in order, with each EventFetched; guarded by mu
	drain    *drain      // the Drain that is under way; guarded by mu
	changed  func()      // makes its Fetch look again; guarded by mu
}

// enqueued is a job as it was enqueued.
type enqueued struct {
	pawl.Envelope
	matched bool // by Enqueued or RequireEnqueued
}

// New returns an empty queue, which is closed when the test ends. The options are those of package
// memory; the default logger writes to the test's log.
//
// In a bubble of testing/synctest, call New there with the bubble's t.
func New(t testing.TB, opts *memory.Options) *Queue {
	t.Helper()
	var settings memory.Options
	if opts != nil {
		settings = *opts
	}
	q := &Queue{clock: settings.Now}
	if q.clock == nil {
		q.clock = time.Now
	}
	settings.Now = q.Now
	if settings.Logger == nil {
		settings.Logger = hclog.New(&hclog.LoggerOptions{Name: "queue", Output: t.Output()})
	}
	given := settings.OnEvent
	settings.OnEvent = func(e pawl.Event) {
		q.remember(e)
		if given != nil {
			given(e)
		}
	}
	q.Queue = memory.New(&settings)
	if _, err := q.Stats(context.Background()); err != nil {
		t.Fatalf("pawltest: %v", err)
	}
	t.Cleanup(func() { _ = q.Close() })
	return q
}

// Now returns the time of the queue's clock: the Now of its options, by default [time.Now], plus
// what the test moved it.
func (q *Queue) Now() time.Time { return q.clock().Add(time.Duration(q.ahead.Load())) }

// Advance moves the queue's clock by d, which may be negative. When it returns, delayed jobs that
// are due are ready, deadlines have passed, expired records are gone, and waiting fetches have their
// jobs. Leases do not expire.
func (q *Queue) Advance(d time.Duration) {
	q.ahead.Add(int64(d))
	q.notice()
}

// goTo moves the clock forward to t.
func (q *Queue) goTo(t time.Time) {
	q.ahead.Store(max(q.ahead.Load(), int64(t.Sub(q.clock()))))
	q.notice()
}

// notice makes the queue read its clock, which every call does.
func (q *Queue) notice() { _, _ = q.Stats(context.Background()) }

// remember records an event. It runs within the transition.
func (q *Queue) remember(e pawl.Event) {
	defer q.wake()
	q.mu.Lock()
	defer q.mu.Unlock()
	switch e.Type {
	case pawl.EventReplaced: // the earlier job will not run
		q.enqueued = slices.DeleteFunc(q.enqueued, func(old *enqueued) bool { return old.ID == e.Job.ID })
		fallthrough
	case pawl.EventEnqueued:
		q.enqueued = append(q.enqueued, &enqueued{Envelope: *own(e.Job)})
	case pawl.EventFetched, pawl.EventSucceeded, pawl.EventSkipped, pawl.EventRetried, pawl.EventDied,
		pawl.EventReleased, pawl.EventSnoozed, pawl.EventReaped:
		q.outcomes = append(q.outcomes, outcomeOf(e))
	}
}

// own copies the job of an event. Only its history is shared with the queue.
func own(e *pawl.Envelope) *pawl.Envelope {
	c := *e
	c.History = slices.Clone(c.History)
	return &c
}
