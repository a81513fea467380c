package pawltest_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/pawltest"
	"github.com/gopawl/pawl/worker"
	"github.com/gopawl/pawl/workflow"
)

// Rule: workflows run over the queue of a test, on its clock.
func TestWorkflows(t *testing.T) {
	order := workflow.Define("order", func(r *workflow.Run, item string) (string, error) {
		if err := workflow.Sleep(r, "night", 8*time.Hour); err != nil {
			return "", err
		}
		return workflow.Step(r, "ship", func(context.Context) (string, error) { return item + " shipped", nil })
	})
	q := pawltest.New(t, nil)
	e, w := workflow.Open(q, nil), worker.New(q, nil)
	require.NoError(t, e.Handle(t.Context(), w, order))
	run, err := order.Start(t.Context(), e, "1042", "a lamp")
	require.NoError(t, err)
	begun := q.Now()
	pawltest.Drain(t, q, w)
	result, err := run.Result(t.Context())
	require.NoError(t, err)
	require.Equal(t, "a lamp shipped", result)
	require.GreaterOrEqual(t, q.Now().Sub(begun), 8*time.Hour)
}
