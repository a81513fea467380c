package postgres_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/withid"
	"github.com/gopawl/pawl/postgres"
)

// awaitBlocked waits until another session waits for a lock of a transaction.
func awaitBlocked(t *testing.T, tx appTx) {
	t.Helper()
	var pid int
	require.NoError(t, tx.QueryRow(t.Context(), "SELECT pg_backend_pid()").Scan(&pid))
	require.Eventually(t, func() bool {
		return count(t, fmt.Sprint("SELECT count(*) FROM pg_stat_activity WHERE ", pid, " = ANY(pg_blocking_pids(pid))")) > 0
	}, time.Minute, time.Millisecond)
}

// beside calls fn while a transaction is open for which it has to wait, and returns its error after the commit.
func beside(t *testing.T, tx appTx, fn func() error) error {
	t.Helper()
	result := make(chan error, 1)
	go func() { result <- fn() }()
	awaitBlocked(t, tx)
	require.NoError(t, tx.commit())
	return <-result
}

// runsNext requires that a job is the next to run, and acks it.
func runsNext(t *testing.T, q *postgres.Queue, e *pawl.Envelope) {
	t.Helper()
	require.NoError(t, q.Wake(t.Context()))
	l := fetchOne(t, q)
	require.Equal(t, e.ID, l.ID)
	require.NoError(t, q.Settle(t.Context(), l.Ack()))
}

// Rule: if a job ends while another transaction enqueues one that waits for it, either the end releases the new job, or
// the enqueue sees the end. So no job waits for what has ended.
func TestEnqueueBesideTheEndOfAPrerequisite(t *testing.T) {
	schema := newSchema(t)
	q, begin := open(t, schema, noPoll), appTxs["pgx"](t)
	for _, retain := range []time.Duration{0, time.Hour} {
		// The enqueue comes first.
		l, e := lease(t, q, &pawl.Envelope{Kind: "first", Retain: retain}), &pawl.Envelope{Kind: "k"}
		e.After = []pawl.ID{l.ID}
		first, second := begin(), begin()
		require.NoError(t, withid.Enqueue(t.Context(), q.In(first), e))
		require.NoError(t, beside(t, first, func() error { return q.AckTx(t.Context(), second, l) }))
		require.NoError(t, second.commit())
		runsNext(t, q, e)

		// The end comes first.
		l, e = lease(t, q, &pawl.Envelope{Kind: "first", Retain: retain}), &pawl.Envelope{Kind: "k"}
		e.AfterAny = []pawl.ID{l.ID}
		first, second = begin(), begin()
		require.NoError(t, q.AckTx(t.Context(), first, l))
		err := beside(t, first, func() error { return withid.Enqueue(t.Context(), q.In(second), e) })
		if retain == 0 {
			require.ErrorIs(t, err, pawl.ErrNotFound)
			require.NoError(t, second.rollback())
			continue
		}
		require.NoError(t, err)
		require.NoError(t, second.commit())
		runsNext(t, q, e)
	}
}

// Rule: if two transactions end the last two prerequisites of a job, the job is released by the later commit.
func TestEndsBesideOneAnother(t *testing.T) {
	t.Parallel()
	schema := newSchema(t)
	q, begin := open(t, schema, noPoll), appTxs["pgx"](t)
	one, other := lease(t, q, &pawl.Envelope{Kind: "one"}), lease(t, q, &pawl.Envelope{Kind: "other"})
	e := &pawl.Envelope{Kind: "k", After: []pawl.ID{one.ID, other.ID}}
	require.NoError(t, withid.Enqueue(t.Context(), q, e))
	first, second := begin(), begin()
	require.NoError(t, q.AckTx(t.Context(), first, one))
	require.NoError(t, beside(t, first, func() error { return q.AckTx(t.Context(), second, other) }))
	require.NoError(t, second.commit())
	runsNext(t, q, e)
}

// Rule: a restored job waits for a job that another transaction is about to store.
func TestRestoreBesideItsPrerequisite(t *testing.T) {
	schema := newSchema(t)
	q, begin := open(t, schema, noPoll), appTxs["pgx"](t)
	needed := &pawl.Envelope{ID: pawl.NewID(time.Now()), Kind: "needed"}
	e := &pawl.Envelope{ID: pawl.NewID(time.Now()), Kind: "k", After: []pawl.ID{needed.ID}, State: pawl.Ready}
	tx := begin()
	require.NoError(t, withid.Enqueue(t.Context(), q.In(tx), needed))
	require.NoError(t, beside(t, tx, func() error { return q.Restore(t.Context(), []*pawl.Envelope{e}, nil) }))
	runsNext(t, q, needed)
	runsNext(t, q, e)
}

// Rule: if a transaction of the app has locked a job that waits for another one, the other one does not become dead at
// its deadline, but after that transaction. Nothing else is delayed.
func TestDeadlineBesideALockedDependent(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, schema string) {
		q := open(t, schema, virtual)
		late := &pawl.Envelope{Kind: "late", Deadline: time.Now().Add(time.Second)}
		require.NoError(t, withid.Enqueue(t.Context(), q, late))
		e := &pawl.Envelope{Kind: "k", AfterAny: []pawl.ID{late.ID}}
		require.NoError(t, withid.Enqueue(t.Context(), q, e))
		tx := appTxs["pgx"](t)()
		require.NoError(t, withid.Enqueue(t.Context(), q.In(tx), &pawl.Envelope{Kind: "last", After: []pawl.ID{e.ID}}))
		time.Sleep(time.Second)
		other := &pawl.Envelope{Kind: "other", Deadline: time.Now().Add(time.Nanosecond)}
		require.NoError(t, withid.Enqueue(t.Context(), q, other))
		for ctx := patient(t); ; time.Sleep(time.Second) {
			found, err := q.Job(ctx, other.ID)
			require.NoError(t, err)
			if found.State == pawl.Dead {
				break
			}
		}
		found, err := q.Job(t.Context(), late.ID)
		require.NoError(t, err)
		require.Equal(t, pawl.Ready, found.State)
		require.NoError(t, tx.commit())
		leases, err := q.Fetch(patient(t), pawl.Request{Max: 1, Kinds: []string{"k"}})
		require.NoError(t, err)
		require.Equal(t, e.ID, leases[0].ID)
	})
}
