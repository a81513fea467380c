package bolt

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/withid"
)

// Every lease found at Open is taken back immediately, with one more crash and no more attempts,
// whatever the number of leases.
func TestOrphansAreReadyAtOnce(t *testing.T) {
	path := filepath.Join(memoryFolder(t), "jobs.db")
	const jobs = recoverPortion + 100
	leaveLeases(t, path, jobs)

	q := openAt(t, path, nil)
	require.Equal(t, pawl.Counts{Ready: jobs}, countsOf(t, q, pawl.DefaultQueue))
	for e, err := range q.Jobs(t.Context(), pawl.Filter{}) {
		require.NoError(t, err)
		require.Equal(t, 1, e.Crashes)
		require.Zero(t, e.Attempts)
	}
	require.Len(t, fetch(t, q, 10), 10, "nobody waits for leases to expire")
}

// leaveLeases makes a file with n leased jobs.
func leaveLeases(t *testing.T, path string, n int) {
	t.Helper()
	q, err := Open(path, quiet())
	require.NoError(t, err)
	batch := make([]*pawl.Envelope, n)
	for i := range batch {
		batch[i] = &pawl.Envelope{Kind: "k"}
	}
	require.NoError(t, withid.Enqueue(t.Context(), q, batch...))
	for left := n; left > 0; {
		left -= len(fetch(t, q, left))
	}
	require.NoError(t, q.Close())
}

// Rule: Recovery says whether the last process closed the queue, and how many jobs it had leased.
func TestRecovery(t *testing.T) {
	path := filepath.Join(memoryFolder(t), "jobs.db")
	found := func(path string) Recovery {
		t.Helper()
		q, err := Open(path, crashOptions())
		require.NoError(t, err)
		defer func() { require.NoError(t, q.Close()) }()
		return q.Recovery()
	}
	require.Equal(t, Recovery{Clean: true}, found(path), "a new file")
	require.Equal(t, Recovery{Clean: true}, found(path), "closed")
	q := openAt(t, path, crashOptions())
	add(t, q, nil)
	killed := path + ".killed" // a kill leaves what was written
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(killed, content, 0o600))
	require.Equal(t, Recovery{}, found(killed), "killed without a lease")
	require.Equal(t, Recovery{Clean: true}, found(killed), "closed")
	require.NoError(t, q.Close())
	require.Equal(t, Recovery{Clean: true}, found(path), "closed")
	leaveLeases(t, path, 3)
	require.Equal(t, Recovery{Jobs: 3}, found(path), "closed while jobs were leased")
	require.Equal(t, Recovery{Clean: true}, found(path))
}

// A process that dies while it takes leases back leaves the rest to the next one, and counts no
// crash twice.
func TestCrashBetweenPortionsCountsOnce(t *testing.T) {
	path := filepath.Join(memoryFolder(t), "jobs.db")
	leaveLeases(t, path, 100)
	for range 3 {
		db, _, err := openFile(path, Options{LockTimeout: time.Second, Logger: quiet().Logger})
		require.NoError(t, err)
		s := &scheduler{db: db, now: time.Now, leases: newLeaseTable(time.Second), log: quiet().Logger, observer: &observer{Reporter: driver.Reporter{Logger: quiet().Logger}}, meter: new(driver.Meter), commitTx: (*bbolt.Tx).Commit}
		require.NoError(t, s.transact(func(tx *txn) error {
			require.Equal(t, 30, tx.takeOrphans(30))
			return nil
		}))
		require.NoError(t, db.Close())
		checkFile(t, path)
	}
	q := openAt(t, path, nil)
	require.Equal(t, pawl.Counts{Ready: 100}, countsOf(t, q, pawl.DefaultQueue))
	for e, err := range q.Jobs(t.Context(), pawl.Filter{}) {
		require.NoError(t, err)
		require.Equal(t, 1, e.Crashes)
	}
}

// At the crash cap a job dies as poison and does not run again.
func TestOrphanAtTheCapIsPoison(t *testing.T) {
	path := filepath.Join(memoryFolder(t), "jobs.db")
	var id pawl.ID
	for crashes := range 5 {
		q, err := Open(path, quiet())
		require.NoError(t, err)
		if crashes == 0 {
			id = add(t, q, nil).ID
		}
		require.Equal(t, crashes, leaseOne(t, q).Crashes)
		require.NoError(t, q.Close())
	}
	q := openAt(t, path, nil)
	e := find(t, q, id)
	require.Equal(t, pawl.Dead, e.State)
	require.Equal(t, pawl.ReasonPoison, e.Death.Reason)
	require.Equal(t, 5, e.Crashes)
	require.Zero(t, e.Attempts, "a crash burns no retry")
	require.Equal(t, "crashed 5 times in a row", e.History[0].Error)
	require.Empty(t, fetch(t, q, 1))
}
