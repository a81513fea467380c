package workflowtest

import (
	"context"
	"errors"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/workflow"
)

// replay fails the test if a function returns another result when it runs again from its journal.
// Runs of a build before the last are left out, since the code has changed.
func (k *Kit) replay() {
	k.t.Helper()
	ctx := context.Background() // that of the test has ended
	for after := ""; ; {
		page, err := k.engine.List(ctx, workflow.Filter{Status: workflow.Done}, after, 1000)
		if err != nil {
			return // the queue is closed or damaged, which its check reports
		}
		for _, run := range page.Runs {
			if run.Build != k.opts.Engine.Build || run.Status != workflow.Done {
				continue
			}
			err := k.engine.Replay(ctx, run.Run)
			if err != nil && !errors.Is(err, workflow.ErrNoFlow) && !errors.Is(err, pawl.ErrClosed) {
				k.t.Errorf("workflowtest: %v", err)
			}
		}
		if after = page.Next; after == "" {
			return
		}
	}
}
