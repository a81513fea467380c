package workflow

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// KindPrefix begins the kind of a run's job. The name of the flow follows.
const KindPrefix = "workflow/"

// Flow is a durable function from In to Out. Make one with [Define], once, usually as a
// package variable.
type Flow[In, Out any] struct {
	name  string
	fn    func(*Run, In) (Out, error)
	job   *pawl.Kind[struct{}]
	draft flowDraft
	err   error
}

type flowDraft struct {
	queue    string
	priority int8
	retain   time.Duration
	receives []string // names of signals
	open     openLimits
	unknown  bool // skip fields that a type lacks
	err      error
}

// Option sets one property of a flow.
type Option func(*flowDraft)

// OnQueue puts the runs of the flow on a named queue. The default is [pawl.DefaultQueue].
func OnQueue(name string) Option { return func(d *flowDraft) { d.queue = name } }

// Priority sets the rank of the runs in their queue, as [pawl.Priority] does.
func Priority(p int8) Option { return func(d *flowDraft) { d.priority = p } }

// Retain sets how long a run is kept after its end, so that its result stays available and a second
// start finds it. The default is [DefaultRetention]. [Forever] keeps the run for good. A retention
// of 0 or less is refused, since no caller would get the result of the run.
func Retain(d time.Duration) Option {
	return func(draft *flowDraft) {
		if d <= 0 && draft.err == nil {
			draft.err = &pawl.InvalidError{Field: "retention", Reason: fmt.Sprintf("%v is not a time; use Forever to keep runs for good", d)}
		}
		if d == Forever {
			d = 0 // as it is stored
		}
		draft.retain = d
	}
}

// MaxOpen limits how many runs of the flow are open at a time, from 1 to [MaxPlaces], over all processes. A run is open
// until it ends, even while it sleeps, waits, or is paused, blocked, or dead. A run with a delay is open only once it
// begins. A start beyond the limit is stored, and the run waits until another run ends. Such runs begin in the order of
// their starts. Each start and end reads up to n rows, even in a store that several processes share.
//
// The status of such a run is [Waiting], and [Info].Place says what it waits for. If it is cancelled, it ends
// immediately. The limit applies to children as well. A run that calls its own flow may wait for itself. If the limit
// changes, open runs stay open, and [Engine.Handle] lets as many runs begin as the new limit permits. Runs that began
// before their flow had a limit do not count.
func MaxOpen(n int) Option {
	return func(d *flowDraft) { d.limit("the limit of open runs", &d.open.flow, n) }
}

// MaxOpenPerKey limits how many runs of the flow with the same [Key] are open at a time, as [MaxOpen] does for all
// runs. With a limit of 1, a run has its key for itself until it ends, even while it sleeps. Runs without a key are not
// limited. With both limits, a run takes the place of its key first, so a key with many runs does not delay others.
func MaxOpenPerKey(n int) Option {
	return func(d *flowDraft) { d.limit("the limit of open runs per key", &d.open.key, n) }
}

// StartRate limits how many runs of the flow start in a period, over all processes: no period of length Per has more
// than Starts starts. For Burst see [pawl.Rate]; a run has no cost, so MaxCost is 0 or 1. A run starts when a worker
// has it for the first time and its turn has come. Restarts, resumes, and attempts after a crash do not count. Forks
// and children do.
//
// Runs wait in the order of their calls of [Flow.Start]. The status of such a run is [Waiting], [Info].Rate says what
// it waits for, and [Info].Due is the earliest time at which it starts. It starts by itself, and stays in line through
// restarts of the app. If the flow also has [MaxOpen], a run takes its place when it starts. A run that is paused,
// blocked, or dead when its turn comes goes to the end of the line once it is resumed. A cancel ends a waiting run
// immediately.
//
// A changed rate applies to later starts. If the clock is set back, starts continue within some minutes after the time
// of a burst.
func StartRate(r pawl.Rate) Option {
	return func(d *flowDraft) { d.rate(r, &d.open.flowPace) }
}

// StartRatePerKey limits how many runs of the flow with the same [Key] start in a period, as [StartRate] does for all
// runs. Runs without a key are not limited. With both rates, a run waits for the rate of its key first, so a key with
// many runs does not delay others.
func StartRatePerKey(r pawl.Rate) Option {
	return func(d *flowDraft) { d.rate(r, &d.open.keyPace) }
}

func (d *flowDraft) rate(r pawl.Rate, of *driver.Pace) {
	err := pawl.Limits{Rate: r}.Validate()
	switch {
	case err == nil && r.Starts == 0:
		err = &pawl.InvalidError{Field: "Rate", Reason: "it has no Starts; leave the option out for no limit"}
	case err == nil && r.MaxCost > 1:
		err = &pawl.InvalidError{Field: "Rate", Reason: fmt.Sprintf("MaxCost is %d, and runs have no cost; leave it out", r.MaxCost)}
	}
	if err != nil && d.err == nil {
		d.err = err
	}
	if err == nil {
		*of = driver.PaceOf(r)
	}
}

func (d *flowDraft) limit(field string, of *int, n int) {
	if *of = n; (n < 1 || n > MaxPlaces) && d.err == nil {
		d.err = &pawl.InvalidError{Field: field, Reason: fmt.Sprintf("%d is not between 1 and %d; leave it out for no limit", n, MaxPlaces)}
	}
}

// AllowUnknownFields lets runs continue if a value that they read has fields that its type lacks.
// The fields are skipped. It applies to inputs, results of steps and children, signals, and
// [Handle.Result]. Use it for a flow as long as journals may have a removed field.
func AllowUnknownFields() Option { return func(d *flowDraft) { d.unknown = true } }

// Define makes the flow called name. The first use of the flow reports a bad name or option as
// a [*pawl.InvalidError].
func Define[In, Out any](name string, fn func(*Run, In) (Out, error), opts ...Option) *Flow[In, Out] {
	f := &Flow[In, Out]{name: name, fn: fn, draft: flowDraft{queue: pawl.DefaultQueue, retain: DefaultRetention}}
	for _, opt := range opts {
		opt(&f.draft)
	}
	f.err = validName("flow", name)
	if f.err == nil && fn == nil {
		f.err = &pawl.InvalidError{Field: "flow", Reason: "its function is nil"}
	}
	if f.err == nil {
		f.err = driver.CheckQueue(f.draft.queue)
	}
	if f.err == nil {
		f.err = f.draft.err
	}
	f.job = pawl.Define[struct{}](KindPrefix+name, pawl.OnQueue(f.draft.queue), pawl.Priority(f.draft.priority),
		pawl.MaxRetries(pawl.MaxMaxRetries))
	return f
}

// Name returns the name of the flow.
func (f *Flow[In, Out]) Name() string { return f.name }

func (f *Flow[In, Out]) problem() error             { return f.err }
func (f *Flow[In, Out]) kind() *pawl.Kind[struct{}] { return f.job }
func (f *Flow[In, Out]) signals() []string          { return f.draft.receives }
func (f *Flow[In, Out]) openLimits() openLimits     { return f.draft.open }
func (f *Flow[In, Out]) input() reflect.Type        { return reflect.TypeFor[In]() }

func (f *Flow[In, Out]) decode(b []byte, v any) error {
	if f.draft.unknown {
		return driver.DecodeKnown(b, v)
	}
	return driver.DecodePayload(b, v)
}

// start calls the function.
func (f *Flow[In, Out]) start(r *Run, input []byte) ([]byte, error) {
	var in In
	if err := r.x.decode(input, &in); err != nil {
		return nil, r.x.mismatch(&DeterminismError{Want: "an input of another type", Got: fmt.Sprintf("the type %T", in),
			Reason: err.Error() + "; read the old type too, or give the flow AllowUnknownFields if a field was removed; Restart has to be called with the type of the flow"})
	}
	out, err := f.fn(r, in)
	if err != nil {
		return nil, err
	}
	return r.x.encode("the result", out)
}

// Start starts a run and returns when it is durable. The caller chooses the ID, which names the
// run within the flow. If a run with that ID and the same input exists, ended or not, Start
// returns it and starts nothing. If the input differs, it returns [ErrConflict]. Inputs are the
// same if the flow's type reads the same value from both. A field that the type lacked when the
// run began counts as zero. A nil slice or map differs from an empty one. See [StartOption] for
// options.
func (f *Flow[In, Out]) Start(ctx context.Context, e *Engine, id string, in In, opts ...StartOption) (*Handle[Out], error) {
	s, err := f.prepare(e, id, in, opts, e.headers(ctx)...)
	if err != nil {
		return nil, err
	}
	before := e.hub.now()
	if err := e.queue.Mutate(ctx, s, s.size()); err != nil {
		return nil, f.refused(id, err)
	}
	h := f.handle(e, s.run, id)
	if s.new {
		h.started = before
	}
	return h, nil
}

// StartTx starts a run as part of an app's transaction, as [Flow.Start] does. After any error
// other than [ErrConflict] and errors about bad arguments, the app must roll the transaction
// back.
func StartTx[Tx, In, Out any](tx Tx, e *Engine, f *Flow[In, Out], id string, in In, opts ...StartOption) (*Handle[Out], error) {
	q, err := transactor[Tx](e)
	if err != nil {
		return nil, err
	}
	s, err := f.prepare(e, id, in, opts)
	if err != nil {
		return nil, err
	}
	if err := q.MutateTx(tx, s); err != nil {
		return nil, f.refused(id, err)
	}
	return f.handle(e, s.run, id), nil
}

func (f *Flow[In, Out]) handle(e *Engine, run pawl.ID, id string) *Handle[Out] {
	return &Handle[Out]{engine: e, run: run, flow: f.name, id: id, decode: f.decode}
}

// refused returns the error of a run that was not started.
func (f *Flow[In, Out]) refused(id string, err error) error {
	if errors.Is(err, ErrConflict) {
		err = fmt.Errorf("%w, which has another input", err)
	}
	return fmt.Errorf("start workflow %s %q: %w", f.name, id, err)
}

// prepare does the work that needs no transaction.
func (f *Flow[In, Out]) prepare(e *Engine, id string, in In, opts []StartOption, ofJob ...pawl.Option) (*start, error) {
	if f.err != nil {
		return nil, fmt.Errorf("flow %q: %w", f.name, f.err)
	}
	if err := validID(id); err != nil {
		return nil, err
	}
	o, err := e.startOptions(opts)
	if err != nil {
		return nil, err
	}
	input, err := encode("the input", in)
	if err != nil {
		return nil, err
	}
	job, err := e.envelope(f.job, pawl.NewID(e.now()), ofJob...)
	if err != nil {
		return nil, err
	}
	s := &start{job: job, input: input, reread: reread[In], limits: f.draft.open, row: runRow{
		Flow: f.name, ID: id, Status: Running, Queue: job.Queue, Retain: int64(f.draft.retain),
		OutputBytes: -1, Declared: f.draft.receives, Key: o.key, Attributes: o.attributes,
	}}
	o.apply(s)
	return s, s.encode(e)
}

// reread re-encodes an input as this build reads it.
func reread[In any](stored []byte) ([]byte, error) {
	var in In
	if err := driver.DecodeKnown(stored, &in); err != nil {
		return nil, err
	}
	return driver.EncodePayload(in)
}

// Handle returns the run with an ID. It returns [ErrNotFound] if there is none, or if it was
// removed.
func (f *Flow[In, Out]) Handle(ctx context.Context, e *Engine, id string) (*Handle[Out], error) {
	run, err := e.Find(ctx, f.name, id)
	if err != nil {
		return nil, err
	}
	return f.handle(e, run, id), nil
}
