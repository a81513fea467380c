package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/withid"
	"github.com/gopawl/pawl/postgres"
)

// inOrder declares an order for the default queue.
func inOrder(o pawl.KeyOrder) func(*postgres.Options) {
	return func(opts *postgres.Options) {
		opts.Limits = map[string]pawl.Limits{pawl.DefaultQueue: {InOrder: o}}
	}
}

// runnable fetches all jobs that may run, and returns them by their kinds.
func runnable(t *testing.T, q *postgres.Queue) map[string]*pawl.Lease {
	t.Helper()
	leases, err := q.Fetch(t.Context(), pawl.Request{Max: 9, Wait: pawl.WaitNot})
	if !errors.Is(err, pawl.ErrEmpty) {
		require.NoError(t, err)
	}
	found := make(map[string]*pawl.Lease)
	for _, l := range leases {
		found[l.Kind] = l
	}
	return found
}

// runsAlone requires that a job is the only one that may run, also after a retry, and acks it.
func runsAlone(t *testing.T, q *postgres.Queue) *pawl.Lease {
	t.Helper()
	retries := 0
	for {
		found := runnable(t, q)
		require.Len(t, found, 1)
		for _, l := range found {
			if retries++; retries > 1 {
				require.NoError(t, q.Settle(t.Context(), l.Ack()))
				return l
			}
			require.NoError(t, q.Settle(t.Context(), l.Nack(time.Hour, errors.New("again"))))
			require.Empty(t, runnable(t, q), "while the job waits for its retry")
			require.NoError(t, q.RunNow(t.Context(), l.ID))
		}
	}
}

func keyed(kind, key string) *pawl.Envelope { return &pawl.Envelope{Kind: kind, Key: key} }

// Rule: several clients that fetch at the same time run the jobs of each key one after another, in order, despite
// retries and releases.
func TestTurnsOfSeveralClients(t *testing.T) {
	t.Parallel()
	for name, limits := range map[string]pawl.Limits{"in order": {InOrder: pawl.OrderContinue}, "in order and fair": {InOrder: pawl.OrderContinue, Fair: true}} {
		t.Run(name, func(t *testing.T) { runTurns(t, declaring(limits)) })
	}
}

// runTurns has three clients run the jobs of three keys.
func runTurns(t *testing.T, declared func(*postgres.Options)) {
	const clients, keys, jobs = 3, 3, 16
	schema := newSchema(t)
	first := open(t, schema, declared)
	var batch []*pawl.Envelope
	for i := range keys * jobs {
		batch = append(batch, keyed(fmt.Sprint(i/keys), fmt.Sprint(i%keys)))
	}
	require.NoError(t, withid.Enqueue(t.Context(), first, batch...))
	var mu sync.Mutex
	next, running, ended := make(map[string]int), make(map[string]bool), 0
	begin := func(l *pawl.Lease) {
		mu.Lock()
		defer mu.Unlock()
		if running[l.Key] || l.Kind != fmt.Sprint(next[l.Key]) {
			t.Errorf("job %s of key %s runs instead of job %d; another one is running: %v", l.Kind, l.Key, next[l.Key], running[l.Key])
		}
		running[l.Key] = true
	}
	end := func(l *pawl.Lease) pawl.Settlement {
		mu.Lock()
		defer mu.Unlock()
		running[l.Key] = false
		n := next[l.Key]
		if l.Attempts == 0 && n%4 == 1 {
			return l.Nack(0, errors.New("again"))
		}
		ended++
		if next[l.Key]++; n%4 == 2 {
			return l.Abandon(pawl.ReasonPermanent, errors.New("dead"))
		}
		return l.Ack()
	}
	all := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return ended == keys*jobs || t.Failed()
	}
	var wg sync.WaitGroup
	for n := range clients {
		q := first
		if n > 0 {
			q = open(t, schema)
		}
		wg.Go(func() {
			for !all() {
				leases, err := q.Fetch(t.Context(), pawl.Request{Max: 2, Wait: pawl.WaitNot})
				if err != nil && !errors.Is(err, pawl.ErrEmpty) {
					t.Errorf("client %d: fetch: %v", n, err)
				}
				for _, l := range leases {
					begin(l)
					if err := q.Settle(t.Context(), end(l)); err != nil {
						t.Errorf("client %d: settle: %v", n, err)
					}
				}
			}
		})
	}
	wg.Wait()
	stale := count(t, "SELECT count(*) FROM "+schema+".job WHERE due IS NOT NULL AND place NOT IN (0, -2)")
	require.Zero(t, stale, "jobs that are not ready, and have the column of those with a tag")
}

// Rule: only one job of a key is where fetches look, however many jobs the key has. So a fetch of other jobs does not
// walk over them.
func TestFetchesSeeOneJobOfAKey(t *testing.T) {
	schema := newSchema(t)
	q := open(t, schema, noPoll, inOrder(pawl.OrderHold))
	var batch []*pawl.Envelope
	for range 300 {
		batch = append(batch, keyed("k", "a"))
	}
	require.NoError(t, withid.Enqueue(t.Context(), q, batch...))
	require.Len(t, runnable(t, q), 1)
	require.NoError(t, withid.Enqueue(t.Context(), q, keyed("k", "a"), keyed("other", "b")))
	require.Len(t, runnable(t, q), 1)
	require.EqualValues(t, 2, count(t, "SELECT count(*) FROM "+schema+".job WHERE place = 0"))
	require.Zero(t, count(t, "SELECT count(*) FROM "+schema+".turn"))
}

// Rule: a job that is enqueued in a transaction follows the order of its queue, although that was declared or removed
// while the transaction was open.
func TestOrderDeclaredBesideATransaction(t *testing.T) {
	schema := newSchema(t)
	q, begin := open(t, schema, noPoll), appTxs["pgx"](t)
	tx := begin()
	require.NoError(t, withid.Enqueue(t.Context(), q.In(tx), keyed("a", "x"), keyed("b", "x")))
	q = open(t, schema, noPoll, inOrder(pawl.OrderHold))
	require.NoError(t, withid.Enqueue(t.Context(), q, keyed("c", "x")))
	require.NoError(t, tx.commit())
	require.Equal(t, "a", runsAlone(t, q).Kind)
	require.Equal(t, "b", runsAlone(t, q).Kind)
	tx = begin()
	require.NoError(t, withid.Enqueue(t.Context(), q.In(tx), keyed("d", "x")))
	q = open(t, schema, noPoll, func(o *postgres.Options) { o.Limits = map[string]pawl.Limits{pawl.DefaultQueue: {}} })
	require.NoError(t, tx.commit())
	found := runnable(t, q)
	require.Contains(t, found, "c")
	require.Contains(t, found, "d")
}

// Rule: while another session has locked the first job of a key, no job behind it runs. The first job runs when it is
// no longer locked.
func TestTurnOfALockedJob(t *testing.T) {
	schema := newSchema(t)
	q := open(t, schema, noPoll, inOrder(pawl.OrderHold))
	a := keyed("a", "x")
	require.NoError(t, withid.Enqueue(t.Context(), q, a, keyed("b", "x"), keyed("c", "y")))
	tx := appTxs["pgx"](t)()
	var id string
	require.NoError(t, tx.QueryRow(t.Context(), "SELECT id::text FROM "+schema+".job WHERE id = $1 FOR UPDATE", a.ID.String()).Scan(&id))
	found := runnable(t, q)
	require.Len(t, found, 1)
	require.Contains(t, found, "c")
	leases := make(chan []*pawl.Lease, 1)
	go func() {
		found, _ := q.Fetch(patient(t), pawl.Request{Max: 9})
		leases <- found
	}()
	require.NoError(t, tx.rollback())
	got := <-leases
	require.Len(t, got, 1)
	require.Equal(t, "a", got[0].Kind)
	require.Empty(t, runnable(t, q))
}

// Rule: if several jobs hold one key, because they come from several databases, one of them holds it here, and none is
// lost.
func TestRestoreOfSeveralHolders(t *testing.T) {
	q := open(t, newSchema(t), noPoll, inOrder(pawl.OrderHold))
	var jobs []*pawl.Envelope
	for _, kind := range []string{"a", "b", "c"} {
		e := keyed(kind, "x")
		e.HoldsKey, e.State, e.NotBefore = kind != "c", pawl.Ready, time.Now().Add(-time.Hour)
		jobs = append(jobs, e)
	}
	require.NoError(t, q.Restore(context.WithoutCancel(t.Context()), jobs, nil))
	for range jobs {
		runsAlone(t, q)
	}
	require.Empty(t, runnable(t, q))
}

// Rule: if more keys may have another first job than one transaction looks at, later transactions look at the rest, and
// a fetch gets its job, even if it does not wait for jobs.
func TestManyTurnsAtOnce(t *testing.T) {
	schema := newSchema(t)
	q := open(t, schema, noPoll, inOrder(pawl.OrderHold))
	for n, wait := range []pawl.Wait{pawl.WaitForJob, pawl.WaitNot} {
		noteManyKeys(t, schema)
		e := keyed("k", fmt.Sprint("x", n)) // after all these keys
		require.NoError(t, withid.Enqueue(t.Context(), q, e))
		leases, err := q.Fetch(patient(t), pawl.Request{Max: 9, Wait: wait})
		require.NoError(t, err)
		require.Equal(t, e.ID, leases[0].ID)
		require.Zero(t, count(t, "SELECT count(*) FROM "+schema+".turn"))
	}
}

// noteManyKeys notes more keys with another first job than one transaction looks at: the numbers from 1 on.
func noteManyKeys(t *testing.T, schema string) {
	t.Helper()
	execute(t, "INSERT INTO "+schema+`.turn (name) SELECT convert_to('default', 'UTF8') || '\x00'::bytea || convert_to(n::text, 'UTF8')
		FROM generate_series(1, 10500) n`)
}

// Rule: a key whose first job another session has locked keeps no fetch from the many keys behind it, not even a fetch
// that does not wait for jobs.
func TestManyTurnsBesideALockedJob(t *testing.T) {
	schema := newSchema(t)
	q := open(t, schema, noPoll, inOrder(pawl.OrderHold))
	locked, free := keyed("locked", "0"), keyed("free", "x") // before the noted keys, and after them
	require.NoError(t, withid.Enqueue(t.Context(), q, locked, free))
	noteManyKeys(t, schema)
	tx := appTxs["pgx"](t)()
	defer func() { _ = tx.rollback() }() // if the test fails, or else the pool would wait for it
	var id string
	require.NoError(t, tx.QueryRow(t.Context(), "SELECT id::text FROM "+schema+".job WHERE id = $1 FOR UPDATE", locked.ID.String()).Scan(&id))
	found := runnable(t, q)
	require.Len(t, found, 1)
	require.Contains(t, found, "free")
	require.Equal(t, 1, count(t, "SELECT count(*) FROM "+schema+".turn"), "keys to look at again")
	require.NoError(t, tx.rollback())
	found = runnable(t, q)
	require.Len(t, found, 1)
	require.Contains(t, found, "locked")
}

// Rule: if another session has locked the first job of a key, a fetch looks at it only once, however many rounds the
// fetch has.
func TestHeldUpKeyIsReadOnce(t *testing.T) {
	schema := newSchema(t)
	require.NoError(t, open(t, schema, noPoll, inOrder(pawl.OrderHold)).Close())
	q, statements := traced(t, schema)
	held := keyed("k", "held")
	batch := []*pawl.Envelope{held, keyed("k", "a"), keyed("k", "b"), keyed("k", "c")}
	batch[1].IdempotencyKey, batch[2].IdempotencyKey = "e", "e" // so the first round ends before the last job
	require.NoError(t, withid.Enqueue(t.Context(), q, batch...))
	free := lockRows(t, schema+".job WHERE id = '"+held.ID.String()+"'")
	statements.take(schema)
	leases, err := q.Fetch(t.Context(), pawl.Request{Max: 2, Wait: pawl.WaitNot})
	require.NoError(t, err)
	require.Equal(t, []string{"a", "c"}, []string{leases[0].Key, leases[1].Key})
	peeks, looks := 0, 0
	for _, statement := range statements.take(schema) {
		if strings.Contains(statement, "CROSS JOIN LATERAL") {
			peeks++
		}
		if strings.Contains(statement, "heads AS MATERIALIZED") {
			looks++
		}
	}
	require.Greater(t, peeks, 2, "rounds, and a look before the limits were known")
	require.Equal(t, 1, looks)
	free()
	require.Equal(t, held.ID, oneLease(t, q).ID)
}

// Rule: a fetch that has waited for another one runs no job of a key before a delayed job that was due first, although
// both became due after the fetch had begun.
func TestDelayedJobBesideAFetchThatWaits(t *testing.T) {
	var now atomic.Int64
	now.Store(time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC).UnixNano())
	schema := newSchema(t)
	q := open(t, schema, noPoll, inOrder(pawl.OrderHold), func(o *postgres.Options) { o.Now = func() time.Time { return time.Unix(0, now.Load()) } })
	require.Empty(t, runnable(t, q))
	first, second := keyed("k", "x"), keyed("k", "x") // the kind is stored before, or else the enqueue would wait for the fetch
	first.Delay = time.Second
	require.NoError(t, withid.Enqueue(t.Context(), q, first))
	free := lockRows(t, schema+".limits")
	ctx, result := t.Context(), make(chan []*pawl.Lease, 1)
	go func() {
		leases, _ := q.Fetch(ctx, pawl.Request{Max: 9, Wait: pawl.WaitNot})
		result <- leases
	}()
	waitsForLock(t, schema)
	now.Add(int64(2 * time.Second))
	tx := appTxs["pgx"](t)()
	require.NoError(t, withid.Enqueue(t.Context(), q.In(tx), second))
	require.NoError(t, tx.commit())
	free()
	leases := <-result
	if len(leases) == 0 { // the fetch has one if its wait for the lock ended early, so that it began again
		leases = []*pawl.Lease{oneLease(t, q)}
	}
	require.Len(t, leases, 1)
	require.Equal(t, first.ID, leases[0].ID)
	require.Empty(t, runnable(t, q))
}

// Rule: while another session promotes a job, no job of its key that became due later runs.
func TestOtherSessionPromotesInOrder(t *testing.T) {
	var now atomic.Int64
	now.Store(time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC).UnixNano())
	schema := newSchema(t)
	q := open(t, schema, noPoll, inOrder(pawl.OrderHold), func(o *postgres.Options) { o.Now = func() time.Time { return time.Unix(0, now.Load()) } })
	require.NoError(t, withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "first", Key: "x", Delay: time.Second}))
	free := lockRows(t, schema+".job")
	now.Add(int64(time.Second))
	require.Empty(t, runnable(t, q), "the fetch cannot promote it")
	now.Add(int64(time.Second))
	require.NoError(t, withid.Enqueue(t.Context(), q, keyed("second", "x"), keyed("other", "y")))
	found := runnable(t, q)
	require.Len(t, found, 1)
	require.Contains(t, found, "other")
	free()
	now.Add(int64(time.Second)) // it looks again
	require.Equal(t, "first", oneLease(t, q).Kind)
	require.Empty(t, runnable(t, q))
}
