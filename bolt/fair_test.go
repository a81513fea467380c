package bolt

import (
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
)

// fairly declares turns for the default queue.
func fairly() *Options {
	return &Options{Limits: map[string]pawl.Limits{pawl.DefaultQueue: {Fair: true}}}
}

// starts runs n jobs and returns their keys, with - for none.
func starts(t *testing.T, q *Queue, n int) (all string) {
	t.Helper()
	for range n {
		leases := fetch(t, q, 1)
		require.Len(t, leases, 1)
		if leases[0].Key == "" {
			all += "-"
		}
		all += leases[0].Key
		require.NoError(t, q.Settle(t.Context(), leases[0].Ack()))
	}
	return all
}

// Rule: a clock that is wrong by ages when the first job arrives damages no job, and keys take turns once it is right.
func TestFairTurnsAfterAWrongClock(t *testing.T) {
	for _, year := range []int{1900, 2050, 2126, 2400} {
		var right atomic.Bool
		opts := fairly()
		opts.Now = func() time.Time {
			if right.Load() {
				return time.Now()
			}
			return time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
		}
		q := openTest(t, opts)
		addKeyed(t, q, 1, "a")
		right.Store(true)
		addKeyed(t, q, 3, "a")
		addKeyed(t, q, 2, "b")
		require.Equal(t, "ababaa", starts(t, q, 6), "year %d", year)
		require.NoError(t, q.Check(t.Context()))
	}
}

// Rule: damage that hides the turns of a key, or of a queue, is repaired from the jobs: new jobs of a key come
// behind its others, and new keys come in at the front.
func TestDamagedTurns(t *testing.T) {
	for name, row := range map[string][]byte{"of a key": limitKey(nil, 1, "a"), "of a queue": ownKey(1)} {
		t.Run(name, func(t *testing.T) {
			q := openTest(t, fairly())
			jobs := addKeyed(t, q, 30, "a")
			addKeyed(t, q, 10, "")
			starts(t, q, 10)
			flip(t, q, bucketKeys, row)
			last := addKeyed(t, q, 1, "a")[0]
			addKeyed(t, q, 1, "")
			addKeyed(t, q, 3, "b")
			all := starts(t, q, 9)
			require.Equal(t, 3, strings.Count(all, "b"), "starts: %s", all)
			var order []pawl.ID
			for _, l := range fetch(t, q, 99) {
				if l.Key == "a" {
					order = append(order, l.ID)
				}
			}
			require.Equal(t, last.ID, order[len(order)-1])
			require.Equal(t, jobs[29].ID, order[len(order)-2])
		})
	}
}

// Rule: when damage hides the turns of a key while one of its jobs is leased, a job that keeps its tag brings
// them back: a later job of the key comes behind it.
func TestDamagedTurnsOfALeasedJob(t *testing.T) {
	q := openTest(t, fairly())
	for _, e := range addKeyed(t, q, 20, "a") {
		require.NoError(t, q.Cancel(t.Context(), e.ID))
	}
	first := addKeyed(t, q, 1, "a")[0]
	held := leaseOne(t, q)
	require.Equal(t, first.ID, held.ID)
	flip(t, q, bucketKeys, limitKey(nil, 1, "a"))
	require.NoError(t, q.Settle(t.Context(), held.Release()))
	checkNow(t, q)
}

// Rule: the operations of a commit that failed run again as if for the first time: a new job then gets its tag
// in its record and in ready.
func TestRefusedCommitGivesNoTag(t *testing.T) {
	q := openTest(t, fairly())
	left := 1
	replaceCommit(t, q, func(tx *bbolt.Tx) error {
		if left--; left < 0 {
			return tx.Commit()
		}
		_ = tx.Rollback()
		return refusals[0]
	})
	addKeyed(t, q, 2, "a")
	require.Negative(t, left)
	checkNow(t, q)
	require.Equal(t, "aa", starts(t, q, 2))
}

// Rule: a salvage keeps the turns of keys.
func TestSalvageKeepsTurns(t *testing.T) {
	from := filepath.Join(memoryFolder(t), "jobs.db")
	q, err := Open(from, fairly())
	require.NoError(t, err)
	addKeyed(t, q, 30, "a")
	starts(t, q, 10)
	require.NoError(t, q.Close())
	to := from + ".new"
	_, err = Salvage(t.Context(), from, to)
	require.NoError(t, err)
	checkFile(t, to)
	q = openAt(t, to, nil)
	addKeyed(t, q, 3, "a")
	addKeyed(t, q, 3, "b")
	require.Equal(t, "ababab", starts(t, q, 6))
	require.Equal(t, strings.Repeat("a", 20), starts(t, q, 20))
}

// Rule: the oldest ready job of a queue whose keys take turns is the one that is ready for the longest time.
func TestOldestOfAFairQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openTest(t, fairly())
		addKeyed(t, q, 1, "a")
		pass(time.Hour)
		starts(t, q, 1)
		since := time.Now()
		addKeyed(t, q, 2, "b")
		stats, err := q.Stats(t.Context())
		require.NoError(t, err)
		require.True(t, stats.Queues[0].Oldest.Equal(since), "oldest is %v", stats.Queues[0].Oldest)
	})
}

// Rule: keys that have no more jobs leave no rows. Only the row of the queue stays.
func TestKeysWithoutTurnsLeaveNoRows(t *testing.T) {
	rows := func(q *Queue) (n int) {
		require.NoError(t, q.Update(t.Context(), func(tx *bbolt.Tx) error {
			n = tx.Bucket(bucketRoot).Bucket(bucketKeys).Stats().KeyN
			return nil
		}))
		return n
	}
	path := filepath.Join(memoryFolder(t), "jobs.db")
	q, err := Open(path, fairly())
	require.NoError(t, err)
	for _, key := range []string{"a", "b", "c"} {
		addKeyed(t, q, 2, key)
	}
	starts(t, q, 6)
	require.Equal(t, 1, rows(q))
	require.NoError(t, q.Close())
	q = openAt(t, path, &Options{Limits: map[string]pawl.Limits{pawl.DefaultQueue: {}}})
	require.Zero(t, rows(q))
}

// Rule: a queue without turns stores no byte for them.
func TestTurnsCostOtherQueuesNoByte(t *testing.T) {
	q := openTest(t, perKey(2))
	job := addKeyed(t, q, 1, "a")[0]
	tag := 1 + 8 // as MessagePack has it
	require.ErrorIs(t, q.do(t.Context(), look(func(tx *txn) {
		j, err := tx.record(job.ID)
		require.NoError(t, err)
		plain := len(tx.jobs.Get(job.ID[:]))
		j.FairTag = time.Now().UnixNano()
		tx.rewrite(&j)
		require.Len(t, tx.jobs.Get(job.ID[:]), plain+tag)
		require.Less(t, len(tx.row(1).append(nil)), len((&queueRow{name: tx.row(1).name, limits: pawl.Limits{Fair: true}}).append(nil)))
		tx.fail(errBoom)
	})), errBoom)
}
