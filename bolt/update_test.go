package bolt

import (
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/withid"
)

var (
	appBucket     = []byte("app")
	errRolledBack = errors.New("rolled back")
)

// appPut writes a row of the app. Its value is its key.
func appPut(tx *bbolt.Tx, key string) error {
	b, err := tx.CreateBucketIfNotExists(appBucket)
	if err != nil {
		return err
	}
	return b.Put([]byte(key), []byte(key))
}

// appRows returns the rows of the app, in order.
func appRows(t *testing.T, db *bbolt.DB) (keys []string) {
	t.Helper()
	require.NoError(t, db.View(func(tx *bbolt.Tx) error {
		b := tx.Bucket(appBucket)
		if b == nil {
			return nil
		}
		return b.ForEach(func(k, v []byte) error {
			require.Equal(t, string(k), string(v))
			keys = append(keys, string(k))
			return nil
		})
	}))
	return keys
}

// writeAll writes a row of the app and uses every verb: it enqueues a job, acks one and cancels
// another.
func writeAll(q *Queue, tx *bbolt.Tx, acked *pawl.Lease, cancelled pawl.ID) error {
	return errors.Join(
		appPut(tx, "row"),
		withid.EnqueueTx(q, tx, &pawl.Envelope{Kind: "new", Queue: "new"}),
		q.AckTx(tx, acked),
		q.CancelTx(tx, cancelled),
	)
}

// The app's writes and its changes to the queue are in the file together, even after the queue
// is opened again.
func TestUpdateCommits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	q := openAt(t, path, nil)
	add(t, q, nil)
	l := leaseOne(t, q)
	id := add(t, q, nil).ID
	require.NoError(t, q.Update(t.Context(), func(tx *bbolt.Tx) error { return writeAll(q, tx, l, id) }))
	require.NoError(t, q.Update(t.Context(), func(*bbolt.Tx) error { return nil }), "nothing to write is no error")
	for range 2 {
		require.Equal(t, []string{"row"}, appRows(t, q.db))
		require.Equal(t, pawl.Counts{Ready: 1}, countsOf(t, q, "new"))
		require.Equal(t, pawl.Counts{Dead: 1}, countsOf(t, q, pawl.DefaultQueue))
		checkNow(t, q)
		require.NoError(t, q.Close())
		q = openAt(t, path, nil)
	}
}

// A function that does not return nil leaves no trace, and the queue continues.
func TestUpdateRollsBack(t *testing.T) {
	for _, c := range []struct {
		rule string
		end  func() error
		want func(t *testing.T, update func() error)
	}{
		{"an error comes back as it is", func() error { return errRolledBack },
			func(t *testing.T, update func() error) { require.True(t, update() == errRolledBack) }},
		{"also one of the queue's own", func() error { return pawl.ErrConflict },
			func(t *testing.T, update func() error) { require.True(t, update() == pawl.ErrConflict) }},
		{"a panic surfaces at the caller", func() error { panic("boom") },
			func(t *testing.T, update func() error) {
				require.PanicsWithValue(t, "boom", func() { _ = update() })
			}},
		{"a goroutine that ends, as t.FailNow does it, runs its deferred functions", func() error { runtime.Goexit(); return nil },
			func(t *testing.T, update func() error) {
				ended, returned := make(chan struct{}), false
				go func() {
					defer close(ended)
					_ = update()
					returned = true
				}()
				<-ended
				require.False(t, returned)
			}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := openTest(t, nil)
				g := gateCommits(q)
				add(t, q, nil)
				l := leaseOne(t, q)
				id := add(t, q, nil).ID
				before, commits := digest(t, q), g.commits.Load()
				behind := make(chan error, 1)
				c.want(t, func() error {
					return q.Update(t.Context(), func(tx *bbolt.Tx) error {
						go func() { behind <- q.Update(t.Context(), func(*bbolt.Tx) error { return errRolledBack }) }()
						synctest.Wait()
						if err := writeAll(q, tx, l, id); err != nil {
							return err
						}
						return c.end()
					})
				})
				require.Equal(t, errRolledBack, <-behind, "whoever waits is served")
				require.Equal(t, commits, g.commits.Load())
				require.Equal(t, before, digest(t, q))
				require.Empty(t, appRows(t, q.db))
				require.False(t, driver.Settled(l))

				require.NoError(t, q.Update(t.Context(), func(tx *bbolt.Tx) error { return writeAll(q, tx, l, id) }))
				require.True(t, driver.Settled(l))
				require.Equal(t, []string{"row"}, appRows(t, q.db))
			})
		})
	}
}

// Until the function begins, the context can withdraw an Update. After that it cannot.
func TestUpdateIsWithdrawnBeforeItBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openTest(t, nil)
		g := gateCommits(q)
		never := func(*bbolt.Tx) error { panic("it was withdrawn") }
		ctx, cancel := context.WithCancelCause(t.Context())

		release := g.occupy(q)
		waiting := started(func() error { return q.Update(ctx, never) })
		synctest.Wait()
		cancel(errBoom)
		for _, err := range []error{<-waiting, q.Update(ctx, never)} {
			require.ErrorIs(t, err, pawl.ErrNotAccepted)
			require.ErrorIs(t, err, context.Canceled)
			require.ErrorIs(t, err, errBoom)
		}
		release()
		synctest.Wait()
		require.Equal(t, int32(1), g.commits.Load())

		// The calls after a withdrawn update continue.
		release = g.occupy(q)
		ctx, cancel = context.WithCancelCause(t.Context())
		waiting = started(func() error { return q.Update(ctx, never) })
		synctest.Wait()
		behind := started(func() error { return q.Update(t.Context(), func(tx *bbolt.Tx) error { return appPut(tx, "behind") }) })
		synctest.Wait()
		cancel(nil)
		require.ErrorIs(t, <-waiting, pawl.ErrNotAccepted)
		release()
		require.NoError(t, <-behind)
		require.Equal(t, []string{"behind"}, appRows(t, q.db))
	})
}

func TestUpdateOutlastsItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openTest(t, nil)
		g := gateCommits(q)
		for _, moment := range []string{"while the function runs", "during the commit"} {
			ctx, cancel := context.WithCancel(t.Context())
			reached, leave := g.hold()
			updated := started(func() error {
				return q.Update(ctx, func(tx *bbolt.Tx) error {
					if moment == "while the function runs" {
						cancel()
						synctest.Wait()
					}
					return appPut(tx, moment)
				})
			})
			reached()
			cancel()
			synctest.Wait()
			require.Empty(t, updated, "it waits for the commit")
			leave()
			require.NoError(t, <-updated)
			require.Contains(t, appRows(t, q.db), moment)
		}
	})
}

// A function that runs when Close is called ends normally: its verbs work, and Close waits for
// its commit. Functions that have not begun never run.
func TestCloseWaitsForUpdate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "jobs.db")
		q := openAt(t, path, nil)
		add(t, q, nil)
		l := leaseOne(t, q)
		id := add(t, q, nil).ID
		var closed, late <-chan error
		require.NoError(t, q.Update(t.Context(), func(tx *bbolt.Tx) error {
			late = started(func() error { return q.Update(t.Context(), func(*bbolt.Tx) error { panic("it never begins") }) })
			synctest.Wait()
			closed = started(q.Close)
			synctest.Wait()
			require.Empty(t, closed)
			require.ErrorIs(t, q.Update(t.Context(), nil), pawl.ErrClosed, "nothing new comes in meanwhile")
			return writeAll(q, tx, l, id)
		}))
		require.ErrorIs(t, <-late, pawl.ErrClosed)
		require.NoError(t, <-closed)

		q = openAt(t, path, nil)
		require.Equal(t, []string{"row"}, appRows(t, q.db))
		require.Equal(t, pawl.Counts{Ready: 1}, countsOf(t, q, "new"))
		require.Equal(t, pawl.Counts{Dead: 1}, countsOf(t, q, pawl.DefaultQueue))
	})
}
