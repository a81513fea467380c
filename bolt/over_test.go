package bolt

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/busy"
	"github.com/gopawl/pawl/internal/withid"
)

// openApp opens an app's own database, which is closed and checked at the end of the test like
// the file of a queue.
func openApp(t *testing.T) *bbolt.DB {
	t.Helper()
	path := filepath.Join(memoryFolder(t), "app.db")
	db, err := bbolt.Open(path, 0o600, nil)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, db.Close())
		checkFile(t, path)
	})
	return db
}

// openOver opens a queue over a database. It is closed at the end of the test.
func openOver(t *testing.T, db *bbolt.DB, opts *Options) *Queue {
	t.Helper()
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.Logger == nil {
		o.Logger = hclog.NewNullLogger()
	}
	if o.Lease == 0 {
		o.Lease = busy.Lease()
	}
	q, err := Over(db, &o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, q.Close()) })
	return q
}

func updateApp(t *testing.T, db *bbolt.DB, end error, fn func(tx *bbolt.Tx)) {
	t.Helper()
	require.Equal(t, end, db.Update(func(tx *bbolt.Tx) error {
		fn(tx)
		return end
	}))
}

// The first Over creates the queue beside the app's data, and later ones find it. Close leaves
// the database open, and leased jobs are ready for the next queue.
func TestOverIsOpenedAgainAndAgain(t *testing.T) {
	db := openApp(t)
	updateApp(t, db, nil, func(tx *bbolt.Tx) { require.NoError(t, appPut(tx, "before")) })
	q := openOver(t, db, nil)
	id := add(t, q, nil).ID
	for crashes := range 3 {
		require.Equal(t, crashes, find(t, q, id).Crashes)
		l := leaseOne(t, q)
		require.NoError(t, q.Close())
		require.NoError(t, q.Close(), "a second Close is no error")
		require.ErrorIs(t, q.Settle(t.Context(), l.Ack()), pawl.ErrClosed)
		updateApp(t, db, nil, func(tx *bbolt.Tx) {
			require.NoError(t, appPut(tx, "between"))
			for _, c := range txVerbs {
				if c.name != "enqueue nothing" {
					require.ErrorIs(t, c.do(q, tx, id, l), pawl.ErrClosed, c.name)
				}
			}
		})
		q = openOver(t, db, nil)
		require.ErrorIs(t, q.Settle(t.Context(), l.Ack()), pawl.ErrLeaseLost)
	}
	require.Equal(t, []string{"before", "between"}, appRows(t, db))
	require.Equal(t, pawl.Counts{Ready: 1}, countsOf(t, q, pawl.DefaultQueue))
}

// Orphans of a dead process are found when the file is opened again.
func TestOverTakesOrphansBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.db")
	for crashes := range 2 {
		db, err := bbolt.Open(path, 0o600, nil)
		require.NoError(t, err)
		var events eventLog
		q, err := Over(db, &Options{Logger: hclog.NewNullLogger(), OnEvent: events.event})
		require.NoError(t, err)
		if crashes == 0 {
			add(t, q, nil)
			events.take()
		} else {
			require.Equal(t, []string{"recovered"}, events.take())
		}
		require.Equal(t, crashes, leaseOne(t, q).Crashes)
		require.NoError(t, q.Close())
		require.NoError(t, db.Close())
	}
	checkFile(t, path)
}

// There is one queue per database, however it was opened.
func TestOverWhatHasAQueue(t *testing.T) {
	db := openApp(t)
	q := openOver(t, db, nil)
	_, err := Over(db, quiet())
	require.ErrorIs(t, err, ErrAlreadyOpen)
	add(t, q, nil)
	require.NoError(t, q.Close())
	openOver(t, db, nil)

	own := openTest(t, nil)
	inTx(t, own, nil, func(tx *bbolt.Tx) { db = tx.DB() })
	_, err = Over(db, quiet())
	require.ErrorIs(t, err, ErrAlreadyOpen)
	add(t, own, nil)
}

// A database in which no queue can keep its promises is refused and unchanged.
func TestOverWhatCannotHoldAQueue(t *testing.T) {
	requireUntouched := func(db *bbolt.DB) {
		t.Helper()
		require.NoError(t, db.View(func(tx *bbolt.Tx) error {
			require.Nil(t, tx.Bucket(bucketRoot))
			return nil
		}))
	}
	db := openApp(t)
	db.NoSync = true
	_, err := Over(db, quiet())
	require.ErrorIs(t, err, pawl.ErrInvalid)
	require.ErrorContains(t, err, "NoSync")
	db.NoSync = false
	_, err = Over(db, &Options{Lease: 1, Logger: hclog.NewNullLogger()})
	require.ErrorIs(t, err, pawl.ErrInvalid)
	requireUntouched(db)
	require.NoError(t, db.Sync())

	path := filepath.Join(t.TempDir(), "app.db")
	plain, err := bbolt.Open(path, 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, plain.Close())
	_, err = Over(plain, quiet())
	require.Error(t, err, "it is closed")
	reading, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true})
	require.NoError(t, err)
	_, err = Over(reading, quiet())
	require.ErrorIs(t, err, pawl.ErrInvalid)
	require.ErrorContains(t, err, "for reading only")
	requireUntouched(reading)
	require.NoError(t, reading.Close())

	// The bucket belongs to the app. Once it is gone the database can have a queue: a failed
	// Over leaves nothing behind.
	updateApp(t, db, nil, func(tx *bbolt.Tx) {
		_, err := tx.CreateBucket(bucketRoot)
		require.NoError(t, err)
	})
	_, err = Over(db, quiet())
	require.Error(t, err)
	require.NotErrorIs(t, err, ErrAlreadyOpen)
	updateApp(t, db, nil, func(tx *bbolt.Tx) { require.NoError(t, tx.DeleteBucket(bucketRoot)) })
	openOver(t, db, nil)
}

// An app that closes its database first gets errors, and no panic or endless wait.
func TestDatabaseClosedBeforeItsQueue(t *testing.T) {
	db, err := bbolt.Open(filepath.Join(t.TempDir(), "app.db"), 0o600, nil)
	require.NoError(t, err)
	q, err := Over(db, quiet())
	require.NoError(t, err)
	fetching := started(func() error { _, err := q.Fetch(t.Context(), pawl.Request{Max: 1}); return err })
	require.NoError(t, db.Close())
	require.ErrorIs(t, withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "k"}), pawl.ErrPoisoned)
	require.ErrorIs(t, q.Update(t.Context(), func(*bbolt.Tx) error { panic("it never begins") }), pawl.ErrPoisoned)
	require.ErrorIs(t, <-fetching, pawl.ErrPoisoned)
	_, err = q.Stats(t.Context())
	require.ErrorIs(t, err, pawl.ErrClosed)
	require.NoError(t, q.Close())
}

// Over works as well as Open: a delayed job becomes ready in time, an expired lease is taken
// back, and there are no unnecessary commits.
func TestOverPromotes(t *testing.T) {
	q := openOver(t, openApp(t), nil)
	start := time.Now()
	add(t, q, func(e *pawl.Envelope) { e.Delay = 50 * time.Millisecond })
	leases, err := q.Fetch(t.Context(), pawl.Request{Max: 1})
	require.NoError(t, err)
	require.GreaterOrEqual(t, time.Since(start), 50*time.Millisecond)
	require.NoError(t, q.Settle(t.Context(), leases[0].Ack()))
}
