package workflow

import (
	"context"
	"errors"
	"fmt"

	"github.com/gopawl/pawl"
)

// ErrNoFlow says that no flow of that name was passed to [Engine.Handle] of this engine or of
// another engine over the same queue.
var ErrNoFlow = errors.New("this build does not have the flow")

// Verify compares an open run with the code of this build: it calls the function, whose calls
// return the results in the journal, and ends where the journal ends. No step runs and nothing
// is written. It returns nil if they match and a [*DeterminismError] if they do not. Other
// errors are [ErrNotFound], [ErrNotRunning], [ErrNoFlow], and a panic of the code.
//
// Before you deploy a new build, use it to verify every open run in a backup of the file. Runs
// that do not match would be blocked.
func (e *Engine) Verify(ctx context.Context, run pawl.ID) error {
	x, input, err := e.dry(ctx, run)
	switch {
	case err != nil:
		return fmt.Errorf("verify run %s: %w", run, err)
	case !x.row.open():
		return fmt.Errorf("run %s: %w", run, ErrNotRunning)
	}
	_, err = x.compareCalls(ctx, input)
	return err
}

// dry returns an execution that compares the code with the journal and writes nothing.
func (e *Engine) dry(ctx context.Context, run pawl.ID) (x *execution, input []byte, err error) {
	x = newExecution(ctx, e, nil, run, nil)
	input, err = x.load(ctx)
	if err == nil && x.row == nil {
		err = ErrNotFound
	}
	return x, input, err
}

// compareCalls calls the function, whose calls return the results in the journal. It returns the
// output of a function that has returned one.
func (x *execution) compareCalls(ctx context.Context, input []byte) (output []byte, err error) {
	f, ok := x.engine.hub.flows.Load(x.row.Flow)
	if !ok {
		return nil, fmt.Errorf("workflow %s %q: %w", x.row.Flow, x.row.ID, ErrNoFlow)
	}
	x.flow = f.(Definition)
	defer context.AfterFunc(ctx, func() { _ = x.stop(context.Cause(ctx)) })()
	x.cancel = x.row.Cancel
	output, err = x.call(input)
	switch {
	case x.reason() != nil:
	case x.undoes(err):
		_, _ = x.undo()
	default:
		_ = x.unneeded()
	}
	if stopped := x.reason(); stopped != nil && !errors.Is(stopped, errFrontier) {
		return nil, stopped
	}
	return output, nil
}
