package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/withid"
	"github.com/gopawl/pawl/postgres"
)

// Rule: a job that a transaction of the app stores goes before the jobs of its key that became due later, although it
// gets its tag later than they do. While another session gives tags, no job of the key runs, and jobs of other keys do.
func TestLateJobInOrder(t *testing.T) {
	for kind, of := range appTxs {
		t.Run(kind, func(t *testing.T) {
			schema := newSchema(t)
			q := open(t, schema, noPoll, declaring(pawl.Limits{Fair: true, InOrder: pawl.OrderHold}))
			tx := of(t)()
			require.NoError(t, withid.Enqueue(t.Context(), q.In(tx), keyed("first", "x")))
			require.NoError(t, withid.Enqueue(t.Context(), q, keyed("second", "x"), keyed("other", "y")))
			require.NoError(t, tx.commit())
			free := giveTags(t, schema)
			found := runnable(t, q)
			require.Len(t, found, 1)
			require.Contains(t, found, "other")
			require.Empty(t, runnable(t, q), "the key is looked at again")
			free()
			l, err := q.Fetch(patient(t), pawl.Request{Max: 9})
			require.NoError(t, err)
			require.Len(t, l, 1)
			require.Equal(t, "first", l[0].Kind)
			require.Empty(t, runnable(t, q))
			require.NoError(t, q.Settle(t.Context(), l[0].Ack()))
			require.Equal(t, "second", runsAlone(t, q).Kind)
		})
	}
}

// Rule: a late job runs before the later jobs of its key, even if its transaction began before the order of its queue
// was declared, and if a fetch takes only one job.
func TestLateJobOfBeforeTheOrder(t *testing.T) {
	schema := newSchema(t)
	before := open(t, schema, noPoll, declaring(pawl.Limits{Fair: true}))
	tx := appTxs["pgx"](t)()
	defer func() { _ = tx.rollback() }() // if the test fails, or else the pool would wait for it
	first, second, other := keyed("k", "x"), keyed("k", "x"), keyed("k", "y")
	require.NoError(t, withid.Enqueue(t.Context(), before.In(tx), first))
	q := open(t, schema, noPoll, declaring(pawl.Limits{Fair: true, InOrder: pawl.OrderHold}))
	require.NoError(t, tx.commit())
	require.NoError(t, withid.Enqueue(t.Context(), q, second, other))
	free := giveTags(t, schema)
	require.Equal(t, other.ID, oneLease(t, q).ID)
	require.Empty(t, runnable(t, q))
	free()
	l := oneLease(t, q)
	require.Equal(t, first.ID, l.ID)
	require.Empty(t, runnable(t, q), "it holds its key")
	require.NoError(t, q.Settle(t.Context(), l.Ack()))
	require.Equal(t, second.ID, oneLease(t, q).ID)
}

// oneLease fetches one job.
func oneLease(t *testing.T, q *postgres.Queue) *pawl.Lease {
	t.Helper()
	leases, err := q.Fetch(patient(t), pawl.Request{Max: 1})
	require.NoError(t, err)
	require.Len(t, leases, 1)
	return leases[0]
}

// Rule: a fetch that does not wait gets the job of a key in order that another client has delayed, once it is due, without a poll.
func TestDelayedJobOfAnotherClientInOrder(t *testing.T) {
	var now atomic.Int64
	now.Store(time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC).UnixNano())
	clock := func(o *postgres.Options) { o.Now = func() time.Time { return time.Unix(0, now.Load()) } }
	schema := newSchema(t)
	q := open(t, schema, noPoll, clock, declaring(pawl.Limits{Fair: true, InOrder: pawl.OrderHold}))
	other := open(t, schema, noPoll, clock)
	require.Empty(t, runnable(t, q))
	require.NoError(t, withid.Enqueue(t.Context(), other, &pawl.Envelope{Kind: "k", Key: "x", Delay: time.Second}))
	require.NoError(t, other.Close()) // otherwise it promotes the job itself
	require.Empty(t, runnable(t, q), "before the job is due")
	now.Add(int64(time.Second))
	require.Contains(t, runnable(t, q), "k")
}

// giveTags is a session that gives tags to fair queues until it is freed.
func giveTags(t *testing.T, schema string) (free func()) {
	t.Helper()
	return lockRows(t, schema+".bound")
}

// lockRows is a session that locks all rows of a table until it is freed.
func lockRows(t *testing.T, table string) (free func()) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server.url)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close(patient(t))) })
	tx, err := conn.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), "SELECT FROM "+table+" FOR UPDATE")
	require.NoError(t, err)
	return func() { require.NoError(t, tx.Commit(t.Context())) }
}

// Rule: a fetch that has waited for another one runs no job of a key before a late job that became due first, although
// both became due after the fetch had begun.
func TestLateJobBesideAFetchThatWaits(t *testing.T) {
	schema := newSchema(t)
	q := open(t, schema, noPoll, declaring(pawl.Limits{Fair: true, InOrder: pawl.OrderHold}))
	other := open(t, schema, noPoll)
	require.Empty(t, runnable(t, q))
	// Once it has looked for what is due, an enqueue does not promote.
	require.NoError(t, withid.Enqueue(t.Context(), other, &pawl.Envelope{Kind: "k", Queue: "elsewhere"}))
	free := lockRows(t, schema+".limits")
	ctx, leases := patient(t), make(chan []*pawl.Lease, 1)
	go func() {
		found, err := q.Fetch(ctx, pawl.Request{Max: 9})
		if err != nil {
			t.Errorf("fetch: %v", err)
		}
		leases <- found
	}()
	waitsForLock(t, schema)
	first, tx := keyed("first", "x"), appTxs["pgx"](t)()
	require.NoError(t, withid.Enqueue(t.Context(), other.In(tx), first))
	require.NoError(t, tx.commit())
	require.NoError(t, withid.Enqueue(t.Context(), other, keyed("second", "x")))
	require.Equal(t, pawl.Delayed, stateIn(t, other, first.ID), "nobody has promoted it")
	free()
	got := <-leases
	require.Len(t, got, 1)
	require.Equal(t, "first", got[0].Kind)
	require.Empty(t, runnable(t, q))
}

// Rule: if more jobs are late than a fetch looks at, a job that became due after them does not run, and a job that
// became due before them does.
func TestManyLateJobsInOrder(t *testing.T) {
	t.Parallel()
	const many = 1500
	schema := newSchema(t)
	q := open(t, schema, noPoll, declaring(pawl.Limits{Fair: true, InOrder: pawl.OrderHold}))
	require.NoError(t, withid.Enqueue(t.Context(), q, keyed("before", "x")))
	tx := appTxs["pgx"](t)()
	jobs := make([]*pawl.Envelope, many)
	for i := range jobs {
		jobs[i] = keyed("late", fmt.Sprint("late ", i))
	}
	require.NoError(t, withid.Enqueue(t.Context(), q.In(tx), jobs...))
	require.NoError(t, withid.Enqueue(t.Context(), q, keyed("behind", fmt.Sprint("late ", many-1))))
	require.NoError(t, tx.commit())
	free := giveTags(t, schema)
	found := runnable(t, q)
	require.Len(t, found, 1)
	require.Contains(t, found, "before")
	require.Empty(t, runnable(t, q))
	free()
	for started := 0; started < many; {
		leases, err := q.Fetch(patient(t), pawl.Request{Max: 1000})
		require.NoError(t, err)
		for _, l := range leases {
			require.Equal(t, "late", l.Kind)
		}
		started += len(leases)
	}
	require.Empty(t, runnable(t, q), "the job behind is not of its turn")
}

// Rule: the blocked jobs of a key are listed in the order in which they will run, whatever their priorities and their
// tags.
func TestWaitingJobsOfAKeyInOrder(t *testing.T) {
	q := open(t, newSchema(t), noPoll, declaring(pawl.Limits{Fair: true, InOrder: pawl.OrderHold}))
	jobs := []*pawl.Envelope{keyed("a", "x"), keyed("b", "x"), keyed("c", "x")}
	jobs[2].Priority = 9
	require.NoError(t, withid.Enqueue(t.Context(), q, jobs...))
	k, err := q.Key(t.Context(), pawl.DefaultQueue, "x")
	require.NoError(t, err)
	require.Equal(t, jobs[0].ID, k.Head)
	require.Equal(t, []pawl.ID{jobs[1].ID, jobs[2].ID}, k.Waiting)
}

// Rule: a retry that holds its key comes before the blocked jobs of the key that became due before it.
func TestWaitingJobsBehindARetryInOrder(t *testing.T) {
	l := pawl.Limits{Fair: true, InOrder: pawl.OrderHold, RatePerKey: pawl.Rate{Starts: 1, Per: time.Hour}}
	q := open(t, newSchema(t), noPoll, declaring(l))
	jobs := []*pawl.Envelope{keyed("a", "x"), keyed("b", "x"), keyed("c", "x")}
	require.NoError(t, withid.Enqueue(t.Context(), q, jobs...))
	require.NoError(t, q.Settle(t.Context(), oneLease(t, q).Nack(0, errors.New("again"))))
	k, err := q.Key(t.Context(), pawl.DefaultQueue, "x")
	require.NoError(t, err)
	require.Equal(t, []pawl.ID{jobs[0].ID, jobs[1].ID, jobs[2].ID}, k.Waiting, "none may start now")
	require.Equal(t, jobs[0].ID, k.Head)
}

// Rule: a fetch that does not wait gets a late job behind more due jobs than one transaction promotes. None promotes
// more than a portion for it, since enqueues wait for it.
func TestLateJobBehindManyDueJobs(t *testing.T) {
	t.Parallel()
	schema := newSchema(t)
	q := open(t, schema, noPoll, declaring(pawl.Limits{Fair: true, InOrder: pawl.OrderHold}))
	require.Empty(t, runnable(t, q)) // it no longer looks for due jobs by itself
	execute(t, strings.ReplaceAll(`WITH q AS (INSERT INTO pawl.queue (name) VALUES ('elsewhere') RETURNING id),
		l AS (INSERT INTO pawl.line (queue, kind) SELECT id, 'k' FROM q RETURNING id)
		INSERT INTO pawl.job (id, seq, since, line, place, lane, prio, record, payload)
			SELECT gen_random_uuid(), n, n, l.id, 1, 0, 127, '', '' FROM l, generate_series(1, 10000) n`, "pawl.", schema+"."))
	tx := appTxs["pgx"](t)()
	require.NoError(t, withid.Enqueue(t.Context(), q.In(tx), keyed("late", "x")))
	require.NoError(t, tx.commit())
	require.Contains(t, runnable(t, q), "late")
	require.Equal(t, 1000, count(t, "SELECT max(n) FROM (SELECT count(*) AS n FROM "+schema+".job WHERE place = 0 GROUP BY xmin::text) t"))
}

// Rule: the jobs that transactions of the app and processes enqueue into a fair queue run in the order of the calls for
// each key, despite retries, and while others enqueue, too.
func TestOrderOfLateJobs(t *testing.T) {
	t.Parallel()
	const clients, calls = 3, 30
	schema := newSchema(t)
	var wg sync.WaitGroup
	var mu sync.Mutex
	next, ended := make(map[string]int), 0
	end := func(l *pawl.Lease) pawl.Settlement {
		mu.Lock()
		defer mu.Unlock()
		n := next[l.Key]
		if l.Kind != fmt.Sprint(n) {
			t.Errorf("job %s of key %s runs instead of job %d", l.Kind, l.Key, n)
		}
		if n%3 == 1 && l.Attempts == 0 {
			return l.Nack(0, errors.New("again"))
		}
		ended++
		next[l.Key]++
		return l.Ack()
	}
	all := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return ended == clients*calls || t.Failed()
	}
	pool, err := pgxpool.New(t.Context(), server.url)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	ctx := patient(t)
	for n := range clients {
		q := open(t, schema, declaring(pawl.Limits{Fair: true, InOrder: pawl.OrderContinue}))
		wg.Go(func() {
			for i := range calls {
				if err := enqueueEither(ctx, q, pool, i%2 == 0, keyed(fmt.Sprint(i), fmt.Sprint(n))); err != nil {
					t.Errorf("client %d: enqueue: %v", n, err)
				}
			}
		})
		wg.Go(func() {
			for !all() {
				leases, err := q.Fetch(ctx, pawl.Request{Max: 2, Wait: pawl.WaitNot})
				if err != nil && !errors.Is(err, pawl.ErrEmpty) {
					t.Errorf("client %d: fetch: %v", n, err)
				}
				for _, l := range leases {
					if err := q.Settle(ctx, end(l)); err != nil {
						t.Errorf("client %d: settle: %v", n, err)
					}
				}
			}
		})
	}
	wg.Wait()
}

// enqueueEither enqueues a job, in a transaction of the app or without one.
func enqueueEither(ctx context.Context, q *postgres.Queue, pool *pgxpool.Pool, inTx bool, e *pawl.Envelope) error {
	if !inTx {
		return withid.Enqueue(ctx, q, e)
	}
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error { return withid.Enqueue(ctx, q.In(tx), e) })
}

// Rule: late jobs of a queue, however many, hold up no key of another queue.
func TestManyLateJobsOfAnotherQueueInOrder(t *testing.T) {
	t.Parallel()
	schema := newSchema(t)
	clock := func(o *postgres.Options) {
		o.Now = func() time.Time { return time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC) }
	}
	q := open(t, schema, noPoll, clock, func(o *postgres.Options) {
		o.Limits = map[string]pawl.Limits{"a": {InOrder: pawl.OrderHold}, "b": {InOrder: pawl.OrderHold}}
	})
	jobs := make([]*pawl.Envelope, 1500)
	for i := range jobs {
		jobs[i] = &pawl.Envelope{Kind: "late", Queue: "a", Key: fmt.Sprint("late ", i), Delay: time.Hour}
	}
	for part := range slices.Chunk(jobs, 1000) {
		require.NoError(t, withid.Enqueue(t.Context(), q, part...))
	}
	require.NoError(t, withid.Enqueue(t.Context(), q,
		&pawl.Envelope{Kind: "held up", Queue: "a", Key: "x"}, &pawl.Envelope{Kind: "free", Queue: "b", Key: "x"}))
	execute(t, "UPDATE "+schema+".job SET since = 0 WHERE place = 1") // they are due, and nobody has promoted them
	leases, err := q.Fetch(patient(t), pawl.Request{Queues: []string{"a", "b"}, Max: 9})
	require.NoError(t, err)
	require.Len(t, leases, 1)
	require.Equal(t, "free", leases[0].Kind)
}
