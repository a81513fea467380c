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

// Queue is a queue for one test: one in memory that remembers what was enqueued and
// what became of it, and whose clock can be moved. Its methods may be called from any
// goroutine.
type Queue struct {
	*memory.Queue

	clock func() time.Time // the clock that its own goes by
	ahead atomic.Int64     // how far its own is ahead of that, in nanoseconds

	mu       sync.Mutex
	enqueued []*enqueued // in their order
	outcomes []Outcome   // in their order, and each EventFetched too
}

// enqueued is a job as it was when the queue took it in.
type enqueued struct {
	pawl.Envelope
	named bool // by Enqueued or RequireEnqueued
}

// New makes an empty queue, which is closed when the test has ended. Its settings are
// those of package memory; by default it logs to the log of the test.
//
// In a bubble of testing/synctest call it there, with the t of the bubble.
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

// Now is the time on the clock of the queue: that of [time.Now], or of the Now in its
// options, and what it was moved besides.
func (q *Queue) Now() time.Time { return q.clock().Add(time.Duration(q.ahead.Load())) }

// Advance moves the clock of the queue by d, back when d is negative. What falls due by
// that has happened when it returns: delayed jobs are ready, deadlines have passed,
// retained records are gone, and fetches that waited have got their jobs. Leases do not
// end by it.
func (q *Queue) Advance(d time.Duration) {
	q.ahead.Add(int64(d))
	q.notice()
}

// goTo moves the clock to t, or leaves it when it is later.
func (q *Queue) goTo(t time.Time) {
	q.ahead.Store(max(q.ahead.Load(), int64(t.Sub(q.clock()))))
	q.notice()
}

// notice has the queue see its clock, which it reads in every call.
func (q *Queue) notice() { _, _ = q.Stats(context.Background()) }

// remember keeps what an event tells. It runs within the transition.
func (q *Queue) remember(e pawl.Event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch e.Type {
	case pawl.EventReplaced: // the job before it will not run
		q.enqueued = slices.DeleteFunc(q.enqueued, func(old *enqueued) bool { return old.ID == e.Job.ID })
		fallthrough
	case pawl.EventEnqueued:
		q.enqueued = append(q.enqueued, &enqueued{Envelope: *own(e.Job)})
	case pawl.EventFetched, pawl.EventSucceeded, pawl.EventSkipped, pawl.EventRetried, pawl.EventDied,
		pawl.EventReleased, pawl.EventSnoozed, pawl.EventReaped:
		q.outcomes = append(q.outcomes, outcomeOf(e))
	}
}

// own copies what an event tells of a job. Its history alone goes on changing in the
// queue.
func own(e *pawl.Envelope) *pawl.Envelope {
	c := *e
	c.History = slices.Clone(c.History)
	return &c
}
