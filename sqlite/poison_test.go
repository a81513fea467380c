package sqlite_test

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	moderncsqlite "modernc.org/sqlite"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/memdir"
	"github.com/gopawl/pawl/sqlite"
)

// stops fails the test if the queue does not stop.
func stops(t *testing.T, q *sqlite.Queue) {
	t.Helper()
	select {
	case <-q.Done():
	case <-time.After(time.Minute):
		require.Fail(t, "the queue does not stop")
	}
}

// Rule: after a commit that failed, the queue refuses all work with ErrPoisoned until Close. Then it returns
// ErrClosed.
func TestFailedCommitPoisons(t *testing.T) {
	q, _ := newQueue(t, nil)
	err := q.FailCommit(t.Context(), func() {})
	require.ErrorIs(t, err, pawl.ErrUnknownOutcome)
	require.ErrorIs(t, err, pawl.ErrPoisoned)
	_, err = q.Enqueue(t.Context(), &pawl.Envelope{Kind: "k"})
	require.ErrorIs(t, err, pawl.ErrPoisoned)
	require.NoError(t, q.Close())
	_, err = q.Enqueue(t.Context(), &pawl.Envelope{Kind: "k"})
	require.ErrorIs(t, err, pawl.ErrClosed)
}

// Rule: Close returns although a commit fails while it waits, and later calls return ErrClosed.
func TestCloseDuringFailedCommit(t *testing.T) {
	q, _ := newQueue(t, nil)
	require.ErrorIs(t, q.FailCommit(t.Context(), q.BeginClose), pawl.ErrUnknownOutcome)
	stops(t, q)
	_, err := q.Enqueue(t.Context(), &pawl.Envelope{Kind: "k"})
	require.ErrorIs(t, err, pawl.ErrClosed)
}

// Rule: the scheduler of a poisoned queue sleeps until Close, even if work has fallen due.
func TestPoisonedQueueSleeps(t *testing.T) {
	q, _ := newQueue(t, nil)
	require.ErrorIs(t, q.FailCommit(t.Context(), func() {}), pawl.ErrPoisoned)
	require.NoError(t, q.Close())
	require.True(t, q.SleepsLongest())
}

// Rule: a commit of Update that SQLite did not refuse has an unknown outcome, and poisons the queue. No later
// transaction commits, and fetches that wait get ErrPoisoned.
func TestFailedCommitOfUpdate(t *testing.T) {
	q, _ := newQueue(t, nil)
	fetched := make(chan error, 1)
	go func() {
		_, err := q.Fetch(t.Context(), pawl.Request{Max: 1, Wait: pawl.WaitForJob})
		fetched <- err
	}()
	require.NoError(t, q.AwaitFetch(t.Context()))
	err := q.Update(t.Context(), func(tx *sql.Tx) error {
		_, err := tx.Exec("COMMIT") // so that there is no transaction for the next COMMIT
		return err
	})
	require.ErrorIs(t, err, pawl.ErrUnknownOutcome)
	require.ErrorIs(t, err, pawl.ErrPoisoned)
	require.NotErrorIs(t, err, sqlite.ErrDisk, "which says that nothing was stored")
	require.ErrorIs(t, <-fetched, pawl.ErrPoisoned)
	_, err = q.Enqueue(t.Context(), &pawl.Envelope{Kind: "k"})
	require.ErrorIs(t, err, pawl.ErrPoisoned)
	require.ErrorIs(t, q.Update(t.Context(), func(*sql.Tx) error { panic("it never begins") }), pawl.ErrPoisoned)
}

// Rule: a call that waits while a commit of Update fails has no effect, and its error says so: it is ErrPoisoned
// without ErrUnknownOutcome.
func TestCallsBehindFailedCommitOfUpdate(t *testing.T) {
	q, _ := newQueue(t, nil)
	var left <-chan error
	updated := make(chan error, 1)
	err := q.Update(t.Context(), func(tx *sql.Tx) error {
		go func() { updated <- q.Update(t.Context(), func(*sql.Tx) error { panic("it never begins") }) }()
		left = q.Leave()
		_, err := tx.Exec("COMMIT")
		return err
	})
	require.ErrorIs(t, err, pawl.ErrUnknownOutcome)
	for what, answer := range map[string]<-chan error{"call": left, "update": updated} {
		err := <-answer
		require.ErrorIs(t, err, pawl.ErrPoisoned, what)
		require.NotErrorIs(t, err, pawl.ErrUnknownOutcome, what)
	}
}

// Rule: a commit of Update that SQLite refuses, or whose transaction fn has ended, leaves the queue at work.
func TestRefusedCommitOfUpdate(t *testing.T) {
	const name = "foreign-keys.sqlite"
	moderncsqlite.RegisterConnectionHook(func(c moderncsqlite.ExecQuerierContext, dsn string) error {
		if !strings.Contains(dsn, name) {
			return nil
		}
		_, err := c.ExecContext(t.Context(), "PRAGMA foreign_keys = ON", nil)
		return err
	})
	q := openQueue(t, filepath.Join(memdir.New(t), name), nil)
	err := q.Update(t.Context(), func(tx *sql.Tx) error {
		_, err := tx.Exec(`CREATE TABLE a (id INTEGER PRIMARY KEY);
CREATE TABLE b (a INTEGER REFERENCES a DEFERRABLE INITIALLY DEFERRED); INSERT INTO b VALUES (1)`)
		return err
	})
	require.ErrorContains(t, err, "FOREIGN KEY")
	require.NotErrorIs(t, err, pawl.ErrUnknownOutcome)
	err = q.Update(t.Context(), func(tx *sql.Tx) error { return tx.Rollback() })
	require.ErrorIs(t, err, sql.ErrTxDone)
	enqueueOne(t, q, &pawl.Envelope{Kind: "k"})
}
