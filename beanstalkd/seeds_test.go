package beanstalkd_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/beanstalkd"
)

// The rows of beanstalkd in the table of nack and abandon in the documents that this library
// follows, in real time.

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

func counts(t testing.TB, q *beanstalkd.Queue) pawl.Counts {
	t.Helper()
	stats, err := q.Stats(t.Context())
	require.NoError(t, err)
	if len(stats.Queues) == 0 {
		return pawl.Counts{}
	}
	require.Len(t, stats.Queues, 1)
	return stats.Queues[0].Counts
}

// Rule: nack without a delay: a copy with attempts + 1 takes the place of the job at once. ID,
// payload, headers, and signature stay, so the copy still verifies.
func TestNackWithoutDelay(t *testing.T) {
	q := open(t, url(t), beanstalkd.Options{})
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
		require.Equal(t, pawl.Counts{Ready: 1}, counts(t, q))
	}
}

// Rule: nack with a delay: the copy is delayed by the server, for whole seconds that are rounded
// up, and comes at its time with attempts + 1 and its signature.
func TestNackWithDelay(t *testing.T) {
	t.Parallel()
	q := open(t, url(t), beanstalkd.Options{})
	signed(t, q)
	require.NoError(t, q.Settle(t.Context(), fetch(t, q).Nack(time.Hour, errBoom)))
	require.Equal(t, pawl.Counts{Delayed: 1}, counts(t, q))
	none(t, q)
	id := signed(t, q)
	began := time.Now()
	require.NoError(t, q.Settle(t.Context(), fetch(t, q).Nack(500*time.Millisecond, errBoom)))
	l := fetch(t, q)
	require.GreaterOrEqual(t, time.Since(began), 500*time.Millisecond)
	require.Equal(t, id, l.ID)
	require.Equal(t, 1, l.Attempts)
	require.False(t, l.BackoffSince.IsZero())
	require.NoError(t, keys(t).Verify(l.Envelope))
	require.NoError(t, q.Settle(t.Context(), l.Ack()))
	require.Equal(t, pawl.Counts{Delayed: 1}, counts(t, q))
}

// Rule: abandon: the job is buried by the server, with its reason, its attempts, its history, and
// its signature, and is never fetched again.
func TestAbandonBuries(t *testing.T) {
	q := open(t, url(t), beanstalkd.Options{})
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
}

// Rule: kick: a dead job that is kicked, by RetryDead or by any other client of the server, runs
// with its attempts from 0 on and keeps its history.
func TestKickRetries(t *testing.T) {
	q := open(t, url(t), beanstalkd.Options{Prefix: "kicked"})
	for _, kick := range []func(){
		func() {
			n, err := q.RetryDead(t.Context(), "default", "k", 10)
			require.NoError(t, err)
			require.Equal(t, 1, n)
		},
		func() {
			nc, err := net.Dial("tcp", strings.TrimPrefix(url(t), "beanstalkd://"))
			require.NoError(t, err)
			defer nc.Close()
			_, err = nc.Write([]byte("use kicked/default/k\r\nkick 1\r\n"))
			require.NoError(t, err)
			answer := make([]byte, len("USING kicked/default/k\r\nKICKED 1\r\n"))
			for n := 0; n < len(answer); {
				m, err := nc.Read(answer[n:])
				require.NoError(t, err)
				n += m
			}
			require.Contains(t, string(answer), "KICKED 1")
		},
	} {
		id := signed(t, q)
		require.NoError(t, q.Settle(t.Context(), fetch(t, q).Abandon(pawl.ReasonPermanent, errBoom)))
		kick()
		l := fetch(t, q)
		require.Equal(t, id, l.ID)
		require.Zero(t, l.Attempts)
		require.Zero(t, l.Crashes)
		require.Nil(t, l.Death)
		require.NoError(t, keys(t).Verify(l.Envelope))
		require.NoError(t, q.Settle(t.Context(), l.Release()))
		require.NoError(t, q.Settle(t.Context(), fetch(t, q).Abandon(pawl.ReasonExhausted, errBoom)))
		e, err := q.Dead(t.Context(), "default", "k")
		require.NoError(t, err)
		require.Equal(t, 1, e.Attempts)
		require.Equal(t, pawl.ReasonExhausted, e.Death.Reason)
		require.Len(t, e.History, 2)
		_, err = q.RetryDead(t.Context(), "default", "k", 10)
		require.NoError(t, err)
		require.NoError(t, q.Settle(t.Context(), fetch(t, q).Ack()))
	}
	n, err := q.RetryDead(t.Context(), "default", "k", 10)
	require.NoError(t, err)
	require.Zero(t, n)
	_, err = q.Dead(t.Context(), "default", "k")
	require.ErrorIs(t, err, pawl.ErrNotFound)
}

// Rule: reap: a lease that expires makes the job ready again, with no attempt more, by the server or
// by the process that has it. The holder that was late changes nothing, whichever way it settles, also where
// its own connection has the job again. Extend names the lease as lost.
func TestLeaseExpires(t *testing.T) {
	for _, by := range []string{"the same connection", "another client"} {
		t.Run(by, func(t *testing.T) {
			t.Parallel()
			const length = 10 * time.Second // a machine may stall for some seconds
			o := beanstalkd.Options{Lease: length, Prefix: newPrefix()}
			q := open(t, url(t), o)
			next := q
			if by == "another client" {
				next = open(t, url(t), o)
			}
			ids := make(map[pawl.ID]bool)
			for range 6 {
				ids[signed(t, q)] = true
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
			require.Eventually(t, func() bool { // a fetch that does not wait takes the connection that has leases
				more, err := next.Fetch(t.Context(), all)
				require.True(t, err == nil || errors.Is(err, pawl.ErrEmpty))
				leases = append(leases, more...)
				extend() // those that came first
				return len(leases) == 6
			}, time.Minute, 10*time.Millisecond)
			for _, l := range leases {
				require.True(t, ids[l.ID])
				require.Zero(t, l.Attempts)
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
}

// Rule: extend is touch: a lease that is extended outlasts its length.
func TestExtendTouches(t *testing.T) {
	t.Parallel()
	const length = 5 * time.Second
	q := open(t, url(t), beanstalkd.Options{Lease: length})
	signed(t, q)
	l := fetch(t, q)
	for began := time.Now(); time.Since(began) < length+time.Second; time.Sleep(200 * time.Millisecond) { // the server's time
		lost, err := q.Extend(t.Context(), l)
		require.NoError(t, err)
		require.Empty(t, lost)
		none(t, q)
	}
	require.NoError(t, q.Settle(t.Context(), l.Ack()))
}

// Rule: release keeps the place of a job, its attempts, and its body; a snooze delays it, and resets
// its attempts if it ran.
func TestReleaseAndSnooze(t *testing.T) {
	q := open(t, url(t), beanstalkd.Options{})
	first, second := signed(t, q), signed(t, q)
	require.NoError(t, q.Settle(t.Context(), fetch(t, q).Release()))
	l := fetch(t, q)
	require.Equal(t, first, l.ID)
	require.Zero(t, l.Crashes)
	require.NoError(t, q.Settle(t.Context(), l.Nack(0, errBoom)))
	other := fetch(t, q)
	require.Equal(t, second, other.ID)
	require.NoError(t, q.Settle(t.Context(), other.Snooze(time.Hour)))
	require.Equal(t, pawl.Counts{Ready: 1, Delayed: 1}, counts(t, q))
	l = fetch(t, q)
	require.Equal(t, first, l.ID)
	require.Equal(t, 1, l.Attempts)
	require.NoError(t, q.Settle(t.Context(), l.Snooze(0))) // it did not run
	l = fetch(t, q)
	require.Equal(t, 1, l.Attempts)
	l.Started = time.Now()
	require.NoError(t, q.Settle(t.Context(), l.Snooze(time.Second)))
	l = fetch(t, q)
	require.Equal(t, first, l.ID)
	require.Zero(t, l.Attempts)
	require.NoError(t, keys(t).Verify(l.Envelope))
	require.NoError(t, q.Settle(t.Context(), l.Ack()))
}

// Rule: a job whose leases keep ending is dead as poison at the limit of crashes. A connection that
// ends, as that of a killed process does, ends its leases at once.
func TestPoison(t *testing.T) {
	prefix := newPrefix()
	q := open(t, url(t), beanstalkd.Options{Prefix: prefix, MaxCrashes: 2})
	id := signed(t, q)
	for crashes := range 2 {
		other := open(t, url(t), beanstalkd.Options{Prefix: prefix, MaxCrashes: 2})
		require.Equal(t, crashes, fetch(t, other).Crashes)
		require.NoError(t, other.Close())
	}
	require.Eventually(t, func() bool { // the server notices the end of a connection a little later
		_, err := q.Fetch(t.Context(), pawl.Request{Kinds: []string{"k"}, Max: 1, Wait: pawl.WaitNot})
		require.ErrorIs(t, err, pawl.ErrEmpty)
		return counts(t, q).Dead == 1
	}, time.Minute, time.Millisecond)
	e, err := q.Dead(t.Context(), "default", "k")
	require.NoError(t, err)
	require.Equal(t, id, e.ID)
	require.Equal(t, pawl.ReasonPoison, e.Death.Reason)
	require.Zero(t, e.Attempts)
	require.Contains(t, e.LastError(), "2 times")
}

// Rule: an abandon that was cut short after the copy was stored leaves a copy that dies when it
// comes, and does not run.
func TestAbandonCutShort(t *testing.T) {
	q := open(t, url(t), beanstalkd.Options{Prefix: "cut"})
	signed(t, q)
	require.NoError(t, q.Settle(t.Context(), fetch(t, q).Abandon(pawl.ReasonPermanent, errBoom)))
	body := deadBody(t, "cut/default/k")
	putRaw(t, "cut/default/k", body)
	none(t, q)
	require.Equal(t, pawl.Counts{Dead: 2}, counts(t, q))
}
