package workflow

import (
	"context"
	"errors"
	"fmt"

	"github.com/gopawl/pawl"
)

// ErrNoFlow says that no flow of that name was given to [Engine.Handle], of this engine or
// another over the same queue.
var ErrNoFlow = errors.New("this build does not have the flow")

// Verify compares an open run with the code of this build: the function is called, its calls
// return what the journal has, and where that ends so does the comparison. No step runs and
// nothing is written. Nil says that they fit; a [*DeterminismError] that they do not;
// other errors are [ErrNotFound], [ErrNotRunning] and [ErrNoFlow], and a panic of the code.
//
// Before a new build is deployed, run it over a backup of the file, and verify every open
// run: those that do not fit would be blocked.
func (e *Engine) Verify(ctx context.Context, run pawl.ID) error {
	x := newExecution(ctx, e, nil, run, nil)
	input, err := x.load(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("verify run %s: %w", run, err)
	case x.row == nil:
		return fmt.Errorf("run %s: %w", run, ErrNotFound)
	case !x.row.open():
		return fmt.Errorf("run %s: %w", run, ErrNotRunning)
	}
	f, ok := e.hub.flows.Load(x.row.Flow)
	if !ok {
		return fmt.Errorf("workflow %s %q: %w", x.row.Flow, x.row.ID, ErrNoFlow)
	}
	x.flow = f.(Definition)
	defer context.AfterFunc(ctx, func() { _ = x.stop(context.Cause(ctx)) })()
	x.cancel = x.row.Cancel
	_, err = x.call(input)
	switch {
	case x.reason() != nil:
	case x.undoes(err):
		_, _ = x.undo()
	default:
		_ = x.unneeded()
	}
	if stopped := x.reason(); stopped != nil && !errors.Is(stopped, errFrontier) {
		return stopped
	}
	return nil
}
