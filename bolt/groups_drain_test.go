package bolt

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/group"
	"github.com/gopawl/pawl/internal/kills"
)

// Rule: a drain gets the callbacks of a group whose last member is acked, also in a transaction of the app. The commit of
// a plain ack leases them. Package queuetest covers the other ends of a member.
func TestDrainGetsTheCallbacks(t *testing.T) {
	for name, c := range map[string]struct {
		ack     func(t *testing.T, q *Queue, l *pawl.Lease) error
		commits int
	}{
		"ack": {func(t *testing.T, q *Queue, l *pawl.Lease) error { return q.Settle(t.Context(), l.Ack()) }, 1},
		"AckTx": {func(t *testing.T, q *Queue, l *pawl.Lease) error {
			return q.Update(t.Context(), func(tx *bbolt.Tx) error { return q.AckTx(tx, l) })
		}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := openTest(t, nil)
				kills.MakeGroup(t, q, "k")
				require.NoError(t, group.Close(t.Context(), q, "g"))
				l := leaseOne(t, q)
				var leases []*pawl.Lease
				drain := started(func() (err error) {
					leases, err = q.Fetch(t.Context(), pawl.Request{
						Queues: []string{pawl.DefaultQueue, "callbacks"}, Kinds: []string{"k", "done", "success"}, Max: 2, Wait: pawl.WaitFinished})
					return err
				})
				synctest.Wait()
				require.Empty(t, drain)
				before := commitsOf(t, q)
				require.NoError(t, c.ack(t, q, l))
				require.NoError(t, <-drain)
				require.Len(t, leases, 2)
				require.Equal(t, c.commits, commitsOf(t, q)-before)
			})
		})
	}
}

// commitsOf returns the number of the last commit.
func commitsOf(t *testing.T, q *Queue) (n int) {
	t.Helper()
	require.NoError(t, q.View(t.Context(), func(tx *bbolt.Tx) error {
		n = tx.ID()
		return nil
	}))
	return n
}
