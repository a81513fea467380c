package dlq_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/dlq"
	"github.com/gopawl/pawl/internal/withid"
)

// Rule: Delete removes only dead jobs, permanently, and stops at the first job that is not dead.
func TestDelete(t *testing.T) {
	each(t, func(t *testing.T, open func() queue) {
		q := open()
		one, two, three := makeDead(t, q, "mail", "a"), makeDead(t, q, "mail", "a"), makeDead(t, q, "mail", "a")
		n, err := dlq.Delete(t.Context(), q, one)
		require.NoError(t, err)
		require.Equal(t, 1, n)
		_, err = q.Job(t.Context(), one)
		require.ErrorIs(t, err, pawl.ErrNotFound)

		n, err = dlq.Delete(t.Context(), q, two, one, three)
		require.ErrorIs(t, err, pawl.ErrNotFound)
		require.Equal(t, 1, n)
		require.Equal(t, []pawl.ID{three}, list(t, q, pawl.Filter{}))

		alive, done := &pawl.Envelope{Kind: "a"}, complete(t, q)
		require.NoError(t, withid.Enqueue(t.Context(), q, alive))
		for _, id := range []pawl.ID{alive.ID, done} {
			n, err = dlq.Delete(t.Context(), q, id)
			require.ErrorIs(t, err, pawl.ErrConflict)
			require.Zero(t, n)
			get(t, q, id)
		}
		n, err = dlq.Delete(t.Context(), q)
		require.NoError(t, err)
		require.Zero(t, n)
	})
}

// Rule: Purge removes the matching dead jobs older than the given time, and nothing else.
func TestPurge(t *testing.T) {
	each(t, func(t *testing.T, open func() queue) {
		q := open()
		first, second, third := makeDead(t, q, "mail", "a"), makeDead(t, q, "mail", "b"), makeDead(t, q, "mail", "a")
		done := complete(t, q)
		at := get(t, q, second).Death.At

		n, err := dlq.Purge(t.Context(), q, at, pawl.Filter{Kind: "b"})
		require.NoError(t, err)
		require.Zero(t, n, "it did not die before it died")
		n, err = dlq.Purge(t.Context(), q, at.Add(1), pawl.Filter{})
		require.NoError(t, err)
		require.Equal(t, 2, n)
		require.Equal(t, []pawl.ID{third}, list(t, q, pawl.Filter{}))
		_, err = q.Job(t.Context(), first)
		require.ErrorIs(t, err, pawl.ErrNotFound)

		n, err = dlq.Purge(t.Context(), q, tomorrow(), pawl.Filter{Reason: pawl.ReasonPoison})
		require.NoError(t, err)
		require.Zero(t, n)
		n, err = dlq.Purge(t.Context(), q, tomorrow(), pawl.Filter{DiedBefore: at})
		require.NoError(t, err)
		require.Zero(t, n, "the earlier time counts")
		n, err = dlq.Purge(t.Context(), q, at, pawl.Filter{DiedBefore: tomorrow()})
		require.NoError(t, err)
		require.Zero(t, n, "whichever that is")

		for range 99 {
			makeDead(t, q, "mail", "a")
		}
		n, err = dlq.Purge(t.Context(), q, tomorrow(), pawl.Filter{})
		require.NoError(t, err)
		require.Equal(t, 100, n)
		require.Equal(t, pawl.Completed, get(t, q, done).State)
	})
}

// Rule: the zero time purges nothing.
func TestPurgeWithoutATimeIsRefused(t *testing.T) {
	q := inMemory(t)
	id := makeDead(t, q, "mail", "a")
	_, err := dlq.Purge(t.Context(), q, time.Time{}, pawl.Filter{DiedBefore: tomorrow()})
	require.ErrorIs(t, err, pawl.ErrInvalid)
	require.Equal(t, []pawl.ID{id}, list(t, q, pawl.Filter{}))

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = dlq.Purge(ctx, q, tomorrow(), pawl.Filter{})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, []pawl.ID{id}, list(t, q, pawl.Filter{}))
}

// Rule: a dead job that was retried meanwhile is not purged.
func TestPurgePassesOverWhatMoved(t *testing.T) {
	q := inMemory(t)
	one, two := makeDead(t, q, "mail", "a"), makeDead(t, q, "mail", "a")
	other := &shelf{queue: q, delete: func(id pawl.ID) error {
		if id == one {
			return q.Retry(t.Context(), id, false)
		}
		return nil
	}}
	n, err := dlq.Purge(t.Context(), other, tomorrow(), pawl.Filter{})
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.Equal(t, pawl.Ready, get(t, q, one).State)
	_, err = q.Job(t.Context(), two)
	require.ErrorIs(t, err, pawl.ErrNotFound)
}

// Rule: a job that died before the given time when it was listed, and died again since, is not
// purged.
func TestPurgeKeepsJobsDeadAgain(t *testing.T) {
	each(t, func(t *testing.T, open func() queue) {
		q := open()
		again, other := makeDead(t, q, "mail", "a"), makeDead(t, q, "mail", "a")
		before := get(t, q, other).Death.At.Add(1)
		busy := &shelf{queue: q, delete: func(id pawl.ID) error {
			if id == again {
				deadAgain(t, q, again)
			}
			return nil
		}}
		n, err := dlq.Purge(t.Context(), busy, before, pawl.Filter{})
		require.NoError(t, err)
		require.Equal(t, 1, n)
		require.Equal(t, []pawl.ID{again}, list(t, q, pawl.Filter{}))
	})
}

// Rule: if a job dies again after it was stored in the sink, Forward does not remove it.
func TestForwardKeepsJobsDeadAgain(t *testing.T) {
	each(t, func(t *testing.T, open func() queue) {
		q := open()
		again, other := makeDead(t, q, "mail", "a"), makeDead(t, q, "mail", "a")
		sink := dlq.SinkFunc(func(_ context.Context, dead *pawl.Envelope) error {
			if dead.ID == again {
				deadAgain(t, q, again)
			}
			return nil
		})
		n, err := dlq.Forward(t.Context(), q, sink, quiet(), pawl.Filter{})
		require.ErrorIs(t, err, pawl.ErrConflict)
		require.Equal(t, 1, n)
		require.Equal(t, []pawl.ID{again}, list(t, q, pawl.Filter{}))
		_, err = q.Job(t.Context(), other)
		require.ErrorIs(t, err, pawl.ErrNotFound)
	})
}
