package worker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl"
)

// ErrHandlerExists says that two handlers were registered for one kind.
var ErrHandlerExists = errors.New("kind has a handler already")

// Options are the settings of a worker. A nil *Options, and every zero field, means
// the default.
type Options struct {
	// Queues names the queues to work on; they take turns. The default is
	// pawl.DefaultQueue. Workers on one queue of a file should handle the same
	// kinds: a worker parks what it has no handler for.
	Queues []string

	// Concurrency is how many handlers run at once. The default is GOMAXPROCS.
	Concurrency int

	// Timeout bounds a run whose job has no timeout. The default is none.
	Timeout time.Duration

	// Policy is for jobs that have none and whose kind has none. The default is
	// pawl.DefaultStrategy.
	Policy pawl.Policy

	// Drain is how long a stop lets running handlers work on before their contexts
	// end. The default is 10 s.
	Drain time.Duration

	// StopGrace is how long a stop then waits for them before it releases their jobs
	// and returns. The default is 5 s.
	StopGrace time.Duration

	// HungGrace is how long a handler may go on after its timeout before its attempt
	// is counted as failed. Its slot stays taken until it returns, and its job does
	// not run again in this call of Run before that. The default is 30 s.
	HungGrace time.Duration

	// Logger gets a line for each failed attempt, and for what went wrong in the
	// worker. The default is hclog.Default().
	Logger hclog.Logger
}

// Worker runs jobs. Register handlers with [Handle], then call [Worker.Run],
// [Worker.Drain] or [Worker.ProcessOnce].
type Worker struct {
	queue    pawl.Queue
	opts     Options
	handlers map[string]handler
	errs     []error // what was wrong with the registration
	started  atomic.Bool
}

// handler runs jobs of one kind, whatever their type.
type handler struct {
	policy pawl.Policy // the kind's, or nil
	run    func(ctx context.Context, e *pawl.Envelope) error
}

// New makes a worker over q.
func New(q pawl.Queue, opts *Options) *Worker {
	w := &Worker{queue: q, handlers: make(map[string]handler)}
	if opts != nil {
		w.opts = *opts
	}
	o := &w.opts
	for _, limit := range [...]struct {
		name string
		d    time.Duration
	}{{"Timeout", o.Timeout}, {"Drain", o.Drain}, {"StopGrace", o.StopGrace}, {"HungGrace", o.HungGrace}} {
		if limit.d < 0 {
			w.refuse(&pawl.InvalidError{Field: limit.name, Reason: fmt.Sprintf("%v is negative", limit.d)})
		}
	}
	if q == nil {
		w.refuse(&pawl.InvalidError{Field: "queue", Reason: "it is nil"})
	}
	if o.Concurrency < 0 {
		w.refuse(&pawl.InvalidError{Field: "Concurrency", Reason: fmt.Sprintf("%d is negative", o.Concurrency)})
	}
	var err error
	if o.Policy, err = pawl.CheckPolicy(o.Policy); err != nil {
		w.refuse(err)
	}
	if len(o.Queues) == 0 {
		o.Queues = []string{pawl.DefaultQueue}
	}
	for _, name := range o.Queues {
		if err := pawl.ValidQueue(name); err != nil {
			w.refuse(err)
		}
	}
	setDefault(&o.Concurrency, runtime.GOMAXPROCS(0))
	setDefault(&o.Drain, 10*time.Second)
	setDefault(&o.StopGrace, 5*time.Second)
	setDefault(&o.HungGrace, 30*time.Second)
	if o.Policy == nil {
		o.Policy = pawl.DefaultStrategy()
	}
	if o.Logger == nil {
		o.Logger = hclog.Default()
	}
	return w
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func (w *Worker) refuse(err error) { w.errs = append(w.errs, err) }

// Handle registers the handler of a kind. Mistakes are reported when the worker
// starts, before it touches a job: [ErrHandlerExists] for a kind that has one, an
// [*pawl.InvalidError] for a kind that was defined badly. Register everything
// before the worker starts: a later handler is logged as an error and not used.
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
	if _, ok := w.handlers[k.Name()]; ok {
		w.refuse(fmt.Errorf("handler of kind %q: %w; register one per worker", k.Name(), ErrHandlerExists))
		return
	}
	w.handlers[k.Name()] = handler{policy, func(ctx context.Context, e *pawl.Envelope) error {
		job, err := k.Job(e)
		if err != nil {
			return pawl.Permanent(err) // the same bytes will not decode next time either
		}
		return fn(ctx, job)
	}}
}

// kinds are those that the worker handles, sorted.
func (w *Worker) kinds() []string { return slices.Sorted(maps.Keys(w.handlers)) }

// Run works until ctx ends, then stops: it fetches no more, lets running handlers
// finish for Options.Drain, ends their contexts, waits for Options.StopGrace, and
// releases the jobs that did not settle, for which it waits that long again. It then returns nil, and nothing of the
// worker runs any more but handlers that did not return.
//
// It returns an error at once when handlers or options are wrong, and after a stop
// of the same kind when the queue was closed ([pawl.ErrClosed]) or is beyond use
// ([pawl.ErrPoisoned]).
func (w *Worker) Run(ctx context.Context) error {
	err := w.work(ctx, pawl.WaitForJob)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}

// Drain works like [Worker.Run] but returns nil as soon as the queues are empty, as
// until says: pawl.WaitDrained waits for ready and leased jobs,
// pawl.WaitFinished also for delayed ones, thus for every retry. Parked jobs stay.
// When ctx ends first it stops and returns ctx's error; while every slot is taken
// by a handler that ignores its timeout, nothing else ends it.
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
	return s.work(ctx, func() error { return s.fetchUntil(ctx, until) })
}

// start checks the registration and makes jobs ready that waited for its kinds.
func (w *Worker) start(ctx context.Context) (*session, error) {
	if err := errors.Join(w.errs...); err != nil {
		return nil, fmt.Errorf("start worker: %w", err)
	}
	if len(w.handlers) == 0 {
		return nil, fmt.Errorf("start worker: %w", &pawl.InvalidError{
			Field: "worker", Reason: "it has no handler and would park every job; register one with worker.Handle"})
	}
	w.started.Store(true)
	if _, err := w.queue.Unpark(ctx, w.kinds()...); err != nil {
		return nil, fmt.Errorf("start worker: %w", err)
	}
	return newSession(ctx, w), nil
}

// ProcessOnce runs one job, if one is ready, and settles it before it returns.
// [pawl.ErrEmpty] says that none was ready. What the handler returned is the
// queue's affair: it does not come back as an error.
func (w *Worker) ProcessOnce(ctx context.Context) error {
	s, err := w.start(ctx)
	if err != nil {
		return err
	}
	return s.work(ctx, func() error { return s.fetchOne(ctx) })
}
