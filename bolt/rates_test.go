package bolt

import (
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
)

// rated are options with a rate for each key: one start each 20 s.
func rated() *Options {
	return &Options{Limits: map[string]pawl.Limits{pawl.DefaultQueue: {RatePerKey: pawl.Rate{Starts: 3, Per: time.Minute}}}}
}

// keyCounts returns how many rows of keys and of times a file has.
func keyCounts(t *testing.T, q *Queue) (keys, times int) {
	t.Helper()
	require.NoError(t, q.db.View(func(tx *bbolt.Tx) error {
		root := tx.Bucket(bucketRoot)
		keys, times = root.Bucket(bucketKeys).Stats().KeyN, root.Bucket(bucketExpiry).Stats().KeyN
		return nil
	}))
	return keys, times
}

// Rule: a key whose jobs have all ended leaves no row once its rate is no longer used up.
func TestKeysThatTheirRateForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openTest(t, rated())
		addKeyed(t, q, 1, "a")
		require.NoError(t, q.Settle(t.Context(), leaseOne(t, q).Ack()))
		keys, times := keyCounts(t, q)
		require.Equal(t, []int{1, 1}, []int{keys, times})
		checkNow(t, q)
		time.Sleep(20 * time.Second) // in virtual time
		synctest.Wait()
		keys, times = keyCounts(t, q)
		require.Equal(t, []int{0, 0}, []int{keys, times})
	})
}

// Rule: a damaged row of a key counts its rate as used up, and its jobs start again when that ends.
func TestDamagedRateOfAKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openTest(t, rated())
		addKeyed(t, q, 3, "a")
		leaseOne(t, q)
		require.Empty(t, fetch(t, q, 9))
		time.Sleep(10 * time.Second) // in virtual time
		flip(t, q, bucketKeys, limitKey(nil, 1, "a"))
		addKeyed(t, q, 1, "a")
		require.Empty(t, fetch(t, q, 9))
		time.Sleep(19 * time.Second)
		require.Empty(t, fetch(t, q, 9))
		time.Sleep(time.Second)
		require.Len(t, fetch(t, q, 9), 1)
	})
}

// Rule: a salvage keeps how far a rate is used up, and when its jobs have their time.
func TestSalvageKeepsRates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from := filepath.Join(memoryFolder(t), "jobs.db")
		q, err := Open(from, rated())
		require.NoError(t, err)
		addKeyed(t, q, 3, "a")
		require.NoError(t, q.Settle(t.Context(), leaseOne(t, q).Ack()))
		require.Empty(t, fetch(t, q, 9))
		require.NoError(t, q.Close())
		to := from + ".new"
		_, err = Salvage(t.Context(), from, to)
		require.NoError(t, err)
		checkFile(t, to)
		q = openAt(t, to, nil)
		require.Empty(t, fetch(t, q, 9))
		leases, err := q.Fetch(t.Context(), pawl.Request{Max: 9})
		require.NoError(t, err)
		require.Len(t, leases, 1)
		require.NoError(t, q.Close())
	})
}

// Rule: rates are stored and shown. An opener that declares none leaves them.
func TestDeclaredRates(t *testing.T) {
	path := filepath.Join(memoryFolder(t), "jobs.db")
	limits := pawl.Limits{
		Running: 7, Rate: pawl.Rate{Starts: 1000, Per: time.Hour, Burst: 20}, RatePerKey: pawl.Rate{Starts: 5, Per: time.Millisecond},
	}
	for _, o := range []*Options{{Limits: map[string]pawl.Limits{"x": limits}}, nil} {
		q, err := Open(path, o)
		require.NoError(t, err)
		stats, err := q.Stats(t.Context())
		require.NoError(t, err)
		require.Equal(t, []pawl.QueueStats{{Name: "x", Limits: limits}}, stats.Queues)
		require.NoError(t, q.Close())
	}
}

// Rule: no job waits until a clock that was set back is where it was, neither for the rate of its
// queue nor for that of its key.
func TestRatesWhenTheClockIsSetBack(t *testing.T) {
	rate := pawl.Rate{Starts: 3, Per: time.Minute}
	for name, l := range map[string]pawl.Limits{"queue": {Rate: rate}, "key": {RatePerKey: rate}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var back atomic.Int64
				q := openTest(t, &Options{Limits: map[string]pawl.Limits{pawl.DefaultQueue: l}, Now: func() time.Time { return time.Now().Add(-time.Duration(back.Load())) }})
				addKeyed(t, q, 1, "a")
				leaseOne(t, q)
				back.Store(int64(time.Hour))
				addKeyed(t, q, 1, "a")
				require.Empty(t, fetch(t, q, 9))
				time.Sleep(20 * time.Second) // in virtual time
				require.Len(t, fetch(t, q, 9), 1)
			})
		})
	}
}
