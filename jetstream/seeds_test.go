package jetstream_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/memdir"
	"github.com/gopawl/pawl/jetstream"
)

// The rows of the table of nack and abandon in the documents that this library follows, in
// real time.

var errBoom = errors.New("boom")

// keys returns a keyring that signs and verifies.
func keys(t testing.TB) *pawl.Keyring {
	k, err := pawl.NewKeyring("k1", map[string][]byte{"k1": []byte(strings.Repeat("s", 32))})
	require.NoError(t, err)
	return k
}

// signed enqueues a signed job of kind "k" and returns its ID.
func signed(t testing.TB, q pawl.Queue) pawl.ID {
	t.Helper()
	e := &pawl.Envelope{Kind: "k", Payload: []byte("\xa5hello"), MaxRetries: 3, Headers: map[string]string{"trace": "7"}}
	done, err := keys(t).Signing(q).Enqueue(t.Context(), e)
	require.NoError(t, err)
	return done[0].ID
}

// fetch leases one job of kind "k", for which it waits.
func fetch(t testing.TB, q pawl.Queue) *pawl.Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
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

func counts(t testing.TB, q *client) pawl.Counts {
	t.Helper()
	stats, err := q.Stats(t.Context())
	require.NoError(t, err)
	if len(stats.Queues) == 0 {
		return pawl.Counts{}
	}
	require.Len(t, stats.Queues, 1)
	return stats.Queues[0].Counts
}

// with runs a test with a queue on a server of its own, beside other tests.
func with(t *testing.T, o jetstream.Options, test func(t *testing.T, q *client, folder string)) {
	t.Parallel()
	folder := memdir.New(t)
	test(t, open(t, folder, o), folder)
}

// Rule: nack without a delay: a copy with attempts + 1 takes the place of the job at once. ID, payload, headers, and
// signature stay, so the copy still verifies.
func TestNackWithoutDelay(t *testing.T) {
	with(t, jetstream.Options{}, func(t *testing.T, q *client, _ string) {
		id := signed(t, q)
		for attempts := range 3 {
			l := fetch(t, q)
			require.Equal(t, id, l.ID)
			require.Equal(t, attempts, l.Attempts)
			require.Equal(t, attempts+1, l.Attempt())
			require.Zero(t, l.Crashes)
			require.Equal(t, "\xa5hello", string(l.Payload))
			require.Equal(t, "7", l.Headers["trace"])
			require.NoError(t, keys(t).Verify(l.Envelope))
			require.NoError(t, q.Settle(t.Context(), l.Nack(0, errBoom)))
			require.Equal(t, pawl.Counts{Ready: 1}, counts(t, q))
		}
	})
}

// Rule: nack with a delay: the server schedules the copy, which comes at its time with attempts + 1 and its signature.
func TestNackWithDelay(t *testing.T) {
	with(t, jetstream.Options{}, func(t *testing.T, q *client, _ string) {
		id := signed(t, q)
		began := time.Now()
		require.NoError(t, q.Settle(t.Context(), fetch(t, q).Nack(time.Second, errBoom)))
		require.Equal(t, pawl.Counts{Delayed: 1}, counts(t, q))
		l := fetch(t, q)
		require.GreaterOrEqual(t, time.Since(began), time.Second)
		require.Equal(t, id, l.ID)
		require.Equal(t, 1, l.Attempts)
		require.Zero(t, l.Crashes)
		require.False(t, l.BackoffSince.IsZero())
		require.NoError(t, keys(t).Verify(l.Envelope))
		require.NoError(t, q.Settle(t.Context(), l.Ack()))
		require.Equal(t, pawl.Counts{}, counts(t, q))
	})
}

// Rule: abandon: the job is in the stream of dead jobs, with its reason, its attempts, its history, and its signature,
// and is never fetched again unless it is retried, with its attempts from 0 on.
func TestAbandonAndRetry(t *testing.T) {
	with(t, jetstream.Options{}, func(t *testing.T, q *client, _ string) {
		id := signed(t, q)
		require.NoError(t, q.Settle(t.Context(), fetch(t, q).Nack(0, errBoom)))
		require.NoError(t, q.Settle(t.Context(), fetch(t, q).Abandon(pawl.ReasonExhausted, errors.New("bang"))))
		require.Equal(t, pawl.Counts{Dead: 1}, counts(t, q))
		none(t, q)

		e, err := q.Dead(t.Context(), "default", "k")
		require.NoError(t, err)
		require.Equal(t, id, e.ID)
		require.Equal(t, pawl.Dead, e.State)
		require.Equal(t, pawl.ReasonExhausted, e.Death.Reason)
		require.Equal(t, 2, e.Attempts)
		require.Equal(t, 2, e.Failures)
		require.Len(t, e.History, 2)
		require.Equal(t, "boom", e.History[0].Error)
		require.Equal(t, 2, e.History[1].Attempt)
		require.Equal(t, "bang", e.LastError())
		require.NoError(t, keys(t).Verify(e))

		n, err := q.RetryDead(t.Context(), "default", "k", 10)
		require.NoError(t, err)
		require.Equal(t, 1, n)
		l := fetch(t, q)
		require.Equal(t, id, l.ID)
		require.Zero(t, l.Attempts)
		require.Nil(t, l.Death)
		require.NoError(t, keys(t).Verify(l.Envelope))
		require.NoError(t, q.Settle(t.Context(), l.Ack()))
		require.Equal(t, pawl.Counts{}, counts(t, q))
		_, err = q.Dead(t.Context(), "default", "k")
		require.ErrorIs(t, err, pawl.ErrNotFound)
	})
}

// Rule: reap: a lease that expires makes the job ready again, with a crash and no attempt more. The holder that was late
// changes nothing, whichever way it settles, although the server would obey it. Extend names the lease as lost.
func TestLeaseExpires(t *testing.T) {
	const length = 10 * time.Second // a machine may stall for some seconds
	with(t, jetstream.Options{Lease: length}, func(t *testing.T, q *client, folder string) {
		next := open(t, folder, jetstream.Options{Lease: length})
		for range 6 {
			signed(t, q)
		}
		all := pawl.Request{Kinds: []string{"k"}, Max: 6, Wait: pawl.WaitNot}
		stale, err := q.Fetch(t.Context(), all)
		require.NoError(t, err)
		require.Len(t, stale, 6)
		require.Equal(t, length, stale[0].Length)
		var leases []*pawl.Lease
		extend := func() {
			lost, err := next.Extend(t.Context(), leases...)
			require.NoError(t, err)
			require.Empty(t, lost)
		}
		for len(leases) < 6 {
			more, err := next.Fetch(t.Context(), pawl.Request{Kinds: []string{"k"}, Max: 6})
			require.NoError(t, err)
			leases = append(leases, more...)
			extend() // those that came first
		}
		for _, l := range leases {
			require.Zero(t, l.Attempts)
			require.Equal(t, 1, l.Crashes)
		}
		for _, s := range []pawl.Settlement{
			stale[0].Ack(), stale[1].Nack(0, errBoom), stale[2].Abandon(pawl.ReasonExhausted, errBoom),
			stale[3].Release(), stale[4].Snooze(0),
		} {
			extend()
			require.ErrorIs(t, q.Settle(t.Context(), s), pawl.ErrLeaseLost)
			require.Equal(t, pawl.Counts{Leased: 6}, counts(t, q))
		}
		lost, err := q.Extend(t.Context(), stale[5])
		require.NoError(t, err)
		require.Equal(t, stale[5:], lost)
		n, err := q.Reap(t.Context())
		require.NoError(t, err)
		require.Zero(t, n)
		for _, l := range leases {
			require.NoError(t, next.Settle(t.Context(), l.Ack()))
		}
		require.Equal(t, pawl.Counts{}, counts(t, q))
	})
}

// Rule: a client that goes without settling leaves its leases to the server, which ends them by the ack wait.
func TestClientGone(t *testing.T) {
	with(t, jetstream.Options{Lease: time.Second}, func(t *testing.T, q *client, folder string) {
		id := signed(t, q)
		other := connect(t, folder, jetstream.Options{Lease: time.Second})
		require.Equal(t, id, fetch(t, other).ID)
		require.NoError(t, other.Close())
		l := fetch(t, q)
		require.Equal(t, id, l.ID)
		require.GreaterOrEqual(t, l.Crashes, 1)
	})
}

// Rule: extend reports progress: a lease that is extended outlasts its length at the server too.
func TestExtend(t *testing.T) {
	const length = 20 * time.Second // a machine may stall for some seconds
	with(t, jetstream.Options{Lease: length}, func(t *testing.T, q *client, _ string) {
		signed(t, q)
		l := fetch(t, q)
		for began := time.Now(); time.Since(began) < length+3*time.Second; time.Sleep(200 * time.Millisecond) { // the server's time
			lost, err := q.Extend(t.Context(), l)
			require.NoError(t, err)
			require.Empty(t, lost)
			none(t, q)
		}
		require.NoError(t, q.Settle(t.Context(), l.Ack()))
		require.Equal(t, pawl.Counts{}, counts(t, q))
	})
}

// Rule: release makes a job ready without an attempt and without a crash; a snooze delays it, and resets its attempts if
// it ran.
func TestReleaseAndSnooze(t *testing.T) {
	with(t, jetstream.Options{}, func(t *testing.T, q *client, _ string) {
		id := signed(t, q)
		require.NoError(t, q.Settle(t.Context(), fetch(t, q).Nack(0, errBoom)))
		for range 10 {
			require.NoError(t, q.Settle(t.Context(), fetch(t, q).Release()))
		}
		l := fetch(t, q)
		require.Equal(t, id, l.ID)
		require.Zero(t, l.Crashes)
		require.Equal(t, 1, l.Attempts)
		require.NoError(t, q.Settle(t.Context(), l.Snooze(time.Second))) // it did not run
		l = fetch(t, q)
		require.Equal(t, 1, l.Attempts)
		l.Started = time.Now()
		require.NoError(t, q.Settle(t.Context(), l.Snooze(time.Second)))
		l = fetch(t, q)
		require.Equal(t, id, l.ID)
		require.Zero(t, l.Attempts)
		require.NoError(t, keys(t).Verify(l.Envelope))
		require.NoError(t, q.Settle(t.Context(), l.Ack()))
	})
}

// Rule: a job whose leases keep ending is dead as poison at the limit of crashes.
func TestPoison(t *testing.T) {
	with(t, jetstream.Options{MaxCrashes: 2, Lease: 4 * time.Second}, func(t *testing.T, q *client, _ string) {
		id := signed(t, q)
		for crashes := range 2 {
			require.Equal(t, crashes, fetch(t, q).Crashes)
		}
		require.Eventually(t, func() bool {
			none(t, q)
			return counts(t, q).Dead == 1
		}, time.Minute, 10*time.Millisecond)
		e, err := q.Dead(t.Context(), "default", "k")
		require.NoError(t, err)
		require.Equal(t, id, e.ID)
		require.Equal(t, pawl.ReasonPoison, e.Death.Reason)
		require.Zero(t, e.Attempts)
		require.Contains(t, e.LastError(), "2 times")
	})
}
