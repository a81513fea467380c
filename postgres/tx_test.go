package postgres_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/withid"
	"github.com/gopawl/pawl/postgres"
	"github.com/gopawl/pawl/worker"
)

// appTx is a transaction of an app.
type appTx struct {
	postgres.Tx
	commit, rollback func() error
}

// appTxs are the ways in which an app begins a transaction.
var appTxs = map[string]func(t testing.TB) (begin func() appTx){
	"pgx": func(t testing.TB) func() appTx {
		pool, err := pgxpool.New(t.Context(), server.url)
		require.NoError(t, err)
		t.Cleanup(pool.Close)
		return func() appTx {
			tx, err := pool.Begin(t.Context())
			require.NoError(t, err)
			return appTx{tx, func() error { return tx.Commit(t.Context()) }, func() error { return tx.Rollback(t.Context()) }}
		}
	},
	"database/sql": func(t testing.TB) func() appTx {
		db, err := sql.Open("pgx", server.url)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, db.Close()) })
		return func() appTx {
			tx, err := db.BeginTx(t.Context(), nil)
			require.NoError(t, err)
			return appTx{postgres.SQL(tx), tx.Commit, tx.Rollback}
		}
	},
}

// withTxs runs a test with each kind of transaction, over a queue that does not poll.
func withTxs(t *testing.T, test func(t *testing.T, q *postgres.Queue, begin func() appTx)) {
	for name, of := range appTxs {
		t.Run(name, func(t *testing.T) {
			test(t, open(t, newSchema(t), noPoll), of(t))
		})
	}
}

// lease enqueues a job and fetches it.
func lease(t testing.TB, q *postgres.Queue, e *pawl.Envelope) *pawl.Lease {
	t.Helper()
	require.NoError(t, withid.Enqueue(t.Context(), q, e))
	return fetchOne(t, q)
}

func fetchOne(t testing.TB, q *postgres.Queue) *pawl.Lease {
	t.Helper()
	leases, err := q.Fetch(t.Context(), pawl.Request{Max: 1, Wait: pawl.WaitNot})
	require.NoError(t, err)
	return leases[0]
}

func countOf(t testing.TB, q *postgres.Queue) (n int) {
	t.Helper()
	for _, err := range q.Jobs(t.Context(), pawl.Filter{}) {
		require.NoError(t, err)
		n++
	}
	return n
}

// Rule: a job that a transaction of the app enqueues is stored completely if the transaction commits,
// and wakes a fetch that waits. After a rollback nothing of it is left.
func TestEnqueueTx(t *testing.T) {
	withTxs(t, func(t *testing.T, q *postgres.Queue, begin func() appTx) {
		tx := begin()
		gone := &pawl.Envelope{Kind: "k", UniqueKey: "u", IdempotencyKey: "i"}
		require.NoError(t, withid.Enqueue(t.Context(), q.In(tx), gone))
		require.NoError(t, tx.rollback())
		require.Zero(t, countOf(t, q))

		waiting := make(chan *pawl.Lease)
		go func() {
			leases, err := q.Fetch(t.Context(), pawl.Request{Max: 1})
			if err != nil {
				t.Error(err)
				leases = []*pawl.Lease{nil}
			}
			waiting <- leases[0]
		}()
		tx = begin()
		e := &pawl.Envelope{Kind: "k", UniqueKey: "u", Payload: make([]byte, 5000), Headers: map[string]string{"h": "v"}}
		later := &pawl.Envelope{Kind: "k", Delay: time.Hour}
		require.NoError(t, withid.Enqueue(t.Context(), q.In(tx), e, later))
		require.Zero(t, countOf(t, q), "before the commit")
		require.NoError(t, tx.commit())
		require.NoError(t, q.Wake(t.Context()))
		l := <-waiting
		require.Equal(t, e.ID, l.ID)
		require.Equal(t, e.Payload, l.Payload)
		stored, err := q.Job(t.Context(), later.ID)
		require.NoError(t, err)
		require.Equal(t, pawl.Delayed, stored.State)
	})
}

// Rule: a refused enqueue leaves transaction and envelopes unchanged, and unique keys hold within a
// transaction.
func TestEnqueueTxRefused(t *testing.T) {
	withTxs(t, func(t *testing.T, q *postgres.Queue, begin func() appTx) {
		taken := &pawl.Envelope{Kind: "k", UniqueKey: "taken"}
		require.NoError(t, withid.Enqueue(t.Context(), q, taken))
		tx := begin()
		own := &pawl.Envelope{Kind: "k", UniqueKey: "own"}
		require.NoError(t, withid.Enqueue(t.Context(), q.In(tx), own))
		for _, bad := range []struct {
			e    *pawl.Envelope
			want error
		}{
			{&pawl.Envelope{Kind: "k", UniqueKey: "taken", OnConflict: pawl.Reject}, pawl.ErrConflict},
			{&pawl.Envelope{Kind: "k", UniqueKey: "own", OnConflict: pawl.Reject}, pawl.ErrConflict},
			{&pawl.Envelope{Kind: "k", ID: taken.ID}, pawl.ErrConflict},
			{&pawl.Envelope{}, pawl.ErrInvalid},
			{&pawl.Envelope{Kind: "k", Payload: make([]byte, 2<<20)}, pawl.ErrPayloadTooLarge},
		} {
			before := *bad.e
			done, err := q.EnqueueTx(t.Context(), tx, &pawl.Envelope{Kind: "beside"}, bad.e)
			require.ErrorIs(t, err, bad.want)
			require.Empty(t, done)
			require.Equal(t, before, *bad.e)
		}
		done, err := q.EnqueueTx(t.Context(), tx, &pawl.Envelope{Kind: "k", UniqueKey: "own"})
		require.NoError(t, err)
		require.Equal(t, []pawl.Enqueued{{ID: own.ID, Existing: true}}, done)
		require.NoError(t, tx.commit())
		require.Equal(t, 2, countOf(t, q))
	})
}

// Rule: an enqueue of a key that a transaction of the app takes waits for the end of the
// transaction, and then finds the job. Enqueues without that key do not wait, also of a kind that
// the transaction is the first to use.
func TestEnqueueTxBesideOthers(t *testing.T) {
	schema := newSchema(t)
	q, other := open(t, schema), open(t, schema)
	begin := appTxs["pgx"](t)
	tx := begin()
	first := &pawl.Envelope{Kind: "new", UniqueKey: "u"}
	require.NoError(t, withid.Enqueue(t.Context(), q.In(tx), first))
	require.NoError(t, withid.Enqueue(t.Context(), other, &pawl.Envelope{Kind: "new"}))
	second := make(chan []pawl.Enqueued)
	go func() {
		done, err := other.Enqueue(context.WithoutCancel(t.Context()), &pawl.Envelope{Kind: "new", UniqueKey: "u"})
		if err != nil {
			t.Error(err)
		}
		second <- done
	}()
	require.NoError(t, tx.commit())
	require.Equal(t, []pawl.Enqueued{{ID: first.ID, Existing: true}}, <-second)
}

// Rule: an ack in a transaction of the app counts if it commits, whatever call the holder makes
// afterwards. After a rollback the holder decides.
func TestAckTx(t *testing.T) {
	withTxs(t, func(t *testing.T, q *postgres.Queue, begin func() appTx) {
		l := lease(t, q, &pawl.Envelope{Kind: "k", IdempotencyKey: "i", Retain: time.Hour})
		tx := begin()
		require.NoError(t, q.AckTx(t.Context(), tx, l))
		require.ErrorIs(t, q.AckTx(t.Context(), tx, l), pawl.ErrLeaseLost)
		require.NoError(t, tx.rollback())
		require.NoError(t, q.Settle(t.Context(), l.Nack(0, errors.New("an attempt"))))

		l = fetchOne(t, q)
		require.Equal(t, 1, l.Attempts)
		var events []pawl.EventType
		defer q.Listen(func(e pawl.Event) { events = append(events, e.Type) })()
		tx = begin()
		require.NoError(t, q.AckTx(t.Context(), tx, l))
		lost, err := q.Extend(t.Context(), l)
		require.NoError(t, err)
		require.Empty(t, lost, "before the commit")
		require.NoError(t, tx.commit())
		lost, err = q.Extend(t.Context(), l)
		require.NoError(t, err)
		require.Empty(t, lost, "after the commit")
		require.True(t, driver.Settled(l))
		require.NoError(t, q.Wake(t.Context()))
		e, err := q.Job(t.Context(), l.ID)
		require.NoError(t, err)
		require.Equal(t, pawl.Completed, e.State)
		require.Equal(t, []pawl.EventType{pawl.EventSucceeded}, events)
		effects, _, err := q.Effects(t.Context(), "", 9)
		require.NoError(t, err)
		require.Len(t, effects, 1)
	})
}

// Rule: a settlement after the commit of an ack changes nothing and is no error. After Wake the lease
// counts as settled: a worker no longer settles it, and a settlement gets ErrLeaseLost, as for a
// lease that is really lost.
func TestSettleAfterAckTx(t *testing.T) {
	withTxs(t, func(t *testing.T, q *postgres.Queue, begin func() appTx) {
		for _, wake := range []bool{false, true} {
			l := lease(t, q, &pawl.Envelope{Kind: "k"})
			tx := begin()
			require.NoError(t, q.AckTx(t.Context(), tx, l))
			require.NoError(t, tx.commit())
			if wake {
				require.NoError(t, q.Wake(t.Context()))
				require.True(t, driver.Settled(l))
				require.ErrorIs(t, q.Settle(t.Context(), l.Ack()), pawl.ErrLeaseLost, "a worker does not settle it any more")
				continue
			}
			require.NoError(t, q.Settle(t.Context(), l.Ack()))
			require.True(t, driver.Settled(l))
		}
		require.Zero(t, countOf(t, q))

		l := lease(t, q, &pawl.Envelope{Kind: "k"})
		tx := begin()
		require.NoError(t, q.AckTx(t.Context(), tx, l))
		require.NoError(t, tx.rollback())
		require.NoError(t, q.Settle(t.Context(), l.Release()))
		fetchOne(t, q)
		require.ErrorIs(t, q.Settle(t.Context(), l.Ack()), pawl.ErrLeaseLost)
	})
}

// Rule: an ack of a lease that is lost, and one of an effect that has taken place, are refused.
func TestAckTxRefused(t *testing.T) {
	withTxs(t, func(t *testing.T, q *postgres.Queue, begin func() appTx) {
		l := lease(t, q, &pawl.Envelope{Kind: "k", IdempotencyKey: "i"})
		require.NoError(t, q.Restore(t.Context(), nil, []driver.Effect{{Kind: "k", Key: "i", Until: time.Now().Add(time.Hour)}}))
		tx := begin()
		defer tx.rollback()
		require.ErrorIs(t, q.AckTx(t.Context(), tx, l), pawl.ErrConflict)
		require.NoError(t, q.Settle(t.Context(), l.Release()))
		require.ErrorIs(t, q.AckTx(t.Context(), tx, l), pawl.ErrLeaseLost)
		require.ErrorIs(t, q.AckTx(t.Context(), tx, nil), pawl.ErrInvalid)
		require.ErrorIs(t, q.AckTx(t.Context(), nil, l), pawl.ErrInvalid)
	})
}

// Rule: a handler whose effect and ack share a transaction has its effect once for each job, although
// every second attempt fails before or after the commit, and although jobs run again.
func TestWorkerWithAckTx(t *testing.T) {
	const jobs = 40
	schema := newSchema(t)
	q := open(t, schema)
	table := schema + ".booked"
	execute(t, "CREATE TABLE "+table+" (id uuid)")
	pool, err := pgxpool.New(t.Context(), server.url)
	require.NoError(t, err)
	defer pool.Close()
	book := pawl.Define[int]("book", pawl.Backoff(pawl.Fixed(time.Millisecond)))
	for i := range jobs {
		_, err := book.Enqueue(t.Context(), q, i)
		require.NoError(t, err)
	}
	w := worker.New(q, &worker.Options{Concurrency: 4, Logger: hclog.NewNullLogger()})
	worker.Handle(w, book, func(ctx context.Context, job *pawl.Job[int]) error {
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, "INSERT INTO "+table+" VALUES ($1)", job.ID.String()); err != nil {
				return err
			}
			if err := q.AckTx(ctx, tx, job.Lease); err != nil {
				return err
			}
			if job.Attempts == 0 && job.Args%2 == 0 {
				return errors.New("before the commit")
			}
			return nil
		})
	})
	require.NoError(t, w.Drain(t.Context(), pawl.WaitFinished))
	requireOnce(t, table, jobs)
	require.Zero(t, countOf(t, q))
}

// requireOnce requires one row for each job.
func requireOnce(t testing.TB, table string, jobs int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server.url)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(t.Context())) }()
	var rows, different int
	require.NoError(t, conn.QueryRow(t.Context(), "SELECT count(*), count(DISTINCT id) FROM "+table).Scan(&rows, &different))
	require.Equal(t, fmt.Sprint(jobs, jobs), fmt.Sprint(rows, different))
}
