package bolt

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/withid"
)

// Rule: an ack without a lease, as for a job that no worker made, returns an error that says so
// and leaves the transaction unchanged.
func TestAckTxWithoutALease(t *testing.T) {
	q := openTest(t, nil)
	require.NoError(t, q.Update(t.Context(), func(tx *bbolt.Tx) error {
		for _, l := range []*pawl.Lease{nil, {}} {
			err := q.AckTx(tx, l)
			require.ErrorIs(t, err, pawl.ErrInvalid)
			require.ErrorContains(t, err, "job.Lease")
		}
		return withid.EnqueueTx(q, tx, &pawl.Envelope{Kind: "k"})
	}))
	require.Equal(t, pawl.Counts{Ready: 1}, countsOf(t, q, pawl.DefaultQueue))
}
