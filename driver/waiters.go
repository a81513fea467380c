package driver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gopawl/pawl"
)

// Waiters are the calls of [pawl.Awaiter] that wait at a queue. After each commit the queue reports
// to them what ended: [Waiters.Report] and [Waiters.Look]. Without a waiting call that costs one
// atomic read. The zero value has none.
type Waiters struct {
	waiting atomic.Int64
	mu      sync.Mutex
	byID    map[pawl.ID][]*waiter
}

// waiter is one call. Its channel gets the job of an event that ended it, or nil to look again.
type waiter struct{ ended chan *pawl.Envelope }

// Awaitable is what [Waiters] need from a queue.
type Awaitable interface {
	Job(ctx context.Context, id pawl.ID) (*pawl.Envelope, error)
	Done() <-chan struct{}
}

// Await implements [pawl.Awaiter] for a queue. Again is how long a call waits before it looks
// again, for a queue that several processes share, since notifications of other processes may get
// lost. Other queues give 0. Await leaves no goroutine behind.
func (ws *Waiters) Await(ctx context.Context, q Awaitable, id pawl.ID, again time.Duration) (*pawl.Envelope, error) {
	w := ws.join(id) // before the first look: what the look does not see is reported
	defer ws.leave(id, w)
	var tick <-chan time.Time
	if again > 0 {
		ticker := time.NewTicker(again)
		defer ticker.Stop()
		tick = ticker.C
	}
	var last, end *pawl.Envelope // as the last look saw it; as a report says
	for {
		e, err := q.Job(ctx, id)
		switch {
		case err == nil && (e.State == pawl.Dead || e.State == pawl.Completed):
			return e, nil
		case end != nil:
			return end, nil // its record is gone, or it was retried meanwhile
		case errors.Is(err, pawl.ErrNotFound) && last != nil:
			return gone(last, again > 0)
		case err != nil:
			return nil, err
		}
		last = e
		select {
		case <-ctx.Done():
			return w.last(ctx.Err())
		case <-q.Done():
			return w.last(stopped(q))
		case <-tick:
		case end = <-w.ended:
		}
	}
}

// last returns an end that was reported before the call gave up, or else an error.
func (w *waiter) last(err error) (*pawl.Envelope, error) {
	select {
	case end := <-w.ended:
		if end != nil {
			return end, nil
		}
	default:
	}
	return nil, err
}

// stopped returns why a queue has stopped.
func stopped(q Awaitable) error {
	if q, ok := q.(interface{ Err() error }); ok {
		if err := q.Err(); err != nil {
			return err
		}
	}
	return pawl.ErrClosed
}

// gone returns a job whose record disappeared while a call waited, without a report. The job has
// succeeded: only an operator removes a dead job, and a death is reported. In a queue that several
// processes share, the report may come too late.
func gone(last *pawl.Envelope, shared bool) (*pawl.Envelope, error) {
	if shared {
		return nil, fmt.Errorf("job %s: %w: it was there, and its record is gone; give it a retention, so that its end can be seen", last.ID, pawl.ErrNotFound)
	}
	e := *last
	e.State, e.Payload, e.Completed = pawl.Completed, nil, time.Now()
	return &e, nil
}

// Any reports whether a call waits.
func (ws *Waiters) Any() bool { return ws.waiting.Load() > 0 }

// Report gives the end of a job to the calls that wait for it. A queue reports each death, each
// skipped job, and each success with a result, even if it has no listeners.
func (ws *Waiters) Report(e pawl.Event) {
	if !ws.Any() || e.Type != pawl.EventSucceeded && e.Type != pawl.EventSkipped && e.Type != pawl.EventDied {
		return
	}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if all := ws.byID[e.Job.ID]; len(all) > 0 {
		end := endOf(e)
		for _, w := range all {
			w.wake(end)
		}
	}
}

// Look makes the calls that wait for some jobs look again. A queue names the jobs whose leases
// ended.
func (ws *Waiters) Look(ids ...pawl.ID) {
	if !ws.Any() {
		return
	}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for _, id := range ids {
		for _, w := range ws.byID[id] {
			w.wake(nil)
		}
	}
}

// LookAll makes all calls look again.
func (ws *Waiters) LookAll() {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for _, all := range ws.byID {
		for _, w := range all {
			w.wake(nil)
		}
	}
}

// endOf returns the job of an event that ended it.
func endOf(e pawl.Event) *pawl.Envelope {
	job := *e.Job
	job.Payload = nil
	if e.Type == pawl.EventDied {
		job.State, job.History = pawl.Dead, nil
		if e.Cause != "" {
			job.History = []pawl.Failure{{Attempt: job.Attempts, At: e.At, Error: e.Cause}}
		}
		return &job
	}
	if job.State = pawl.Completed; job.Completed.IsZero() {
		job.Completed = e.At
	}
	return &job
}

// wake gives the call an end, or nil to make it look again, unless it has something already. The
// caller holds the mutex of the waiters, so nobody else sends.
func (w *waiter) wake(end *pawl.Envelope) {
	select {
	case old := <-w.ended:
		if old != nil {
			end = old
		}
	default:
	}
	w.ended <- end
}

func (ws *Waiters) join(id pawl.ID) *waiter {
	w := &waiter{make(chan *pawl.Envelope, 1)}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.byID == nil {
		ws.byID = make(map[pawl.ID][]*waiter)
	}
	ws.byID[id] = append(ws.byID[id], w)
	ws.waiting.Add(1)
	return w
}

func (ws *Waiters) leave(id pawl.ID, w *waiter) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.waiting.Add(-1)
	left := slices.DeleteFunc(ws.byID[id], func(other *waiter) bool { return other == w })
	if ws.byID[id] = left; len(left) == 0 {
		delete(ws.byID, id)
	}
}
