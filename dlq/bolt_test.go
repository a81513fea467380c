package dlq_test

import (
	"path/filepath"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/dlq"
	"github.com/gopawl/pawl/internal/busy"
	"github.com/gopawl/pawl/internal/memdir"
)

var (
	_ dlq.Store  = (*bolt.Queue)(nil)
	_ dlq.Reader = (*bolt.Reader)(nil)
)

func inFile(t *testing.T) queue {
	t.Helper()
	return open(t, filepath.Join(memdir.New(t), "jobs.db"))
}

func open(t *testing.T, path string) *bolt.Queue {
	t.Helper()
	q, err := bolt.Open(path, &bolt.Options{Logger: hclog.NewNullLogger(), Lease: busy.Lease()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, q.Close()) })
	return q
}

// damagedStore has three dead jobs; the record of the second is damaged.
func damagedStore(t *testing.T) (q *bolt.Queue, first, damaged, last pawl.ID) {
	t.Helper()
	path := filepath.Join(memdir.New(t), "jobs.db")
	q, err := bolt.Open(path, &bolt.Options{Logger: hclog.NewNullLogger(), Lease: busy.Lease()})
	require.NoError(t, err)
	first, damaged, last = makeDead(t, q, "mail", "a"), makeDead(t, q, "mail", "a"), makeDead(t, q, "mail", "a")
	require.NoError(t, q.Close())

	db, err := bbolt.Open(path, 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, db.Update(func(tx *bbolt.Tx) error {
		jobs := tx.Bucket([]byte("pawl")).Bucket([]byte("jobs"))
		record := append([]byte(nil), jobs.Get(damaged[:])...)
		record[len(record)-1] ^= 1
		return jobs.Put(damaged[:], record)
	}))
	require.NoError(t, db.Close())
	return open(t, path), first, damaged, last
}

// Rule: a damaged dead job is reported and skipped; the others are still listed and retried.
func TestDamagedJob(t *testing.T) {
	q, first, damaged, last := damagedStore(t)
	var seen []pawl.ID
	for job, err := range dlq.List(t.Context(), q, pawl.Filter{}) {
		if job.ID == damaged {
			require.ErrorIs(t, err, pawl.ErrCorrupt)
		} else {
			require.NoError(t, err)
		}
		seen = append(seen, job.ID)
	}
	require.Equal(t, []pawl.ID{first, damaged, last}, seen)
	n, err := dlq.RetryAll(t.Context(), q, nil, pawl.Filter{})
	require.NoError(t, err)
	require.Equal(t, 2, n)
}

// Rule: a damaged dead job is neither forwarded nor purged with the others.
func TestDamagedJobStays(t *testing.T) {
	q, _, damaged, _ := damagedStore(t)
	to := inMemory(t)
	n, err := dlq.Forward(t.Context(), q, dlq.ToQueue(to, ""), nil, pawl.Filter{Kind: "a"})
	require.NoError(t, err)
	require.Equal(t, 2, n)
	n, err = dlq.Purge(t.Context(), q, tomorrow(), pawl.Filter{})
	require.NoError(t, err)
	require.Zero(t, n)

	var left []pawl.ID
	for e, err := range dlq.List(t.Context(), q, pawl.Filter{}) {
		require.ErrorIs(t, err, pawl.ErrCorrupt)
		left = append(left, e.ID)
	}
	require.Equal(t, []pawl.ID{damaged}, left)
}

// Rule: dead jobs are forwarded completely from one file to another, even if both files are closed
// between the two steps.
func TestForwardFromFileToFile(t *testing.T) {
	dir := memdir.New(t)
	from, err := bolt.Open(filepath.Join(dir, "jobs.db"), &bolt.Options{Logger: hclog.NewNullLogger(), Lease: busy.Lease()})
	require.NoError(t, err)
	to, err := bolt.Open(filepath.Join(dir, "failed.db"), &bolt.Options{Logger: hclog.NewNullLogger(), Lease: busy.Lease()})
	require.NoError(t, err)
	large := &pawl.Envelope{Kind: "a", Queue: "mail", Payload: make([]byte, 500_000)}
	id := failDead(t, from, large, pawl.ReasonPermanent, "one", "two")
	for range 200 {
		makeDead(t, from, "mail", "a")
	}
	jobs := list(t, from, pawl.Filter{})

	crash := &shelf{queue: from, delete: func(pawl.ID) error { return pawl.ErrPoisoned }}
	_, err = dlq.Forward(t.Context(), crash, dlq.ToQueue(to, ""), nil, pawl.Filter{})
	require.ErrorIs(t, err, pawl.ErrPoisoned)
	require.NoError(t, from.Close())
	require.NoError(t, to.Close())

	source, target := open(t, filepath.Join(dir, "jobs.db")), open(t, filepath.Join(dir, "failed.db"))
	require.Equal(t, jobs, list(t, source, pawl.Filter{}), "all are here still")
	n, err := dlq.Forward(t.Context(), source, dlq.ToQueue(target, ""), &dlq.ForwardOptions{Parallel: 64}, pawl.Filter{})
	require.NoError(t, err)
	require.Equal(t, len(jobs), n)
	require.Empty(t, list(t, source, pawl.Filter{}))
	for _, id := range jobs {
		job := get(t, target, id)
		require.Equal(t, pawl.Ready, job.State)
		require.Equal(t, dlq.FailedJobs, job.Queue)
	}
	require.Len(t, get(t, target, id).Payload, 500_000)
}
