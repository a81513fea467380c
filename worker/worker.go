package worker

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// ErrHandlerExists says that two handlers were registered for one kind.
var ErrHandlerExists = errors.New("kind has a handler already")

// Worker runs jobs. Register handlers with [Handle], then call [Worker.Run],
// [Worker.Drain] or [Worker.ProcessOnce].
type Worker struct {
	queue    pawl.Queue
	opts     Options
	request  pawl.Request // what all fetches have in common
	handlers map[string]handler
	needs    pawl.Ability // abilities that its handlers need from the queue
	errs     []error      // mistakes in the registration
	started  atomic.Bool
	fetching atomic.Int32 // calls of Run and Drain that fetch
	running  running
}

// handler runs jobs of one kind, whatever their type.
type handler struct {
	policy pawl.Policy // policy of the kind, or nil
	needs  []string    // of the kind
	run    HandlerFunc // handler wrapped in the middleware
	decode func(payload []byte) error
}

// New makes a worker for q. If the options are wrong, [Worker.Run], [Worker.Drain], and
// [Worker.ProcessOnce] return the error.
func New(q pawl.Queue, opts *Options) *Worker {
	w := &Worker{queue: q, handlers: make(map[string]handler)}
	if q == nil {
		w.refuse(&pawl.InvalidError{Field: "queue", Reason: "it is nil"})
	}
	if opts != nil {
		w.opts = *opts
	}
	w.request = w.opts.complete(w.refuse)
	if q, ok := q.(interface{ Attach(w *Worker) }); ok { // package inline runs jobs with it
		q.Attach(w)
	}
	return w
}

func (w *Worker) refuse(err error) { w.errs = append(w.errs, err) }

// Handle registers the handler of a kind, and of the former names of the kind; see
// [pawl.Alias]. The worker returns an error for mistakes when it starts, before it touches
// a job: [ErrHandlerExists] for a kind that has a handler already, and an
// [*pawl.InvalidError] for a kind with a bad definition. Register everything before the
// worker starts: a later handler is logged as an error and not used.
//
// A job whose arguments do not fit T does not run: it becomes dead with
// [pawl.ReasonPayload], and counts no attempt.
func Handle[T any](w *Worker, k *pawl.Kind[T], fn func(ctx context.Context, job *pawl.Job[T]) error) {
	policy, err := k.Policy()
	if err == nil && fn == nil {
		err = &pawl.InvalidError{Field: "handler", Reason: "it is nil"}
	}
	if err != nil {
		w.refuse(fmt.Errorf("handler of kind %q: %w", k.Name(), err))
		return
	}
	if w.started.Load() {
		w.opts.Logger.Error("a handler was registered after its worker had started; it is not used", "kind", k.Name())
		return
	}
	names := append(k.Aliases(), k.Name())
	for _, name := range names {
		if w.Handles(name) {
			w.refuse(fmt.Errorf("handler of kind %q: %w; register one per worker", name, ErrHandlerExists))
			return
		}
	}
	run := wrap(w.opts.Middleware, func(ctx context.Context, l *pawl.Lease) error {
		job, err := k.Job(l.Envelope)
		if err != nil {
			return &payloadError{err}
		}
		job.Lease = l
		return fn(ctx, job)
	})
	if run == nil {
		w.refuse(fmt.Errorf("handler of kind %q: %w", k.Name(),
			&pawl.InvalidError{Field: "Middleware", Reason: "it returned no handler"}))
		return
	}
	decode := func(payload []byte) error {
		_, err := k.Job(&pawl.Envelope{Kind: k.Name(), Payload: payload})
		return err
	}
	for _, name := range names {
		w.handlers[name] = handler{policy, k.Needs(), run, decode}
	}
}

// HandleTask is [Handle] for a task, whose handler returns a result. The commit of the ack stores
// the result. If the result cannot be stored (see [pawl.Task.SetResult]), the job becomes dead: its
// effect took place, and another attempt would repeat it. On a queue without [pawl.Results], the start
// of the worker returns an error.
func HandleTask[In, Out any](w *Worker, t *pawl.Task[In, Out], fn func(ctx context.Context, job *pawl.Job[In]) (Out, error)) {
	if _, err := t.Policy(); err != nil {
		w.refuse(fmt.Errorf("handler of kind %q: %w", t.Name(), err))
		return
	}
	if fn == nil {
		Handle[In](w, t.Kind, nil)
		return
	}
	w.needs |= pawl.Results
	Handle(w, t.Kind, func(ctx context.Context, job *pawl.Job[In]) error {
		out, err := fn(ctx, job)
		if err != nil || driver.Settled(job.Lease) {
			return err
		}
		if err := t.SetResult(job.Lease, out); err != nil {
			return pawl.Permanent(err)
		}
		return nil
	})
}

// Handles reports whether the worker has a handler for a kind. It is for packages that register
// handlers and return an error if there is one already.
func (w *Worker) Handles(kind string) bool {
	_, ok := w.handlers[kind]
	return ok
}

// Run works until ctx ends, then stops: it fetches no more, lets running handlers finish
// for Options.Drain, ends their contexts, waits for Options.StopGrace, and releases the
// jobs that are not settled, within 1.5 s. A job that a stop interrupts counts neither
// an attempt nor a crash. Run then returns nil. After that, no goroutine of the worker
// runs, except handlers that did not return; see [Worker.Stuck].
//
// It returns an error immediately if handlers or options are wrong. If the queue was closed
// ([pawl.ErrClosed]), refuses all work ([pawl.ErrPoisoned]), or lacks an ability that the
// options need ([pawl.ErrUnsupported]), Run stops in the same way and returns that error.
func (w *Worker) Run(ctx context.Context) error {
	err := w.work(ctx, pawl.WaitForJob)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}

// Drain works like [Worker.Run], but returns nil as soon as the queues are empty. With
// [pawl.WaitDrained], empty means no ready and no leased jobs. With [pawl.WaitFinished], it also
// means no delayed jobs, so Drain waits for every retry. Drain waits for the jobs of a paused
// queue and for jobs that wait for a dead one ([pawl.OrderHold], [pawl.After]), but not for jobs
// of kinds that the worker does not handle, or whose gate is closed.
//
// If ctx ends first, Drain stops and returns ctx's error. If stuck handlers take every slot, Drain
// waits until ctx ends.
func (w *Worker) Drain(ctx context.Context, until pawl.Wait) error {
	if until != pawl.WaitDrained && until != pawl.WaitFinished {
		return &pawl.InvalidError{Field: "until", Reason: "it is neither pawl.WaitDrained nor pawl.WaitFinished"}
	}
	return w.work(ctx, until)
}

func (w *Worker) work(ctx context.Context, until pawl.Wait) error {
	s, err := w.start(ctx)
	if err != nil {
		return err
	}
	defer s.watchGates()()
	return s.work(ctx, func() error {
		w.fetching.Add(1)
		defer w.fetching.Add(-1)
		return s.fetchUntil(ctx, until)
	})
}

// Running reports whether [Worker.Run] or [Worker.Drain] fetches jobs: from its start until its stop
// begins or its queues are empty. It is for readiness checks; see package metrics.
func (w *Worker) Running() bool { return w.fetching.Load() > 0 }

// start checks the registration.
func (w *Worker) start(ctx context.Context) (*session, error) {
	if err := errors.Join(w.errs...); err != nil {
		return nil, fmt.Errorf("start worker: %w", err)
	}
	if len(w.handlers) == 0 {
		return nil, fmt.Errorf("start worker: %w", &pawl.InvalidError{
			Field: "worker", Reason: "it has no handler and would fetch nothing; register one with worker.Handle"})
	}
	if err := w.checkGates(); err != nil {
		return nil, fmt.Errorf("start worker: %w", err)
	}
	if err := pawl.Require(w.queue, w.needs); err != nil {
		return nil, fmt.Errorf("start worker: %w", err)
	}
	w.started.Store(true)
	return newSession(ctx, w), nil
}

// ProcessOnce runs one job, if one is ready, and settles it before it returns. It returns
// [pawl.ErrEmpty] if none was ready. It does not return the error of the handler, which is stored
// in the history of the job.
func (w *Worker) ProcessOnce(ctx context.Context) error {
	s, err := w.start(ctx)
	if err != nil {
		return err
	}
	return s.work(ctx, func() error { return s.fetchOne(ctx) })
}

// Stuck returns how many handlers ignore the end of their contexts: they have not returned, and the
// worker has settled their jobs without them. Each takes a slot of the Run that started it. Handlers
// that an earlier Run left behind count, too.
func (w *Worker) Stuck() int { return w.running.stuckNow() }
