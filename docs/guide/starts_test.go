package guide

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/workflow"
	"github.com/gopawl/pawl/workflow/workflowtest"
)

// Added is the signal that something is put into a cart.
var Added = workflow.DefineSignal[string]("added")

// Cart collects what a customer adds, until an hour passes without anything.
var Cart = workflow.Define("cart", func(r *workflow.Run, customer string) (items []string, err error) {
	for {
		item, err := Added.Wait(r, time.Hour)
		if errors.Is(err, workflow.ErrTimeout) {
			return items, nil
		}
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
})

// Rule: the guide's cart starts with the first item, and gets the others.
func TestGuideCart(t *testing.T) {
	k := workflowtest.New(t, nil, Cart)
	ctx, e := t.Context(), k.Engine()
	add := func(customer, item, click string) error {
		_, err := Cart.Start(ctx, e, customer, customer, Added.WithStart(item, click))
		return err
	}
	require.NoError(t, add("ada", "a lamp", "click 1"))
	require.NoError(t, add("ada", "a desk", "click 2"))
	require.NoError(t, add("ada", "a desk", "click 2"))
	k.Settle()
	items, err := workflowtest.Of(k, Cart, "ada").Result()
	require.NoError(t, err)
	require.Equal(t, []string{"a lamp", "a desk"}, items)
}

// Rule: the guide's reminder begins after its delay.
func TestGuideDelay(t *testing.T) {
	k := workflowtest.New(t, nil, Cart)
	ctx, e := t.Context(), k.Engine()
	require.NoError(t, func() error {
		_, err := Cart.Start(ctx, e, "ada", "ada", workflow.Delay(24*time.Hour)) // or workflow.At(t)
		return err
	}())
	k.Settle()
	run := workflowtest.Of(k, Cart, "ada")
	require.Equal(t, workflow.Sleeping, run.Info().Status)
	k.Advance(24 * time.Hour)
	require.Equal(t, workflow.Waiting, run.Info().Status)
	_, err := run.Result()
	require.NoError(t, err)
}

// Rule: the guide's run is cancelled at its deadline, and makes the refund.
func TestGuideDeadline(t *testing.T) {
	bank.refunded = nil
	t.Cleanup(func() { bank.refunded = nil })
	k := workflowtest.New(t, nil, Order)
	ctx, e := t.Context(), k.Engine()
	require.NoError(t, func() error {
		_, err := Order.Start(ctx, e, "1043", Basket{Customer: "bob"}, workflow.Deadline(24*time.Hour))
		return err
	}())
	k.Settle()
	k.Advance(24 * time.Hour)
	_, err := workflowtest.Of(k, Order, "1043").Result()
	require.ErrorIs(t, err, workflow.ErrDeadline)
	require.ErrorIs(t, err, workflow.ErrCancelled)
	require.Equal(t, []string{"bob paid 0"}, bank.refunded)
}
