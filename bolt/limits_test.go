package bolt

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/withid"
)

// perKey are options that limit the running jobs of each key.
func perKey(n int) *Options {
	return &Options{Limits: map[string]pawl.Limits{pawl.DefaultQueue: {RunningPerKey: n}}}
}

// addKeyed enqueues jobs with one key.
func addKeyed(t *testing.T, q *Queue, n int, key string) []*pawl.Envelope {
	t.Helper()
	jobs := make([]*pawl.Envelope, n)
	for i := range jobs {
		jobs[i] = &pawl.Envelope{Kind: "k", Key: key}
	}
	require.NoError(t, withid.Enqueue(t.Context(), q, jobs...))
	return jobs
}

// Rule: damage that hides the key of a job keeps no other job of the key from running, and lets no
// two run at a time.
func TestLimitsAfterDamage(t *testing.T) {
	for _, hit := range []struct {
		name string
		at   int // the job whose record is damaged: 0 is leased, 1 is next, 2 is blocked
	}{{"the leased job", 0}, {"the next job", 1}, {"a blocked job", 2}} {
		for _, e := range blockedEnds {
			for _, c := range append(changes, missing) {
				t.Run(fmt.Sprint(hit.name, ", ", e.name, ", ", c.name), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						q := openTest(t, perKey(1))
						jobs := addKeyed(t, q, 5, "a")
						holder := leaseOne(t, q)
						require.Empty(t, fetch(t, q, 9))
						damageRecord(t, q, jobs[hit.at].ID, c.change)
						e.end(t, q, holder)
						ran := 0
						for l := fetch(t, q, 9); len(l) > 0; l = fetch(t, q, 9) {
							require.Len(t, l, 1, "jobs of the key at a time")
							require.NoError(t, q.Settle(t.Context(), l[0].Ack()))
							ran++
						}
						if e.name == "an expiry" && hit.at != 0 {
							ran-- // the holder ran again
						}
						want := 4
						if hit.at != 0 {
							want--
						}
						require.Equal(t, want, ran)
						require.NoError(t, q.Delete(t.Context(), jobs[hit.at].ID))
					})
				})
			}
		}
	}
}

// Rule: an enqueue of many jobs with one key leaves no more of them in ready than may run, so a
// fetch of another key walks over few, also before the first lease.
func TestLimitsOfOneKeyWithManyJobs(t *testing.T) {
	q := openTest(t, perKey(3))
	addKeyed(t, q, 2000, "a")
	other := add(t, q, func(e *pawl.Envelope) { e.Key = "b" })
	require.NoError(t, q.db.View(func(tx *bbolt.Tx) error {
		require.Equal(t, 4, tx.Bucket(bucketRoot).Bucket(bucketReady).Stats().KeyN)
		return nil
	}))
	require.Equal(t, pawl.Counts{Ready: 2001, Blocked: 1997}, countsOf(t, q, pawl.DefaultQueue))
	checkNow(t, q)
	leases := fetch(t, q, 9)
	require.Len(t, leases, 4)
	require.Equal(t, other.ID, leases[3].ID)
	checkNow(t, q)
	require.NoError(t, q.Settle(t.Context(), acksOf(leases)...))
	require.Len(t, fetch(t, q, 9), 3)
}

// Rule: a transaction of the app that ends a lease lets the next job of the key run when it commits,
// and not when it is rolled back.
func TestLimitsInTransactionsOfTheApp(t *testing.T) {
	q := openTest(t, perKey(1))
	jobs := addKeyed(t, q, 2, "a")
	l := leaseOne(t, q)
	require.Empty(t, fetch(t, q, 9))
	undo := errors.New("undo")
	require.ErrorIs(t, q.Update(t.Context(), func(tx *bbolt.Tx) error { return errors.Join(q.AckTx(tx, l), undo) }), undo)
	require.Empty(t, fetch(t, q, 9))
	require.NoError(t, q.Update(t.Context(), func(tx *bbolt.Tx) error { return q.AckTx(tx, l) }))
	require.Equal(t, jobs[1].ID, leaseOne(t, q).ID)
}

// Rule: a salvage writes the rows of keys again, whatever damage they have.
func TestSalvageMakesTheRowsOfKeysAnew(t *testing.T) {
	for _, damage := range []struct {
		name string
		hit  func(b *bbolt.Bucket)
	}{
		{"none", func(*bbolt.Bucket) {}},
		{"no rows", func(b *bbolt.Bucket) {
			for k, _ := b.Cursor().First(); k != nil; k, _ = b.Cursor().First() {
				require.NoError(t, b.Delete(k))
			}
		}},
		{"wrong counts", func(b *bbolt.Bucket) {
			k, v := b.Cursor().First()
			row, err := parseKeyRow(k, v)
			require.NoError(t, err)
			row.lanes[0].ready, row.lanes[0].blocked = 1000, false
			require.NoError(t, b.Put(k, seal(k, row.append(nil))))
		}},
	} {
		t.Run(damage.name, func(t *testing.T) {
			from := filepath.Join(memoryFolder(t), "jobs.db")
			q, err := Open(from, perKey(2))
			require.NoError(t, err)
			addKeyed(t, q, 9, "a")
			require.Len(t, fetch(t, q, 9), 2)
			require.Empty(t, fetch(t, q, 9))
			require.NoError(t, q.Update(t.Context(), func(tx *bbolt.Tx) error {
				damage.hit(tx.Bucket(bucketRoot).Bucket(bucketKeys))
				return nil
			}))
			require.NoError(t, q.Close())
			to := from + ".new"
			_, err = Salvage(t.Context(), from, to)
			require.NoError(t, err)
			checkFile(t, to)
			q = openAt(t, to, nil)
			for _, want := range []int{2, 2, 2, 2, 1, 0} {
				leases := fetch(t, q, 9)
				require.Len(t, leases, want)
				require.NoError(t, q.Settle(t.Context(), acksOf(leases)...))
			}
		})
	}
}

// Rule: declared limits are checked, stored, and shown, also for a queue that never had a job. An
// opener that declares none leaves them.
func TestDeclaredLimits(t *testing.T) {
	for field, l := range map[string]pawl.Limits{
		"Running": {Running: -1}, "RunningPerKey": {RunningPerKey: pawl.MaxRunning + 1},
	} {
		_, err := Open(filepath.Join(t.TempDir(), "jobs.db"), &Options{Limits: map[string]pawl.Limits{"x": l}})
		require.ErrorIs(t, err, pawl.ErrInvalid)
		require.ErrorContains(t, err, field)
	}
	_, err := Open(filepath.Join(t.TempDir(), "jobs.db"), &Options{Limits: map[string]pawl.Limits{"": {Running: 1}}})
	require.ErrorIs(t, err, pawl.ErrInvalid)

	path := filepath.Join(memoryFolder(t), "jobs.db")
	limits := pawl.Limits{Running: 7, RunningPerKey: 2}
	for _, o := range []*Options{{Limits: map[string]pawl.Limits{"x": limits}}, nil} {
		q, err := Open(path, o)
		require.NoError(t, err)
		stats, err := q.Stats(context.Background())
		require.NoError(t, err)
		require.Equal(t, []pawl.QueueStats{{Name: "x", Limits: limits}}, stats.Queues)
		require.NoError(t, q.Close())
	}
}

// Rule: a check finds nothing wrong with a key whose only job waits for the effect of another one.
func TestCheckOfAKeyThatWaitsForAnEffect(t *testing.T) {
	q := openTest(t, &Options{Limits: map[string]pawl.Limits{pawl.DefaultQueue: {RunningPerKey: 1}}})
	add(t, q, func(e *pawl.Envelope) { e.IdempotencyKey = "i" })
	require.Len(t, fetch(t, q, 9), 1)
	add(t, q, func(e *pawl.Envelope) { e.IdempotencyKey, e.Key = "i", "a" })
	require.Empty(t, fetch(t, q, 9))
	checkNow(t, q)
}
