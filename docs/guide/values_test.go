package guide

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/workflow"
	"github.com/gopawl/pawl/workflow/workflowtest"
)

// Rule: the function of an UndoWith can publish, as the page says.
func TestUndoPublishes(t *testing.T) {
	status := workflow.DefineValue[string]("status")
	flow := workflow.Define("fails", func(r *workflow.Run, _ int) (int, error) {
		r.UndoWith("report", func(r *workflow.Run) error { return status.Publish(r, "undone") })
		if err := status.Publish(r, "begun"); err != nil {
			return 0, err
		}
		return 0, errors.New("it is not to be")
	})
	k := workflowtest.New(t, nil, flow)
	run := workflowtest.Start(k, flow, "1", 0)
	require.Equal(t, workflow.Failed, run.Info().Status)
	got, _, err := status.Get(t.Context(), k.Engine(), run.Run())
	require.NoError(t, err)
	require.Equal(t, "undone", got)
}
