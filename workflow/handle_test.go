package workflow_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/workflow"
	"github.com/gopawl/pawl/workflow/workflowtest"
)

// Rule: the error of a Result whose context ends says what the run waits for.
func TestResultSaysWhatTheRunWaitsFor(t *testing.T) {
	approved := workflow.DefineSignal[bool]("approved")
	waits := workflow.Define("waits", func(r *workflow.Run, limit time.Duration) (bool, error) { return approved.Wait(r, limit) })
	sleeps := workflow.Define("sleeps", func(r *workflow.Run, d time.Duration) (bool, error) {
		return true, workflow.Sleep(r, "nap", d)
	})
	other := workflow.Define("other", func(*workflow.Run, time.Duration) (bool, error) { return true, nil })
	k := workflowtest.New(t, nil, waits, sleeps)
	for _, c := range []struct {
		flow  *workflow.Flow[time.Duration, bool]
		limit time.Duration
		want  string
	}{
		{waits, workflow.Forever, `it is waiting for ["approved"]: `},
		{waits, time.Hour, `it is waiting for ["approved"] until 2026-01-05T10:00:00Z: `},
		{sleeps, time.Hour, "it is sleeping until 2026-01-05T10:00:00Z: "},
		{other, 0, "it is ready, and waits for a free worker with its flow: "},
	} {
		h, err := c.flow.Start(t.Context(), k.Engine(), c.want, c.limit)
		require.NoError(t, err)
		k.Settle()
		ctx, stop := context.WithCancel(t.Context())
		stop()
		_, err = h.Result(ctx)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorContains(t, err, c.want)
	}
}
