package workflow

import (
	"context"
	"errors"
	"slices"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// SendFrom sends the signal from one run to another. It is a step named "send" and the name of the signal,
// with a space between. One commit stores the end of the step and the signal, so the other run receives the
// signal once, even after a crash. The error is a *StepError that matches [ErrNotFound], [ErrNotRunning],
// [ErrUndeclared], or [ErrTooLarge]. Any other error means that the run does not continue now: return it.
func (s *Signal[T]) SendFrom(r *Run, run pawl.ID, value T) error {
	if s.err != nil {
		return s.err
	}
	return r.s.within("send "+s.name, decodeNothing, func(context.Context) (*effect, error) {
		m, err := s.prepare(r.x.engine, run, value, "")
		if err != nil {
			return nil, err
		}
		return &effect{m, m.size(), func() any { return struct{}{} }, m.refused}, nil
	})
}

// StartFrom starts a run of the flow from another run. It is a step named "start" and the name of the flow, with a
// space between. One commit stores the end of the step and the start. StartFrom does not wait for the new run, which is
// independent of the run that started it; see [Call] for a child. As with [Flow.Start], if a run has the ID and the
// same input, StartFrom returns it and starts nothing. The error is a *StepError that matches [ErrConflict],
// [pawl.ErrInvalid] for a bad ID or option, or with [Signal.WithStart] an error of [Signal.SendFrom]. Any other error
// means that the run does not continue now: return it.
func (f *Flow[In, Out]) StartFrom(r *Run, id string, in In, opts ...StartOption) (run pawl.ID, err error) {
	err = r.s.within("start "+f.name, r.decodeInto(&run), func(ctx context.Context) (*effect, error) {
		e := r.x.engine
		m, err := f.prepare(e, id, in, opts, e.headers(ctx)...)
		if err != nil {
			return nil, err
		}
		return &effect{m, m.size(), func() any { return m.run }, func(err error) error { return f.refused(id, err) }}, nil
	})
	if err != nil {
		return pawl.ID{}, err
	}
	return run, nil
}

// effect is what a step does to another run.
type effect struct {
	driver.Declared
	size    int               // roughly how many bytes it writes
	result  func() any        // result of the step, after Check
	refused func(error) error // completes an error of Check with what was refused
}

// within is a step whose effect is committed together with its end.
func (s *scope) within(name string, decode func([]byte) error, prepare func(context.Context) (*effect, error)) error {
	return s.step(KindStep, name, nil, decode, func(ctx context.Context, c *call, info StepInfo) ([]byte, error) {
		saved := false
		result, err := c.x.invoke(ctx, info, func(ctx context.Context, _ StepInfo) (any, error) {
			e, err := prepare(ctx)
			if err != nil {
				return nil, decided(c.x.codecStops(err))
			}
			if err := c.commit(ctx, e); err != nil {
				return nil, err
			}
			saved = true
			return e.result(), decode(c.e.Result)
		})
		if saved { // whatever the middleware returned
			return nil, errSaved
		}
		return result, err
	})
}

// commit carries out the effect of a step and ends the step, in one mutation.
func (c *call) commit(ctx context.Context, e *effect) error {
	x := c.x
	x.mu.Lock()
	m := &within{effect: e, checkpoint: checkpoint{x.lease, x.take()}, c: c}
	x.mu.Unlock()
	err := x.mutate(ctx, m, m.journal.bytes+e.size)
	switch {
	case m.refused != nil:
		return decided(x.codecStops(e.refused(m.refused)))
	case errors.Is(err, pawl.ErrNotAccepted):
		return err // the context has ended, and nothing has begun
	case err != nil:
		return x.stop(err)
	}
	c.become(&m.ended)
	x.mu.Lock()
	x.bytes += c.e.weight()
	x.mu.Unlock()
	return nil
}

// within is the mutation that carries out the effect of a step and ends the step.
type within struct {
	*effect
	checkpoint
	c *call

	refused error // the error of the effect
	ended   entry
}

// Declare declares the run, and what the effect touches.
func (w *within) Declare(n *driver.Needs) {
	w.checkpoint.Declare(n)
	w.effect.Declare(n)
}

// Check requires the lease and checks the effect.
func (w *within) Check(ops driver.Ops) error {
	w.refused = nil
	if err := w.checkpoint.Check(ops); err != nil {
		return err
	}
	if w.refused = w.effect.Check(ops); w.refused != nil {
		return w.refused
	}
	result, err := driver.EncodePayload(w.result())
	if err != nil {
		return err
	}
	w.ended = *w.c.e
	w.ended.Attempts++
	w.ended.finish(result, ops.Now())
	return nil
}

// Apply writes the end of the step and the effect.
func (w *within) Apply(tx driver.Writer) error {
	if err := w.checkpoint.Apply(tx); err != nil {
		return err
	}
	var own journal
	own.add(w.c.x.run, &w.ended)
	if err := own.apply(rowsTo(tx)); err != nil {
		return err
	}
	return w.effect.Apply(tx)
}

// decided makes an error permanent that another attempt would return too.
func decided(err error) error {
	final := []error{ErrNotFound, ErrNotRunning, ErrUndeclared, ErrTooLarge, ErrConflict, pawl.ErrInvalid}
	if slices.ContainsFunc(final, func(each error) bool { return errors.Is(err, each) }) {
		return pawl.Permanent(err)
	}
	return err
}
