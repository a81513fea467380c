package workflow

import (
	"context"
	"errors"
	"slices"

	"github.com/gopawl/pawl"
)

// SendFrom sends the signal from one run to another, as a step whose name is send, a space, and
// that of the signal. The other run receives it once, whatever crashes. The error is a *StepError
// that matches [ErrNotFound], [ErrNotRunning], [ErrUndeclared], or [ErrTooLarge].
// Any other error means that the run does not continue now: return it.
func (s *Signal[T]) SendFrom(r *Run, run pawl.ID, value T) error {
	if s.err != nil {
		return s.err
	}
	_, err := Step(r, "send "+s.name, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, decided(s.Send(ctx, r.x.engine, run, value, r.Key()))
	})
	return err
}

// StartFrom starts a run of the flow from a run, as a step whose name is start, a space, and that
// of the flow. It does not wait for the run, which continues whatever becomes of the one that
// started it; see [Call] for a child. As with [Flow.Start], a run that has the ID and the same
// input is found, and not started again. The error is a *StepError that matches [ErrConflict],
// [pawl.ErrInvalid] for a bad ID or option, or with [Signal.WithStart] an error of [Signal.SendFrom].
// Any other error means that the run does not continue now: return it.
func (f *Flow[In, Out]) StartFrom(r *Run, id string, in In, opts ...StartOption) (run pawl.ID, err error) {
	return Step(r, "start "+f.name, func(ctx context.Context) (pawl.ID, error) {
		h, err := f.Start(ctx, r.x.engine, id, in, append(slices.Clone(opts), fromStep(r.Key()))...)
		if err != nil {
			return pawl.ID{}, decided(err)
		}
		return h.run, nil
	})
}

// decided makes an error permanent that another attempt would return too.
func decided(err error) error {
	final := []error{ErrNotFound, ErrNotRunning, ErrUndeclared, ErrTooLarge, ErrConflict, pawl.ErrInvalid}
	if slices.ContainsFunc(final, func(each error) bool { return errors.Is(err, each) }) {
		return pawl.Permanent(err)
	}
	return err
}
