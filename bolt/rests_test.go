package bolt

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
)

// resting are options with a limit for each key, and no rate.
func resting() *Options {
	return &Options{Limits: map[string]pawl.Limits{pawl.DefaultQueue: {RunningPerKey: 5}}}
}

// Rule: the row of a key without jobs stays while the key rests, and goes then. While it rests the file is sound.
func TestKeysThatTheirRestForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openTest(t, resting())
		jobs := addKeyed(t, q, 9, "a")
		leases := fetch(t, q, 9)
		require.Len(t, leases, 5)
		require.NoError(t, q.Settle(t.Context(), leases[0].Throttle(time.Minute, pawl.ThisKey), leases[1].Ack(), leases[2].Release()))
		require.Empty(t, fetch(t, q, 9))
		checkNow(t, q)
		for _, e := range jobs {
			if e.ID != leases[1].ID && e.ID != leases[3].ID && e.ID != leases[4].ID {
				require.NoError(t, q.Cancel(t.Context(), e.ID))
			}
		}
		require.NoError(t, q.Settle(t.Context(), leases[3].Ack(), leases[4].Ack()))
		keys, times := keyCounts(t, q)
		require.Equal(t, []int{1, 1}, []int{keys, times})
		checkNow(t, q)
		time.Sleep(time.Minute) // in virtual time
		synctest.Wait()
		keys, times = keyCounts(t, q)
		require.Equal(t, []int{0, 0}, []int{keys, times})
		checkNow(t, q)
	})
}

// Rule: a salvage keeps until when keys and queues rest.
func TestSalvageKeepsRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from := filepath.Join(memoryFolder(t), "jobs.db")
		q, err := Open(from, resting())
		require.NoError(t, err)
		addKeyed(t, q, 3, "a")
		for _, l := range fetch(t, q, 1) {
			require.NoError(t, q.Settle(t.Context(), l.Throttle(time.Minute, pawl.ThisKey)))
		}
		addTo(t, q, "x")
		require.NoError(t, q.Settle(t.Context(), leaseOne(t, q, "x").Throttle(time.Hour, pawl.ThisQueue)))
		require.NoError(t, q.Close())
		to := from + ".new"
		_, err = Salvage(t.Context(), from, to)
		require.NoError(t, err)
		checkFile(t, to)
		q = openAt(t, to, nil)
		require.Empty(t, fetch(t, q, 9))
		require.Empty(t, fetch(t, q, 9, "x"))
		time.Sleep(time.Minute) // in virtual time
		require.Len(t, fetch(t, q, 9), 3)
		require.Empty(t, fetch(t, q, 9, "x"))
		time.Sleep(time.Hour)
		require.Len(t, fetch(t, q, 9, "x"), 1)
	})
}

// Rule: once a queue has no limits per key, its keys no longer rest, and leave no rows.
func TestRestsWithoutLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(memoryFolder(t), "jobs.db")
		q, err := Open(path, resting())
		require.NoError(t, err)
		addKeyed(t, q, 2, "a")
		require.NoError(t, q.Settle(t.Context(), fetch(t, q, 1)[0].Throttle(time.Minute, pawl.ThisKey)))
		require.Empty(t, fetch(t, q, 9))
		require.NoError(t, q.Close())
		q = openAt(t, path, &Options{Limits: map[string]pawl.Limits{pawl.DefaultQueue: {}}})
		require.Len(t, fetch(t, q, 9), 2)
		checkNow(t, q)
		time.Sleep(time.Minute) // in virtual time
		synctest.Wait()
		keys, times := keyCounts(t, q)
		require.Equal(t, []int{0, 0}, []int{keys, times})
		checkNow(t, q)
	})
}

// addTo enqueues a job to a queue.
func addTo(t *testing.T, q *Queue, queue string) {
	t.Helper()
	_, err := q.Enqueue(t.Context(), &pawl.Envelope{Kind: "k", Queue: queue})
	require.NoError(t, err)
}

// Rule: the file is sound, too, between the end of a rest of a key and the maintenance that unblocks the jobs of the
// key, whatever an app's transaction does to the key in between.
func TestCheckBetweenARestAndItsWake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var clock stepClock
		options := resting()
		options.Now = clock.now
		q := openTest(t, options)
		addKeyed(t, q, 3, "a")
		require.NoError(t, q.Settle(t.Context(), fetch(t, q, 1)[0].Throttle(time.Minute, pawl.ThisKey)))
		require.Empty(t, fetch(t, q, 9))
		clock.step(2 * time.Minute) // does not wake the scheduler
		require.NoError(t, q.db.Update(func(tx *bbolt.Tx) error {
			_, err := q.EnqueueTx(tx, &pawl.Envelope{Kind: "k", Key: "a"})
			require.NoError(t, err)
			s, err := openStore(tx)
			require.NoError(t, err)
			return s.violations(t.Context())
		}))
		require.Len(t, fetch(t, q, 9), 4)
	})
}
