package guide

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/workflow"
	"github.com/gopawl/pawl/workflow/workflowtest"
)

// Arrived is the signal that a parcel came back.
var Arrived = workflow.DefineSignal[bool]("arrived")

// Sale sends a parcel, and takes it back if nobody signs for it.
var Sale = workflow.Define("sale", func(r *workflow.Run, customer string) (string, error) {
	if _, err := workflow.Step(r, "send", parcel); err != nil {
		return "", err
	}
	r.UndoWith("take back", func(r *workflow.Run) error {
		if _, err := workflow.Step(r, "label", label); err != nil {
			return err
		}
		if _, err := Arrived.Wait(r, 30*24*time.Hour); err != nil {
			return err // it is lost: the run's error says so
		}
		_, err := workflow.Call(r, "credit", Credit, customer)
		return err
	})
	return "", errors.New("nobody signed for it")
})

// Credit returns the money.
var Credit = workflow.Define("credit", func(r *workflow.Run, customer string) (string, error) {
	return workflow.Step(r, "pay", func(context.Context) (string, error) { return customer + " is paid", nil })
})

func parcel(context.Context) (string, error) { return "parcel", nil }
func label(context.Context) (string, error)  { return "label", nil }

// Rule: the guide's sale takes a parcel back and then returns the money.
func TestGuideUndoWith(t *testing.T) {
	k := workflowtest.New(t, nil, Sale, Credit)
	run := workflowtest.Start(k, Sale, "1", "ada")
	k.Settle()
	require.Zero(t, k.Attempts("pay"))
	workflowtest.Send(run, Arrived, true)
	_, err := run.Result()
	require.ErrorContains(t, err, "nobody signed for it")
	require.NotContains(t, err.Error(), "not all was undone")
	require.Equal(t, 1, k.Attempts("pay"))
}
