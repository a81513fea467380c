package sqlite_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/sqlite"
)

// stops fails the test if the queue does not stop.
func stops(t *testing.T, q *sqlite.Queue) {
	t.Helper()
	select {
	case <-q.Done():
	case <-time.After(20 * time.Second):
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
