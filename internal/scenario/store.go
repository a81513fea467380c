package scenario

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/workflow"
)

// otherTx is a transaction of another engine.
type otherTx struct{}

// Rule: a step in a transaction of another engine blocks its run, which continues under a build
// with a matching step. A start in such a transaction is refused.
func (suite) TransactionOfAnotherEngine(t *testing.T, k *kit) {
	fits := false
	f := workflow.Define("f", func(r *workflow.Run, _ int) (int, error) {
		if fits {
			return workflow.StepTx(r, "book", func(Tx) (int, error) { return 7, nil })
		}
		return workflow.StepTx(r, "book", func(otherTx) (int, error) { return 0, nil })
	})
	k.open(f)
	h := startAndSettle(k, f, "1", 0)
	info := k.info(h.Run())
	require.Equal(t, workflow.Blocked, info.Status)
	require.Contains(t, info.Error, "has none of type scenario.otherTx")

	_, err := workflow.StartTx(otherTx{}, k.e, f, "2", 0)
	require.ErrorIs(t, err, pawl.ErrInvalid)

	fits = true
	require.NoError(t, k.e.Resume(t.Context(), h.Run()))
	k.pass(time.Second)
	returns(k, h, 7)
}
