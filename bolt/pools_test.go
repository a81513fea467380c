package bolt

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
)

// pooled are options in which the queues a and b share a pool of a size.
func pooled(running int) *Options {
	in := pawl.Limits{Pool: pawl.Pool{Name: "p", Running: running}}
	return &Options{Limits: map[string]pawl.Limits{"a": in, "b": in}}
}

// waitForB starts a fetch from queue b, and returns once it waits.
func waitForB(t *testing.T, q *Queue) <-chan error {
	t.Helper()
	call := started(func() error {
		_, err := q.Fetch(t.Context(), pawl.Request{Queues: []string{"b"}, Max: 1})
		return err
	})
	synctest.Wait()
	require.Empty(t, call, "it waits")
	return call
}

// Rule: an ack in a transaction of the app lets a fetch that waits for another queue of the pool get its job, once the transaction
// is committed, and not if it is rolled back.
func TestAckOfTheAppInAPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openTest(t, pooled(1))
		addTo(t, q, "a")
		addTo(t, q, "b")
		leases := fetch(t, q, 9, "a")
		call := waitForB(t, q)
		undo := errors.New("undo")
		require.ErrorIs(t, q.Update(t.Context(), func(tx *bbolt.Tx) error { return errors.Join(q.AckTx(tx, leases[0]), undo) }), undo)
		synctest.Wait()
		require.Empty(t, call, "after the rollback")
		require.NoError(t, q.Update(t.Context(), func(tx *bbolt.Tx) error { return q.AckTx(tx, leases[0]) }))
		require.NoError(t, <-call)
		checkNow(t, q)
	})
}

// Rule: the damaged row of a queue lifts its own limits alone. The other queues of its pool count the leases of each other.
func TestPoolBesideADamagedQueueRow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := pooled(2)
		opts.Limits["c"] = opts.Limits["a"]
		q := openTest(t, opts)
		for _, name := range []string{"a", "b", "c"} {
			addTo(t, q, name)
			addTo(t, q, name)
		}
		undo := flip(t, q, bucketQueues, numberKey(nil, 1))
		require.Len(t, fetch(t, q, 1, "b"), 1)
		require.Len(t, fetch(t, q, 9, "c"), 1)
		require.Empty(t, fetch(t, q, 9, "b", "c"))
		undo()
		require.Empty(t, fetch(t, q, 9, "a", "b", "c"))
		checkNow(t, q)
	})
}

// Rule: the row of a queue keeps pools with the longest names, that in force and that which is declared beside it. A pool that makes
// no sense is damage.
func TestPoolInTheRowOfAQueue(t *testing.T) {
	row := &queueRow{name: strings.Repeat("q", pawl.MaxNameBytes)}
	declared := pawl.Limits{
		Pool: pawl.Pool{Name: strings.Repeat("d", pawl.MaxPoolName), Running: pawl.MaxRunning}, Running: 1, RunningPerKey: 1, InOrder: pawl.OrderHold, Fair: true,
		MaxWaiting: 1<<31 - 1, MaxWaitingPerKey: 1<<31 - 1,
		Rate: pawl.Rate{Starts: 2, Per: pawl.MaxPer, Burst: 1, MaxCost: 1}, RatePerKey: pawl.Rate{Starts: 2, Per: pawl.MaxPer, Burst: 1, MaxCost: 1},
	}
	row.declared, row.limits = &declared, declared
	row.limits.Pool.Name = strings.Repeat("p", pawl.MaxPoolName)
	key := numberKey(nil, 1)
	read, err := parseQueueRow(key, seal(key, row.append(nil)))
	require.NoError(t, err)
	require.Equal(t, row, read)
	for _, bad := range []string{"\x00\x00\x00", "\x00\x00\x00\x00p", "\x00\x00\x00\x01", "\x7f\x00\x00\x00p", "\x00\x00\x00\x01a\x00b"} {
		_, err := parseQueueRow(key, seal(key, appendField((&queueRow{name: "q"}).append(nil), queueFieldPool, []byte(bad))))
		require.ErrorIs(t, err, pawl.ErrCorrupt, "%q", bad)
	}
}

// Rule: a salvage keeps the pools of queues.
func TestSalvageKeepsPools(t *testing.T) {
	from, to := filepath.Join(t.TempDir(), "from.db"), filepath.Join(t.TempDir(), "to.db")
	synctest.Test(t, func(t *testing.T) {
		q := openAt(t, from, pooled(3))
		for range 3 {
			addTo(t, q, "a")
			addTo(t, q, "b")
		}
	})
	_, err := Salvage(t.Context(), from, to)
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		q := openAt(t, to, nil)
		require.Len(t, fetch(t, q, 2, "a"), 2)
		require.Len(t, fetch(t, q, 9, "b"), 1)
		require.Empty(t, fetch(t, q, 9, "a", "b"))
		checkNow(t, q)
	})
}
