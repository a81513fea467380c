package redis_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/redis"
)

// These tests try, in real time, the rows of Redis in the table of nack and abandon of the documents that
// this library follows.

var errBoom = errors.New("boom")

// keys returns a keyring that signs and verifies.
func keys(t testing.TB) *pawl.Keyring {
	k, err := pawl.NewKeyring("k1", map[string][]byte{"k1": []byte(strings.Repeat("s", 32))})
	require.NoError(t, err)
	return k
}

// signed enqueues a signed job of kind "k" and returns its ID.
func signed(t testing.TB, q pawl.Queue, change ...func(*pawl.Envelope)) pawl.ID {
	t.Helper()
	e := &pawl.Envelope{Kind: "k", Payload: []byte("\xa5hello"), MaxRetries: 3, Headers: map[string]string{"trace": "7"}}
	for _, fn := range change {
		fn(e)
	}
	done, err := keys(t).Signing(q).Enqueue(t.Context(), e)
	require.NoError(t, err)
	return done[0].ID
}

// fetch leases one job of kind "k", for which it waits for up to a minute.
func fetch(t testing.TB, q pawl.Queue) *pawl.Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	leases, err := q.Fetch(ctx, pawl.Request{Kinds: []string{"k"}, Max: 1})
	require.NoError(t, err)
	require.Len(t, leases, 1)
	return leases[0]
}

// none requires that no job of kind "k" is ready.
func none(t testing.TB, q pawl.Queue) {
	t.Helper()
	leases, err := q.Fetch(t.Context(), pawl.Request{Kinds: []string{"k"}, Max: 1, Wait: pawl.WaitNot})
	require.ErrorIs(t, err, pawl.ErrEmpty)
	require.Empty(t, leases)
}

// countsOf returns the counts of the only queue.
func countsOf(t testing.TB, q *redis.Queue) pawl.Counts {
	t.Helper()
	stats, err := q.Stats(t.Context())
	require.NoError(t, err)
	require.Len(t, stats.Queues, 1)
	return stats.Queues[0].Counts
}

// Rule: nack without a delay: the lease ends and the job is ready immediately, with attempts + 1. ID,
// payload, headers, and signature stay, so it still verifies.
func TestNackWithoutDelay(t *testing.T) {
	q := open(t, url(t), redis.Options{})
	id := signed(t, q)
	for attempts := range 3 {
		l := fetch(t, q)
		require.Equal(t, id, l.ID)
		require.Equal(t, attempts, l.Attempts)
		require.Equal(t, attempts+1, l.Attempt())
		require.Equal(t, "\xa5hello", string(l.Payload))
		require.Equal(t, "7", l.Headers["trace"])
		require.NoError(t, keys(t).Verify(l.Envelope))
		require.NoError(t, q.Settle(t.Context(), l.Nack(0, errBoom)))
		require.Equal(t, pawl.Counts{Ready: 1}, countsOf(t, q))
	}
}

// Rule: nack with a delay: the job waits in the sorted set of delayed jobs, and is promoted at its time
// with attempts + 1 and its signature.
func TestNackWithDelay(t *testing.T) {
	t.Parallel()
	q := open(t, url(t), redis.Options{})
	signed(t, q)
	require.NoError(t, q.Settle(t.Context(), fetch(t, q).Nack(time.Hour, errBoom)))
	require.Equal(t, pawl.Counts{Delayed: 1}, countsOf(t, q))
	none(t, q)
	id := signed(t, q)
	began := time.Now()
	require.NoError(t, q.Settle(t.Context(), fetch(t, q).Nack(300*time.Millisecond, errBoom)))
	l := fetch(t, q)
	require.GreaterOrEqual(t, time.Since(began), 300*time.Millisecond)
	require.Equal(t, id, l.ID)
	require.Equal(t, 1, l.Attempts)
	require.False(t, l.BackoffSince.IsZero())
	require.NoError(t, keys(t).Verify(l.Envelope))
	require.NoError(t, q.Settle(t.Context(), l.Ack()))
	require.Equal(t, pawl.Counts{Delayed: 1}, countsOf(t, q))
}

// Rule: abandon: the job is dead, with its reason, its attempts, its history, and its signature, and is never
// fetched again until it is retried.
func TestAbandon(t *testing.T) {
	q := open(t, url(t), redis.Options{})
	id := signed(t, q)
	require.NoError(t, q.Settle(t.Context(), fetch(t, q).Nack(0, errBoom)))
	require.NoError(t, q.Settle(t.Context(), fetch(t, q).Abandon(pawl.ReasonExhausted, errors.New("bang"))))
	require.Equal(t, pawl.Counts{Dead: 1}, countsOf(t, q))
	none(t, q)
	e, err := q.Job(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, pawl.Dead, e.State)
	require.Equal(t, pawl.ReasonExhausted, e.Death.Reason)
	require.Equal(t, 2, e.Attempts)
	require.Len(t, e.History, 2)
	require.Equal(t, "boom", e.History[0].Error)
	require.Equal(t, 2, e.History[1].Attempt)
	require.Equal(t, "bang", e.LastError())
	require.NoError(t, keys(t).Verify(e))
	require.NoError(t, q.Retry(t.Context(), id, false))
	l := fetch(t, q)
	require.Zero(t, l.Attempts)
	require.NoError(t, keys(t).Verify(l.Envelope))
}

// Rule: reap: a lease that expires makes the job ready again without a further attempt, by any process. The
// late holder changes nothing, whichever way it settles, and Extend names the lease as lost.
func TestReap(t *testing.T) {
	t.Parallel()
	name := newName()
	q := open(t, url(t), redis.Options{Name: name, Lease: time.Second})
	other := open(t, url(t), redis.Options{Name: name, Lease: time.Hour}) // its lease outlasts the test
	id := signed(t, q)
	stale := fetch(t, q)
	l := fetch(t, other)
	require.Equal(t, id, l.ID)
	require.Zero(t, l.Attempts)
	require.Equal(t, 1, l.Crashes)
	require.NoError(t, keys(t).Verify(l.Envelope))
	extend := func() {
		lost, err := other.Extend(t.Context(), l)
		require.NoError(t, err)
		require.Empty(t, lost)
	}
	for _, s := range []pawl.Settlement{
		stale.Ack(), stale.Nack(0, errBoom), stale.Abandon(pawl.ReasonExhausted, errBoom), stale.Release(), stale.Snooze(0),
	} {
		extend()
		require.ErrorIs(t, q.Settle(t.Context(), s), pawl.ErrLeaseLost)
		require.Equal(t, pawl.Counts{Leased: 1}, countsOf(t, q))
	}
	lost, err := q.Extend(t.Context(), stale)
	require.NoError(t, err)
	require.Equal(t, []*pawl.Lease{stale}, lost)
	extend()
	require.NoError(t, other.Settle(t.Context(), l.Ack()))
}

// Rule: reap at the limit of crashes: the job is dead as poison, with no attempt counted.
func TestPoison(t *testing.T) {
	t.Parallel()
	o := redis.Options{Lease: time.Second, MaxCrashes: 1}
	q := open(t, url(t), o)
	id := signed(t, q)
	fetch(t, q)
	require.Eventually(t, func() bool { return countsOf(t, q).Dead == 1 }, time.Minute, 10*time.Millisecond)
	e, err := q.Job(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, pawl.ReasonPoison, e.Death.Reason)
	require.Zero(t, e.Attempts)
	require.Contains(t, e.LastError(), "1 times")
}

// Rule: a job that is released keeps its place and counts nothing. A snooze delays it; after an attempt it
// counts attempts from the beginning.
func TestReleaseAndSnooze(t *testing.T) {
	t.Parallel()
	q := open(t, url(t), redis.Options{})
	first := signed(t, q)
	signed(t, q)
	require.NoError(t, q.Settle(t.Context(), fetch(t, q).Release()))
	l := fetch(t, q)
	require.Equal(t, first, l.ID)
	require.Zero(t, l.Crashes)
	require.NoError(t, q.Settle(t.Context(), l.Nack(0, errBoom)))
	require.NoError(t, q.Settle(t.Context(), fetch(t, q).Snooze(time.Hour)))
	require.Equal(t, pawl.Counts{Ready: 1, Delayed: 1}, countsOf(t, q))
	l = fetch(t, q)
	require.Equal(t, 1, l.Attempts)
	l.Started = time.Now()
	require.NoError(t, q.Settle(t.Context(), l.Snooze(0)))
	l = fetch(t, q)
	require.Equal(t, first, l.ID)
	require.Zero(t, l.Attempts)
	require.NoError(t, keys(t).Verify(l.Envelope))
}
