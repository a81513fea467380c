package inline

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/engine"
	"github.com/gopawl/pawl/memory"
	"github.com/gopawl/pawl/worker"
)

func init() {
	engine.Register("inline", func(context.Context, string) (engine.Queue, error) { return New(nil), nil })
}

// Queue is a queue in memory whose Enqueue runs jobs. Make one with [New].
type Queue struct {
	*memory.Queue
	logger pawl.Logger
	closed chan struct{}

	mu      sync.Mutex // guards what follows
	workers []*worker.Worker
	ended   chan struct{}                 // closed when a lease ends, and replaced
	running int                           // calls of Enqueue that run jobs
	idle    chan struct{}                 // closed while running is 0
	waiting map[chan struct{}]func(error) // ends a waiting fetch; the key is closed when it has returned
}

// New returns an empty queue. If an option is invalid, every call returns a [*pawl.InvalidError].
func New(opts *memory.Options) *Queue {
	var o memory.Options
	if opts != nil {
		o = *opts
	}
	q := &Queue{
		logger:  o.Logger,
		closed:  make(chan struct{}),
		ended:   make(chan struct{}),
		idle:    make(chan struct{}),
		waiting: make(map[chan struct{}]func(error)),
	}
	if q.logger == nil {
		q.logger = hclog.Default()
	}
	close(q.idle)
	own := o.OnEvent
	o.OnEvent = func(e pawl.Event) {
		q.leaseEnded(e.Type)
		if own != nil {
			own(e)
		}
	}
	q.Queue = memory.New(&o)
	return q
}

// leaseEnded wakes the calls that wait for a lease to end.
func (q *Queue) leaseEnded(e pawl.EventType) {
	if e == pawl.EventEnqueued || e == pawl.EventFetched {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	close(q.ended)
	q.ended = make(chan struct{})
}

// Attach makes Enqueue run jobs with a worker of the queue. [worker.New] calls it.
func (q *Queue) Attach(w *worker.Worker) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.workers = append(q.workers, w)
}

// Close implements [memory.Queue.Close]. It does not wait for the jobs that an Enqueue runs.
func (q *Queue) Close() error {
	err := q.Queue.Close()
	q.mu.Lock()
	defer q.mu.Unlock()
	select {
	case <-q.closed:
	default:
		close(q.closed)
	}
	return err
}

// Enqueue implements [pawl.Enqueuer], and runs the jobs before it returns. The package comment has
// the rules. The error does not depend on whether the jobs succeed.
func (q *Queue) Enqueue(ctx context.Context, jobs ...*pawl.Envelope) ([]pawl.Enqueued, error) {
	if !slices.ContainsFunc(jobs, func(e *pawl.Envelope) bool { return e != nil && len(q.handling(e.Kind)) > 0 }) {
		done, err := q.Queue.Enqueue(ctx, jobs...)
		for i, d := range done {
			if err == nil && !d.Existing {
				q.left(d.ID, jobs[i])
			}
		}
		return done, err
	}
	defer q.enter()()
	done, err := q.Queue.Enqueue(ctx, jobs...)
	for i, d := range done {
		if err == nil && !d.Existing {
			q.finish(ctx, d.ID, jobs[i])
		}
	}
	return done, err
}

// handling returns the workers that handle a kind.
func (q *Queue) handling(kind string) (workers []*worker.Worker) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, w := range q.workers {
		if w.Handles(kind) {
			workers = append(workers, w)
		}
	}
	return workers
}

// left logs a job that no worker takes.
func (q *Queue) left(id pawl.ID, e *pawl.Envelope) {
	q.logger.Warn("no worker takes a job; it stays where it is", "id", id, "kind", e.Kind, "queue", cmp.Or(e.Queue, pawl.DefaultQueue))
}

// errInterrupted ends a waiting fetch when an Enqueue begins to run jobs.
var errInterrupted = errors.New("a call of Enqueue runs its jobs")

// enter keeps Run and Drain from fetching jobs until leave is called.
func (q *Queue) enter() (leave func()) {
	q.mu.Lock()
	if q.running++; q.running == 1 {
		q.idle = make(chan struct{})
	}
	var returned []chan struct{}
	for done, end := range q.waiting {
		end(errInterrupted)
		returned = append(returned, done)
	}
	q.mu.Unlock()
	for _, done := range returned {
		<-done
	}
	return func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.running--; q.running == 0 {
			close(q.idle)
		}
	}
}

// Fetch implements [pawl.Queue]. A fetch that waits gets no job while an Enqueue runs jobs.
func (q *Queue) Fetch(ctx context.Context, r pawl.Request) ([]*pawl.Lease, error) {
	if r.Wait == pawl.WaitNot {
		return q.Queue.Fetch(ctx, r) // the fetch of Enqueue itself
	}
	for {
		leases, err := q.fetch(ctx, r)
		if !errors.Is(err, errInterrupted) {
			return leases, err
		}
	}
}

// fetch is one try of Fetch. Its error matches errInterrupted if an Enqueue ended it.
func (q *Queue) fetch(ctx context.Context, r pawl.Request) ([]*pawl.Lease, error) {
	q.mu.Lock()
	if idle := q.idle; q.running > 0 {
		q.mu.Unlock()
		select {
		case <-idle:
			return nil, errInterrupted
		case <-q.closed:
			return nil, pawl.ErrClosed
		case <-ctx.Done():
			return q.Queue.Fetch(ctx, r) // it returns the error of ctx
		}
	}
	inner, end := context.WithCancelCause(ctx)
	returned := make(chan struct{})
	q.waiting[returned] = end
	q.mu.Unlock()
	defer func() {
		end(nil)
		q.mu.Lock()
		delete(q.waiting, returned)
		q.mu.Unlock()
		close(returned)
	}()
	return q.Queue.Fetch(inner, r)
}

// finish runs a job until it succeeds, becomes dead, or stays for a reason that the package comment
// gives.
func (q *Queue) finish(ctx context.Context, id pawl.ID, given *pawl.Envelope) {
	for ctx.Err() == nil {
		q.mu.Lock()
		ended := q.ended
		q.mu.Unlock()
		e, err := q.Job(ctx, id)
		if err != nil {
			return // it succeeded, or the queue is closed
		}
		switch {
		case e.State == pawl.Ready:
			if !q.run(ctx, e.Kind) {
				q.left(id, given)
				return
			}
		case e.State == pawl.Delayed && !e.BackoffSince.IsZero():
			_ = q.RunNow(ctx, id) // a retry; another call may have been first
		case e.State == pawl.Leased:
			select { // another call runs it
			case <-ended:
			case <-q.closed:
				return // nothing can settle it
			case <-ctx.Done():
			}
		default:
			return
		}
	}
}

// run runs a job of any kind with a worker that handles this kind, and reports whether there was one.
func (q *Queue) run(ctx context.Context, kind string) bool {
	for _, w := range q.handling(kind) {
		switch err := w.ProcessOnce(ctx); {
		case err == nil || ctx.Err() != nil:
			return true
		case !errors.Is(err, pawl.ErrEmpty):
			q.logger.Error("worker cannot run a job", "kind", kind, "error", err)
		}
	}
	return false
}
