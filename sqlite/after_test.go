package sqlite_test

import (
	"database/sql"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/sqlite"
)

// Rule: a transaction of the app that enqueues a job after another one, or ends the other one, does so with its
// commit. The queue, which knew that no job waits, learns of it.
func TestAfterInTransactionsOfTheApp(t *testing.T) {
	q, path := newQueue(t, &sqlite.Options{Poll: sqlite.NoPoll})
	db := appDB(t, path)
	for _, ack := range map[string]func(*pawl.Lease){
		"by the queue": func(l *pawl.Lease) { require.NoError(t, q.Settle(t.Context(), l.Ack())) },
		"by the app": func(l *pawl.Lease) {
			require.NoError(t, q.Update(t.Context(), func(tx *sql.Tx) error { return q.AckTx(t.Context(), tx, l) }))
		},
	} {
		first := enqueueOne(t, q, &pawl.Envelope{Kind: "first"})
		l := fetchOne(t, q)
		tx := begin(t, db)
		_, err := q.EnqueueTx(t.Context(), tx, &pawl.Envelope{Kind: "refused", After: []pawl.ID{{1}}})
		require.ErrorIs(t, err, pawl.ErrNotFound)
		done, err := q.EnqueueTx(t.Context(), tx, &pawl.Envelope{Kind: "second", After: []pawl.ID{first}})
		require.NoError(t, err)
		require.NoError(t, tx.Commit())
		require.Equal(t, pawl.Counts{Ready: 1, Blocked: 1, Leased: 1}, countsOf(t, q))
		_, err = q.Fetch(t.Context(), pawl.Request{Max: 1, Wait: pawl.WaitNot})
		require.ErrorIs(t, err, pawl.ErrEmpty)
		ack(l)
		l = fetchOne(t, q)
		require.Equal(t, done[0].ID, l.ID)
		require.NoError(t, q.Settle(t.Context(), l.Ack()))
	}
}
