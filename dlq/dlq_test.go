package dlq_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/dlq"
)

var (
	_ dlq.Store  = (*bolt.Queue)(nil)
	_ dlq.Reader = (*bolt.Reader)(nil)
)

func open(t *testing.T, path string) *bolt.Queue {
	t.Helper()
	q, err := bolt.Open(path, &bolt.Options{Logger: hclog.NewNullLogger()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, q.Close()) })
	return q
}

// die enqueues a job and lets its first run be its last.
func die(t *testing.T, q *bolt.Queue, queue, kind string) pawl.ID {
	t.Helper()
	job := &pawl.Envelope{Kind: kind, Queue: queue}
	require.NoError(t, q.Enqueue(t.Context(), job))
	leases, err := q.Fetch(t.Context(), pawl.Request{Queues: []string{queue}, Max: 1})
	require.NoError(t, err)
	require.NoError(t, q.Abandon(t.Context(), leases[0], pawl.ReasonExhausted, errors.New("no luck")))
	return job.ID
}

func list(t *testing.T, r dlq.Reader, f pawl.Filter) (ids []pawl.ID) {
	t.Helper()
	for job, err := range dlq.List(t.Context(), r, f) {
		require.NoError(t, err)
		require.Equal(t, pawl.Dead, job.State)
		ids = append(ids, job.ID)
	}
	return ids
}

// Rule: the list has the dead letters that the filter chooses, in the order in which
// they died, and no job that is alive.
func TestList(t *testing.T) {
	q := open(t, filepath.Join(t.TempDir(), "jobs.db"))
	first := die(t, q, "mail", "a")
	second := die(t, q, "mail", "b")
	third := die(t, q, "other", "a")
	require.NoError(t, q.Enqueue(t.Context(), &pawl.Envelope{Kind: "a", Queue: "mail"}))

	require.Equal(t, []pawl.ID{first, second, third}, list(t, q, pawl.Filter{}))
	require.Equal(t, []pawl.ID{first, third}, list(t, q, pawl.Filter{Kind: "a"}))
	require.Equal(t, []pawl.ID{first, second}, list(t, q, pawl.Filter{Queue: "mail"}))
	require.Equal(t, []pawl.ID{first}, list(t, q, pawl.Filter{Queue: "mail", Kind: "a", State: pawl.Ready}),
		"the filter's state does not count")
	require.Empty(t, list(t, q, pawl.Filter{Kind: "c"}))
}

// Rule: a dead letter tells why it died; a job that is alive is not one.
func TestInspect(t *testing.T) {
	q := open(t, filepath.Join(t.TempDir(), "jobs.db"))
	id := die(t, q, "mail", "a")
	job, err := dlq.Inspect(t.Context(), q, id)
	require.NoError(t, err)
	require.Equal(t, pawl.ReasonExhausted, job.Death.Reason)
	require.Equal(t, 1, job.Attempts)
	require.Equal(t, "no luck", job.History[0].Error)

	alive := &pawl.Envelope{Kind: "a"}
	require.NoError(t, q.Enqueue(t.Context(), alive))
	_, err = dlq.Inspect(t.Context(), q, alive.ID)
	require.ErrorIs(t, err, pawl.ErrConflict)
	_, err = dlq.Inspect(t.Context(), q, pawl.NewID(job.Created))
	require.ErrorIs(t, err, pawl.ErrNotFound)
}

// Rule: a retried letter is ready with its history; its attempts start again unless
// they are kept. The first that cannot be retried stops the rest.
func TestRetry(t *testing.T) {
	q := open(t, filepath.Join(t.TempDir(), "jobs.db"))
	one, two, three := die(t, q, "mail", "a"), die(t, q, "mail", "a"), die(t, q, "mail", "a")

	n, err := dlq.Retry(t.Context(), q, nil, one)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	job, err := q.Job(t.Context(), one)
	require.NoError(t, err)
	require.Equal(t, pawl.Ready, job.State)
	require.Zero(t, job.Attempts)
	require.Len(t, job.History, 1)

	n, err = dlq.Retry(t.Context(), q, &dlq.RetryOptions{KeepAttempts: true}, two, one, three)
	require.ErrorIs(t, err, pawl.ErrConflict)
	require.Equal(t, 1, n)
	job, err = q.Job(t.Context(), two)
	require.NoError(t, err)
	require.Equal(t, 1, job.Attempts)
	require.Equal(t, []pawl.ID{three}, list(t, q, pawl.Filter{}))
}

// Rule: all letters that the filter chooses are retried, once, and no others.
func TestRetryAll(t *testing.T) {
	q := open(t, filepath.Join(t.TempDir(), "jobs.db"))
	for range 100 {
		die(t, q, "mail", "a")
	}
	other := die(t, q, "mail", "b")
	n, err := dlq.RetryAll(t.Context(), q, nil, pawl.Filter{Kind: "a"})
	require.NoError(t, err)
	require.Equal(t, 100, n)
	require.Equal(t, []pawl.ID{other}, list(t, q, pawl.Filter{}))

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = dlq.RetryAll(ctx, q, nil, pawl.Filter{})
	require.ErrorIs(t, err, context.Canceled)
}

// Rule: a damaged letter is reported and passed over; it neither hides the others
// nor stops them from being retried.
func TestDamagedLetter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	q, err := bolt.Open(path, &bolt.Options{Logger: hclog.NewNullLogger()})
	require.NoError(t, err)
	first, damaged, last := die(t, q, "mail", "a"), die(t, q, "mail", "a"), die(t, q, "mail", "a")
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

	q = open(t, path)
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
