package guide

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/workflow"
	"github.com/gopawl/pawl/workflow/workflowtest"
)

// Delivered is the signal that a parcel was delivered.
var Delivered = workflow.DefineSignal[string]("delivered")

func deliver(r *workflow.Run) error {
	if err := workflow.SetAttribute(r, "state", "on its way"); err != nil {
		return err
	}
	_, err := Delivered.Wait(r, workflow.Forever)
	return err
}

// Parcel sends a parcel.
var Parcel = workflow.Define("parcel", func(r *workflow.Run, number string) (string, error) { return number, deliver(r) })

// Rule: the guide's parcel is found by its attributes, at each crash.
func TestGuideAttributes(t *testing.T) {
	workflowtest.EachCrash(t, func(t *testing.T, at *workflowtest.Point) {
		k := workflowtest.New(t, &workflowtest.Options{At: at}, Parcel)
		ctx, e := t.Context(), k.Engine()
		require.NoError(t, func() error {
			_, err := Parcel.Start(ctx, e, "17", "17", workflow.Attributes(map[string]string{"customer": "ada", "region": "eu"}))
			return err
		}())
		k.Settle()
		e = k.Engine()
		found, err := e.List(ctx, workflow.Filter{Attributes: map[string]string{"customer": "ada", "state": "on its way"}}, "", 100)
		require.NoError(t, err)
		require.Len(t, found.Runs, 1)
		run := workflowtest.Of(k, Parcel, "17")
		workflowtest.Send(run, Delivered, "yes")
		_, err = run.Result()
		require.NoError(t, err)
	})
}
