package scenario

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/workflow"
)

// Rule: Result returns an error once the job of its run is dead, whether it waits by then or comes later. The
// error says why, and what to do. After a resume it waits again. A Result that gives up says why the
// run has not ended.
func (suite) ResultOfADeadRun(t *testing.T) {
	for _, early := range []bool{true, false} {
		sub(t, map[bool]string{true: "waits", false: "comes later"}[early], func(t *testing.T, k *kit) {
			broken := true
			f := workflow.Define("f", func(r *workflow.Run, _ int) (string, error) {
				return workflow.Step(r, "s", func(ctx context.Context) (string, error) { return "done", nil })
			})
			k.around = []workflow.Middleware{func(next workflow.StepFunc) workflow.StepFunc {
				return func(ctx context.Context, s workflow.StepInfo) (any, error) {
					if broken { // a step that succeeds all the same would end its run
						<-ctx.Done()
						return nil, ctx.Err()
					}
					return next(ctx, s)
				}
			}}
			k.open(f)
			h := start(k, f, "1", 0)
			var dead *workflow.RunError
			result := make(chan error, 1)
			wait := func() { _, err := h.Result(context.Background()); result <- err }
			if early {
				go wait()
			}
			k.settle()
			require.NoError(t, k.q.Cancel(t.Context(), h.Run()))
			k.pass(time.Minute)
			require.Equal(t, workflow.Dead, k.info(h.Run()).Status)
			if !early {
				go wait()
			}
			err := <-result
			require.ErrorAs(t, err, &dead)
			require.Equal(t, workflow.Dead, dead.Status)
			require.ErrorContains(t, err, "Resume brings it back")
			require.False(t, errors.Is(err, pawl.ErrClosed))
			broken = false
			require.NoError(t, k.e.Resume(t.Context(), h.Run()))
			returns(k, h, "done")
		})
	}
	sub(t, "blocked", func(t *testing.T, k *kit) {
		h := change(k, calls(k, "a", "wait"), calls(k, "b", "wait"))
		ctx, stop := context.WithTimeout(t.Context(), time.Hour)
		defer stop()
		_, err := h.Result(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, `it is blocked: the code of workflow plan does not fit the journal`)
		require.ErrorContains(t, err, "; the call is at scenario/kit.go:") // in act
	})
}
