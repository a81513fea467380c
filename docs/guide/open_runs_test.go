package guide

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/workflow"
	"github.com/gopawl/pawl/workflow/workflowtest"
)

// Invoice is what a tenant has to pay.
type Invoice struct{ Tenant int }

// Paid is the signal that an invoice was paid.
var Paid = workflow.DefineSignal[string]("paid")

func bill(r *workflow.Run, _ Invoice) (string, error) { return Paid.Wait(r, workflow.Forever) }

// Billing bills a tenant each month. A tenant has one open run at a time, and the flow has a hundred.
var Billing = workflow.Define("billing", bill, workflow.MaxOpenPerKey(1), workflow.MaxOpen(100))

// Rule: the guide's tenant has one open run at a time, at each crash.
func TestOpenRunsAtEachCrash(t *testing.T) {
	workflowtest.EachCrash(t, func(t *testing.T, at *workflowtest.Point) {
		k := workflowtest.New(t, &workflowtest.Options{At: at}, Billing)
		ctx, e := t.Context(), k.Engine()
		require.NoError(t, func() error {
			_, err := Billing.Start(ctx, e, "2026-11/42", Invoice{Tenant: 42}, workflow.Key("tenant/42"))
			return err
		}())
		_, err := Billing.Start(ctx, e, "2026-12/42", Invoice{Tenant: 42}, workflow.Key("tenant/42"))
		require.NoError(t, err)
		k.Settle()
		first, second := workflowtest.Of(k, Billing, "2026-11/42"), workflowtest.Of(k, Billing, "2026-12/42")
		require.Equal(t, []string{"paid"}, first.Info().Waits)
		require.Equal(t, "key tenant/42", second.Info().Place)
		for _, run := range []*workflowtest.Run[string]{first, second} {
			require.NoError(t, Paid.Send(ctx, k.Engine(), run.Info().Run, "yes", ""))
			paid, err := run.Result()
			require.NoError(t, err)
			require.Equal(t, "yes", paid)
		}
	})
}
