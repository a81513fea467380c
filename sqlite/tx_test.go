package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/sqlite"
)

// Rule: a job of a transaction of the app is in the queue if the transaction commits, and a fetch that
// waits gets it, after Wake or by the poll.
func TestEnqueueTx(t *testing.T) {
	q, path := newQueue(t, &sqlite.Options{Poll: 10 * time.Millisecond})
	db := appDB(t, path)
	for name, wake := range map[string]func(context.Context) error{
		"wake": q.Wake, "poll": func(context.Context) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			tx := begin(t, db)
			done, err := q.EnqueueTx(t.Context(), tx, &pawl.Envelope{Kind: "k", Payload: []byte("one")})
			require.NoError(t, err)
			_, err = q.Job(t.Context(), done[0].ID)
			require.ErrorIs(t, err, pawl.ErrNotFound, "before the commit")
			require.NoError(t, tx.Commit())
			require.NoError(t, wake(t.Context()))
			leases, err := q.Fetch(t.Context(), pawl.Request{Max: 1})
			require.NoError(t, err)
			require.Equal(t, done[0].ID, leases[0].ID)
			require.Equal(t, "one", string(leases[0].Payload))
			require.NoError(t, q.Settle(t.Context(), leases[0].Ack()))
		})
	}
	tx := begin(t, db)
	done, err := q.EnqueueTx(t.Context(), tx, &pawl.Envelope{Kind: "other", Queue: "other"})
	require.NoError(t, err)
	require.NoError(t, tx.Rollback())
	_, err = q.Job(t.Context(), done[0].ID)
	require.ErrorIs(t, err, pawl.ErrNotFound)
	enqueueOne(t, q, &pawl.Envelope{Kind: "other", Queue: "other"}) // the rollback undid the creation of its queue
}

// Rule: an enqueue that is refused leaves its transaction unchanged.
func TestRefusedEnqueueTx(t *testing.T) {
	q, path := newQueue(t, nil)
	enqueueOne(t, q, &pawl.Envelope{Kind: "k", UniqueKey: "u"})
	db := appDB(t, path)
	_, err := db.Exec("CREATE TABLE app (n INTEGER)")
	require.NoError(t, err)
	tx := begin(t, db)
	_, err = tx.Exec("INSERT INTO app VALUES (1)")
	require.NoError(t, err)
	_, err = q.EnqueueTx(t.Context(), tx, &pawl.Envelope{Kind: "first"}, &pawl.Envelope{Kind: "k", UniqueKey: "u", OnConflict: pawl.Reject})
	require.ErrorIs(t, err, pawl.ErrConflict)
	done, err := q.EnqueueTx(t.Context(), tx, &pawl.Envelope{Kind: "k", UniqueKey: "u"})
	require.NoError(t, err)
	require.True(t, done[0].Existing)
	require.NoError(t, tx.Commit())
	var n int
	require.NoError(t, db.QueryRow("SELECT count(*) FROM app").Scan(&n))
	require.Equal(t, 1, n)
	require.Equal(t, pawl.Counts{Ready: 1}, countsOf(t, q))
}

func countsOf(t *testing.T, q *sqlite.Queue) (all pawl.Counts) {
	t.Helper()
	stats, err := q.Stats(t.Context())
	require.NoError(t, err)
	for _, row := range stats.Queues {
		driver.AddCounts(&all, row.Counts)
	}
	return all
}

// Rule: an ack in a transaction ends the job with its commit, once, with its event. A rollback leaves the
// lease unchanged.
func TestAckTx(t *testing.T) {
	var events []pawl.EventType
	q, path := newQueue(t, &sqlite.Options{OnEvent: func(e pawl.Event) { events = append(events, e.Type) }, Poll: sqlite.NoPoll})
	db := appDB(t, path)
	enqueueOne(t, q, &pawl.Envelope{Kind: "k", Retain: time.Hour, IdempotencyKey: "i"})
	l := fetchOne(t, q)
	events = nil

	tx := begin(t, db)
	require.NoError(t, q.AckTx(t.Context(), tx, l))
	require.NoError(t, tx.Rollback())
	lost, err := q.Extend(t.Context(), l)
	require.NoError(t, err)
	require.Empty(t, lost)
	require.False(t, driver.Settled(l))

	tx = begin(t, db)
	require.NoError(t, q.AckTx(t.Context(), tx, l))
	require.ErrorIs(t, q.AckTx(t.Context(), tx, l), pawl.ErrLeaseLost)
	require.NoError(t, tx.Commit())
	require.NoError(t, q.Wake(t.Context()))
	require.True(t, driver.Settled(l))
	require.Equal(t, []pawl.EventType{pawl.EventSucceeded}, events)
	require.Equal(t, pawl.Counts{Completed: 1}, countsOf(t, q))
	require.ErrorIs(t, q.Settle(t.Context(), l.Ack()), pawl.ErrLeaseLost)

	enqueueOne(t, q, &pawl.Envelope{Kind: "k", IdempotencyKey: "i"})
	_, err = q.Fetch(t.Context(), pawl.Request{Max: 1, Wait: pawl.WaitNot})
	require.ErrorIs(t, err, pawl.ErrEmpty, "its effect is done")
}

// Rule: a settle of a lease that a committed transaction of the app has acked is no error, even if Wake
// was not called.
func TestSettleAfterAckTx(t *testing.T) {
	q, path := newQueue(t, &sqlite.Options{Poll: sqlite.NoPoll})
	db := appDB(t, path)
	enqueueOne(t, q, &pawl.Envelope{Kind: "k"})
	l := fetchOne(t, q)
	tx := begin(t, db)
	require.NoError(t, q.AckTx(t.Context(), tx, l))
	require.NoError(t, tx.Commit())
	require.NoError(t, q.Settle(t.Context(), l.Nack(0, errors.New("boom"))))
	require.Equal(t, pawl.Counts{}, countsOf(t, q))
}

// Rule: Update commits everything that its function did, or nothing, and the queue learns of it without
// Wake.
func TestUpdate(t *testing.T) {
	q, _ := newQueue(t, &sqlite.Options{Poll: sqlite.NoPoll})
	boom := errors.New("boom")
	put := func(err error) error {
		return q.Update(t.Context(), func(tx *sql.Tx) error {
			_, failed := q.In(tx).Enqueue(t.Context(), &pawl.Envelope{Kind: "k"})
			require.NoError(t, failed)
			return err
		})
	}
	require.ErrorIs(t, put(boom), boom)
	require.Equal(t, pawl.Counts{}, countsOf(t, q))
	require.NoError(t, put(nil))
	l := fetchOne(t, q)
	require.NoError(t, q.Update(t.Context(), func(tx *sql.Tx) error { return q.AckTx(t.Context(), tx, l) }))
	require.True(t, driver.Settled(l))
	require.Equal(t, pawl.Counts{}, countsOf(t, q))
}
