package bolt

import (
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/withid"
)

// An Update that the disk refuses leaves nothing of the app or the queue, returns an error that
// says so, and does not harm callers that wait in the meantime.
func TestUpdateOnAFullDisk(t *testing.T) {
	for _, refusal := range refusals {
		t.Run(refusal.Error(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := openTest(t, nil)
				add(t, q, nil)
				l := leaseOne(t, q)
				id := add(t, q, nil).ID
				before := digest(t, q)
				replaceCommit(t, q, func(tx *bbolt.Tx) error {
					if tx.Bucket(appBucket) != nil {
						return refusal
					}
					return tx.Commit()
				})
				var behind <-chan error
				write := func(tx *bbolt.Tx) error {
					behind = started(func() error { return withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "behind", Queue: "other"}) })
					synctest.Wait()
					return writeAll(q, tx, l, id)
				}
				err := q.Update(t.Context(), func(tx *bbolt.Tx) error { return writeAll(q, tx, l, id) })
				require.ErrorIs(t, err, ErrDisk)
				require.ErrorContains(t, err, refusal.Error(), "the cause is named")
				require.NotErrorIs(t, err, pawl.ErrUnknownOutcome)
				require.False(t, driver.Settled(l))
				require.Equal(t, before, digest(t, q))
				require.ErrorIs(t, q.Update(t.Context(), write), ErrDisk)
				require.NoError(t, <-behind)

				replaceCommit(t, q, (*bbolt.Tx).Commit)
				require.NoError(t, q.Update(t.Context(), write))
				require.NoError(t, <-behind)
				require.True(t, driver.Settled(l))
				require.Equal(t, pawl.Counts{Ready: 2}, countsOf(t, q, "other"))
			})
		})
	}
}

// The same in bbolt itself, which rolls back.
func TestUpdateBeyondTheSizeOfTheFile(t *testing.T) {
	q := openTest(t, nil)
	large := func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucketIfNotExists(appBucket)
		if err != nil {
			return err
		}
		return b.Put([]byte("large"), make([]byte, 8<<20))
	}
	limit := func(size int) {
		require.NoError(t, q.do(t.Context(), visit(func() { q.db.MaxSize = size })))
	}
	limit(1 << 20)
	require.ErrorIs(t, q.Update(t.Context(), large), ErrDisk)
	add(t, q, nil)
	limit(0)
	require.NoError(t, q.Update(t.Context(), large))
}

// A failed sync in an Update leaves its outcome unknown, both for the app's rows and for the
// queue's jobs, and poisons the queue.
func TestFailedSyncOfAnUpdate(t *testing.T) {
	for _, test := range failedSyncs {
		t.Run(test.rule, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "jobs.db")
			synctest.Test(t, func(t *testing.T) {
				q, err := Open(path, quiet())
				require.NoError(t, err)
				add(t, q, nil)
				l := leaseOne(t, q)
				id := add(t, q, nil).ID
				fetching := started(func() error {
					_, err := q.Fetch(t.Context(), pawl.Request{Max: 1, Queues: []string{"empty"}})
					return err
				})
				replaceCommit(t, q, test.commit)
				var enqueued, updated <-chan error
				err = q.Update(t.Context(), func(tx *bbolt.Tx) error {
					enqueued = started(func() error { return withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "late"}) })
					updated = started(func() error { return q.Update(t.Context(), func(*bbolt.Tx) error { panic("it never begins") }) })
					synctest.Wait()
					return writeAll(q, tx, l, id)
				})
				require.ErrorIs(t, err, pawl.ErrUnknownOutcome)
				require.ErrorIs(t, err, pawl.ErrPoisoned)
				require.ErrorContains(t, err, "input/output error", "the cause is named")
				for what, answer := range map[string]<-chan error{"enqueue": enqueued, "update": updated} {
					err := <-answer
					require.ErrorIs(t, err, pawl.ErrPoisoned, what)
					require.NotErrorIs(t, err, pawl.ErrUnknownOutcome, what)
				}
				require.ErrorIs(t, <-fetching, pawl.ErrPoisoned)
				err = q.Update(t.Context(), func(*bbolt.Tx) error { panic("it never begins") })
				require.ErrorIs(t, err, pawl.ErrPoisoned)
				require.NotErrorIs(t, err, pawl.ErrUnknownOutcome)
				require.NoError(t, q.Close())
			})

			q := openAt(t, path, nil)
			require.Empty(t, appRows(t, q.db), "the commit is taken back, even when it can be seen")
			require.Zero(t, countsOf(t, q, "new"))
			require.Equal(t, pawl.Counts{Ready: 2}, countsOf(t, q, pawl.DefaultQueue))
		})
	}
}
