package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/withid"
	"github.com/gopawl/pawl/postgres"
)

// Rule: a client that stops within a transaction, and whose connection stays, keeps neither its leases
// nor the jobs that it looked at.
func TestClientThatStopsInATransaction(t *testing.T) {
	schema, proxy := newSchema(t), newCutter(t)
	stops := openAt(t, proxy.url, schema, func(o *postgres.Options) { o.Lease = time.Second })
	leased, seen := &pawl.Envelope{Kind: "leased"}, &pawl.Envelope{Kind: "seen"}
	require.NoError(t, withid.Enqueue(t.Context(), stops, leased, seen))
	l, err := stops.Fetch(t.Context(), pawl.Request{Max: 1})
	require.NoError(t, err)
	require.Equal(t, leased.ID, l[0].ID)
	proxy.freezes.Store(true)
	fetched := make(chan error)
	go func() {
		_, err := stops.Fetch(t.Context(), pawl.Request{Max: 1, Wait: pawl.WaitNot})
		fetched <- err
	}()
	<-proxy.stuck
	other := open(t, schema)
	crashes := make(map[string]int)
	for len(crashes) < 2 {
		leases, err := other.Fetch(patient(t), pawl.Request{Max: 2})
		require.NoError(t, err, "after %v", crashes)
		for _, l := range leases {
			crashes[l.Kind] = l.Crashes
		}
	}
	require.Equal(t, map[string]int{"leased": 1, "seen": 0}, crashes)
	proxy.thaw()
	require.Error(t, <-fetched)
}

// Rule: a call that needs a job which another session has locked waits for it until its context ends,
// and delays no other call.
func TestJobThatIsLocked(t *testing.T) {
	schema := newSchema(t)
	q := open(t, schema, noPoll, func(o *postgres.Options) { o.Lease = time.Second }) // so it waits for a lock briefly
	one, other := &pawl.Envelope{Kind: "k"}, &pawl.Envelope{Kind: "k"}
	require.NoError(t, withid.Enqueue(t.Context(), q, one, other))
	session, err := pgx.Connect(t.Context(), server.url)
	require.NoError(t, err)
	defer func() { require.NoError(t, session.Close(context.WithoutCancel(t.Context()))) }()
	tx, err := session.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), "SELECT FROM "+schema+".job FOR UPDATE")
	require.NoError(t, err)
	ctx, withdraw := context.WithCancel(t.Context())
	first, second := make(chan error, 1), make(chan error, 1)
	go func() { first <- q.Cancel(ctx, one.ID) }()
	go func() { second <- q.Cancel(t.Context(), other.ID) }()
	waitsForLock(t, schema)
	for range 3 {
		require.NoError(t, withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "k"}))
	}
	withdraw()
	require.ErrorIs(t, <-first, pawl.ErrNotAccepted)
	require.Empty(t, second)
	require.NoError(t, tx.Rollback(t.Context()))
	require.NoError(t, <-second)
}

// Rule: until its transaction begins a call can be withdrawn by its context, also while the server does
// not answer: a call that came, and a fetch that waits.
func TestWithdrawWhileTheServerIsSilent(t *testing.T) {
	schema, proxy := newSchema(t), newCutter(t)
	q := openAt(t, proxy.url, schema, noPoll)
	ctx, withdraw := context.WithCancel(t.Context())
	commits := "SELECT commits FROM " + schema + ".process"
	before := count(t, commits)
	fetch, first, second := make(chan error, 1), make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := q.Fetch(ctx, pawl.Request{Max: 1})
		fetch <- err
	}()
	require.Eventually(t, func() bool { return count(t, commits) > before }, time.Minute, time.Millisecond, "the fetch waits")
	require.NoError(t, q.Wake(t.Context()), "the client has the answer to that commit")
	proxy.freeze()
	go func() { first <- withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "k"}) }()
	<-proxy.stuck
	go func() { second <- withid.Enqueue(ctx, q, &pawl.Envelope{Kind: "k"}) }()
	withdraw()
	require.ErrorIs(t, <-fetch, pawl.ErrNotAccepted)
	require.ErrorIs(t, <-second, pawl.ErrNotAccepted)
	require.Empty(t, first, "it waits for the server")
	proxy.thaw()
	require.NoError(t, <-first)
	stats, err := q.Stats(t.Context())
	require.NoError(t, err)
	require.Equal(t, pawl.Counts{Ready: 1}, stats.Queues[0].Counts)
}

// Rule: an enqueue of a unique key waits for the job that holds it, and does not lock the key while it
// waits: the transaction that settles that job writes the key after the job.
func TestKeyWhoseJobIsLocked(t *testing.T) {
	schema := newSchema(t)
	q := open(t, schema, noPoll)
	e := &pawl.Envelope{Kind: "k", UniqueKey: "key"}
	require.NoError(t, withid.Enqueue(t.Context(), q, e))
	session, err := pgx.Connect(t.Context(), server.url)
	require.NoError(t, err)
	defer func() { require.NoError(t, session.Close(context.WithoutCancel(t.Context()))) }()
	tx, err := session.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), "SELECT FROM "+schema+".job FOR UPDATE")
	require.NoError(t, err)
	again, enqueued := &pawl.Envelope{Kind: "k", UniqueKey: "key"}, make(chan error, 1)
	go func() { enqueued <- withid.Enqueue(t.Context(), q, again) }()
	waitsForLock(t, schema)
	_, err = tx.Exec(t.Context(), "SELECT FROM "+schema+".uniq FOR UPDATE NOWAIT")
	require.NoError(t, err)
	require.NoError(t, tx.Rollback(t.Context()))
	require.NoError(t, <-enqueued)
	require.Equal(t, e.ID, again.ID)
}

// waitsForLock waits until a session waits for a lock in a statement that names a schema.
func waitsForLock(t *testing.T, schema string) {
	t.Helper()
	require.Eventually(t, func() bool {
		return count(t, "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%"+schema+"%'") > 0
	}, time.Minute, time.Millisecond, "it waits for the lock")
}
