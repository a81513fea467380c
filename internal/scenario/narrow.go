package scenario

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/workflow"
)

// Rule: a number that the type of a new build cannot hold blocks the run. The function never
// receives another number, for an input, the result of a step or a signal.
func (suite) NarrowedNumbersBlock(t *testing.T) {
	wide, small := workflow.DefineSignal[int]("number"), workflow.DefineSignal[uint8]("number")
	old := workflow.Define("f", func(r *workflow.Run, n int) (int, error) {
		if _, err := workflow.Step(r, "s", func(context.Context) (int, error) { return -n, nil }); err != nil {
			return 0, err
		}
		return wide.Wait(r, workflow.Forever)
	})
	for name, narrow := range map[string]workflow.Definition{
		"input": workflow.Define("f", func(r *workflow.Run, n int8) (int, error) {
			require.Fail(t, "the function was called", "with %d", n)
			return 0, nil
		}),
		"result": workflow.Define("f", func(r *workflow.Run, n int) (int, error) {
			v, err := workflow.Step(r, "s", func(context.Context) (uint32, error) { return 0, nil })
			require.Error(t, err, "got %d", v)
			return 0, err
		}),
		"signal": workflow.Define("f", func(r *workflow.Run, n int) (int, error) {
			if _, err := workflow.Step(r, "s", func(context.Context) (int, error) { return 0, nil }); err != nil {
				return 0, err
			}
			v, err := small.Wait(r, workflow.Forever)
			require.Error(t, err, "got %d", v)
			return 0, err
		}),
	} {
		sub(t, name, func(t *testing.T, k *kit) {
			k.open(old)
			h := startAndSettle(k, old, "1", 300)
			k.restart("2", narrow)
			require.NoError(t, wide.Send(t.Context(), k.e, h.Run(), 300, ""))
			k.settle()
			info := k.info(h.Run())
			require.Equal(t, workflow.Blocked, info.Status)
			require.Contains(t, info.Error, "300 does not fit in")
		})
	}
}
