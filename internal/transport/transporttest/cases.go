package transporttest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/metrics"
	"github.com/gopawl/pawl/worker"
)

// Rule: nack without a delay: the job is ready again at once with attempts + 1. ID, payload, headers, and signature
// stay, so it still verifies.
func nackWithoutDelay(t *testing.T, e Engine) {
	q := e.New(t, Options{})()
	id := Signed(t, q)
	for attempts := range 3 {
		l := Fetch(t, q)
		require.Equal(t, id, l.ID)
		require.Equal(t, attempts, l.Attempts)
		require.Equal(t, attempts+1, l.Attempt())
		require.Zero(t, l.Crashes)
		require.Equal(t, "\xa5hello", string(l.Payload))
		require.Equal(t, "7", l.Headers["trace"])
		require.NoError(t, Keys(t).Verify(l.Envelope))
		require.NoError(t, q.Settle(t.Context(), l.Nack(0, ErrBoom)))
		require.Equal(t, pawl.Counts{Ready: 1}, Counts(t, q))
	}
}

// Rule: nack with a delay: the broker delays the job, which comes at its time with attempts + 1 and its signature, and
// not before.
func nackWithDelay(t *testing.T, e Engine) {
	q := e.New(t, Options{})()
	Signed(t, q)
	require.NoError(t, q.Settle(t.Context(), Fetch(t, q).Nack(time.Hour, ErrBoom)))
	require.Equal(t, pawl.Counts{Delayed: 1}, Counts(t, q))
	None(t, q)
	id := Signed(t, q)
	began := time.Now()
	require.NoError(t, q.Settle(t.Context(), Fetch(t, q).Nack(500*time.Millisecond, ErrBoom)))
	l := Fetch(t, q)
	require.GreaterOrEqual(t, time.Since(began), 500*time.Millisecond)
	require.Equal(t, id, l.ID)
	require.Equal(t, 1, l.Attempts)
	require.Zero(t, l.Crashes)
	require.False(t, l.BackoffSince.IsZero())
	require.NoError(t, Keys(t).Verify(l.Envelope))
	require.NoError(t, q.Settle(t.Context(), l.Ack()))
	require.Equal(t, pawl.Counts{Delayed: 1}, Counts(t, q))
}

// Rule: abandon: the job is where the broker keeps what failed, with its reason, its attempts, its history, and its
// signature, and is never fetched again unless it is retried, with its attempts from 0 on.
func abandonAndRetry(t *testing.T, e Engine) {
	q := e.New(t, Options{})()
	id := Signed(t, q)
	require.NoError(t, q.Settle(t.Context(), Fetch(t, q).Nack(0, ErrBoom)))
	require.NoError(t, q.Settle(t.Context(), Fetch(t, q).Abandon(pawl.ReasonExhausted, errors.New("bang"))))
	require.Equal(t, pawl.Counts{Dead: 1}, Counts(t, q))
	None(t, q)

	dead, err := q.Dead(t.Context(), "default", "k")
	require.NoError(t, err)
	require.Equal(t, id, dead.ID)
	require.Equal(t, pawl.Dead, dead.State)
	require.Equal(t, pawl.ReasonExhausted, dead.Death.Reason)
	require.Equal(t, 2, dead.Attempts)
	require.Equal(t, 2, dead.Failures)
	require.Len(t, dead.History, 2)
	require.Equal(t, "boom", dead.History[0].Error)
	require.Equal(t, 2, dead.History[1].Attempt)
	require.Equal(t, "bang", dead.LastError())
	require.NoError(t, Keys(t).Verify(dead))

	n, err := q.RetryDead(t.Context(), "default", "k", 10)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	l := Fetch(t, q)
	require.Equal(t, id, l.ID)
	require.Zero(t, l.Attempts)
	require.Zero(t, l.Crashes)
	require.Nil(t, l.Death)
	require.NoError(t, Keys(t).Verify(l.Envelope))
	require.NoError(t, q.Settle(t.Context(), l.Release()))
	require.NoError(t, q.Settle(t.Context(), Fetch(t, q).Abandon(pawl.ReasonPermanent, ErrBoom)))
	dead, err = q.Dead(t.Context(), "default", "k")
	require.NoError(t, err)
	require.Equal(t, 1, dead.Attempts)
	require.Len(t, dead.History, 3)
	n, err = q.RetryDead(t.Context(), "default", "k", 10)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.NoError(t, q.Settle(t.Context(), Fetch(t, q).Ack()))
	require.Equal(t, pawl.Counts{}, Counts(t, q))
	n, err = q.RetryDead(t.Context(), "default", "k", 10)
	require.NoError(t, err)
	require.Zero(t, n)
	_, err = q.Dead(t.Context(), "default", "k")
	require.ErrorIs(t, err, pawl.ErrNotFound)
}

// Rule: reap: a lease that expires makes the job ready again, with no attempt more. The holder that was late changes
// nothing, whichever way it settles. Extend names the lease as lost.
func leaseExpires(t *testing.T, e Engine) {
	Rounds(t, shortest, func(r *Round) {
		open := e.New(t, Options{Lease: r.Length})
		loseLeases(r, e, open(), open())
	})
}

// Rule: the same, where the client that was late has the job again.
func leaseExpiresAtHome(t *testing.T, e Engine) {
	Rounds(t, shortest, func(r *Round) {
		q := e.New(t, Options{Lease: r.Length})()
		loseLeases(r, e, q, q)
	})
}

// loseLeases makes leases of q expire, which next gets.
func loseLeases(r *Round, e Engine, q, next Queue) {
	for range 6 {
		Signed(r, q)
	}
	hold := func(q Queue) (leases []*pawl.Lease) {
		for len(leases) < 6 {
			leases = append(leases, r.fetch(q, 6-len(leases), leases)...)
			r.extend(q, leases) // those that came first
		}
		return leases
	}
	stale := hold(q)
	require.Equal(r, r.Length, stale[0].Length)
	leases := hold(next)
	crashes := 0
	if e.Crashes {
		crashes = 1
	}
	for _, l := range leases {
		require.Zero(r, l.Attempts)
		if !e.Crashes && l.Crashes == 1 {
			r.voidIfSlower(100 * time.Millisecond) // its process gave it back too late, and the broker was first
		}
		require.Equal(r, crashes, l.Crashes)
	}
	for _, s := range []pawl.Settlement{
		stale[0].Ack(), stale[1].Nack(0, ErrBoom), stale[2].Abandon(pawl.ReasonExhausted, ErrBoom),
		stale[3].Release(), stale[4].Snooze(0),
	} {
		r.extend(next, leases)
		require.ErrorIs(r, q.Settle(r.Context(), s), pawl.ErrLeaseLost)
		require.Equal(r, pawl.Counts{Leased: 6}, Counts(r, next))
		if e.ShowsLeases {
			require.Equal(r, pawl.Counts{Leased: 6}, Counts(r, q))
		}
	}
	r.extend(next, leases)
	lost, err := q.Extend(r.Context(), stale[5])
	require.NoError(r, err)
	require.Equal(r, stale[5:], lost)
	n, err := q.Reap(r.Context())
	require.NoError(r, err)
	require.Zero(r, n)
	for _, l := range leases {
		require.NoError(r, next.Settle(r.Context(), l.Ack()))
	}
	require.Equal(r, pawl.Counts{}, Counts(r, q))
}

// Rule: a client that goes without settling leaves its leases to the broker, which ends them.
func clientGoes(t *testing.T, e Engine) {
	open := e.New(t, Options{Lease: 2 * time.Second})
	q, other := open(), open()
	id := Signed(t, q)
	require.Equal(t, id, Fetch(t, other).ID)
	require.NoError(t, other.Close())
	l := Fetch(t, q)
	require.Equal(t, id, l.ID)
	require.Zero(t, l.Attempts)
}

// Rule: extend: a lease that is extended outlasts its length at the broker too.
func extend(t *testing.T, e Engine) {
	Rounds(t, shortest, func(r *Round) {
		q := e.New(t, Options{Lease: r.Length})()
		Signed(r, q)
		r.Step()
		l := Fetch(r, q)
		ctx, cancel := context.WithTimeout(r.Context(), r.Length*3/2)
		defer cancel()
		r.none(ctx, q, []*pawl.Lease{l})
		require.NoError(r, q.Settle(r.Context(), l.Ack()))
		require.Equal(r, pawl.Counts{}, Counts(r, q))
	})
}

// Rule: release makes a job ready without an attempt and without a crash, however often; a snooze delays it, and resets
// its attempts if it ran.
func releaseAndSnooze(t *testing.T, e Engine) {
	q := e.New(t, Options{})()
	id := Signed(t, q)
	require.NoError(t, q.Settle(t.Context(), Fetch(t, q).Nack(0, ErrBoom)))
	for range 10 {
		require.NoError(t, q.Settle(t.Context(), Fetch(t, q).Release()))
	}
	l := Fetch(t, q)
	require.Equal(t, id, l.ID)
	require.Zero(t, l.Crashes)
	require.Equal(t, 1, l.Attempts)
	require.NoError(t, q.Settle(t.Context(), l.Snooze(0))) // it did not run
	l = Fetch(t, q)
	require.Equal(t, 1, l.Attempts)
	require.Zero(t, l.Crashes)
	began := time.Now()
	require.NoError(t, q.Settle(t.Context(), l.Snooze(time.Second)))
	l = Fetch(t, q)
	require.GreaterOrEqual(t, time.Since(began), time.Second)
	require.Equal(t, 1, l.Attempts)
	l.Started = time.Now()
	require.NoError(t, q.Settle(t.Context(), l.Snooze(time.Second)))
	l = Fetch(t, q)
	require.Equal(t, id, l.ID)
	require.Zero(t, l.Attempts)
	require.NoError(t, Keys(t).Verify(l.Envelope))
	require.NoError(t, q.Settle(t.Context(), l.Ack()))
}

// Rule: a job whose processes keep going without a settlement is dead as poison at the limit of crashes.
func poison(t *testing.T, e Engine) {
	Rounds(t, shortest, func(r *Round) {
		ctx, died := context.WithCancel(r.Context())
		defer died()
		open := e.New(t, Options{MaxCrashes: 2, Lease: r.Length, OnEvent: func(e pawl.Event) {
			if e.Type == pawl.EventDied {
				died()
			}
		}})
		q := open()
		id := Signed(r, q)
		for crashes := range 2 {
			other := open()
			require.Equal(r, crashes, r.fetch(other, 1, nil)[0].Crashes)
			require.NoError(r, other.Close())
		}
		r.none(ctx, q, nil)
		dead, err := q.Dead(r.Context(), "default", "k")
		require.NoError(r, err)
		require.Equal(r, id, dead.ID)
		require.Equal(r, pawl.ReasonPoison, dead.Death.Reason)
		require.Zero(r, dead.Attempts)
		require.Contains(r, dead.LastError(), "2 times")
	})
}

// Rule: what the engine lacks is refused with its name and that of the ability: by the first enqueue of such a job, and
// by the start of a worker. Nothing is stored.
func refusals(t *testing.T, e Engine) {
	q := e.New(t, Options{})()
	None(t, q)
	for ability, job := range map[pawl.Ability]*pawl.Envelope{
		pawl.UniqueKeys:      {Kind: "k", UniqueKey: "u"},
		pawl.IdempotencyKeys: {Kind: "k", IdempotencyKey: "i"},
		pawl.Priorities:      {Kind: "k", Priority: 1},
		pawl.Deadlines:       {Kind: "k", Deadline: time.Now().Add(time.Hour)},
		pawl.Retention:       {Kind: "k", Retain: time.Hour},
		pawl.LimitKeys:       {Kind: "k", Key: "l"},
		pawl.Groups:          {Kind: "k", Group: "g"},
		pawl.Prerequisites:   {Kind: "k", After: []pawl.ID{{1}}},
	} {
		if q.Abilities()&ability != 0 {
			continue
		}
		_, err := q.Enqueue(t.Context(), job)
		require.ErrorIs(t, err, pawl.ErrUnsupported)
		require.ErrorContains(t, err, e.Name)
		require.ErrorContains(t, err, ability.String())
	}
	_, err := q.Enqueue(t.Context(), &pawl.Envelope{Kind: "k"}, &pawl.Envelope{Kind: "k"})
	require.ErrorIs(t, err, pawl.ErrBatchTooLarge)
	require.ErrorContains(t, err, e.Name)
	require.Equal(t, pawl.Counts{}, Counts(t, q))

	require.Zero(t, q.Abilities()&pawl.RetryShares)
	w := worker.New(q, &worker.Options{RetryShare: 0.5, Logger: hclog.NewNullLogger()})
	worker.Handle(w, pawl.Define[string]("k"), func(context.Context, *pawl.Job[string]) error { return nil })
	err = w.Run(t.Context())
	require.ErrorIs(t, err, pawl.ErrUnsupported)
	require.ErrorContains(t, err, e.Name)
	require.ErrorContains(t, err, pawl.RetryShares.String())
}

// Rule: Drain runs jobs until none is ready or leased, and with WaitFinished also their retries, by the policies and with
// the attempts and events of every queue.
func drain(t *testing.T, e Engine) {
	var mu sync.Mutex
	var events []string
	tally := new(metrics.Tally)
	q := e.New(t, Options{Collector: tally, OnEvent: func(e pawl.Event) {
		mu.Lock()
		defer mu.Unlock()
		events = append(events, fmt.Sprint(e.Type, " ", e.Job.Attempts, " ", e.Job.State))
	}})()
	kind := pawl.Define[string]("k", pawl.MaxRetries(2), pawl.Backoff(pawl.Fixed(time.Second)))
	_, err := kind.Enqueue(t.Context(), q, "x")
	require.NoError(t, err)
	w := worker.New(q, &worker.Options{Logger: hclog.NewNullLogger()})
	var attempts []int
	worker.Handle(w, kind, func(_ context.Context, j *pawl.Job[string]) error {
		attempts = append(attempts, j.Attempt)
		if j.Last != (j.Attempt == 3) {
			return pawl.Permanent(errors.New("wrong Last"))
		}
		return ErrBoom
	})
	require.NoError(t, w.Drain(t.Context(), pawl.WaitFinished))
	require.Equal(t, []int{1, 2, 3}, attempts)
	require.Equal(t, pawl.Counts{Dead: 1}, Counts(t, q))
	require.ElementsMatch(t, []string{ // in any order: the broker may deliver a retry before it answers the nack
		"enqueued 0 ready", "fetched 0 leased", "retried 1 delayed", "fetched 1 leased", "retried 2 delayed", "fetched 2 leased", "died 3 dead",
	}, events)
	require.EqualValues(t, 3, tally.Snapshot().Total(metrics.JobsFetched))

	_, err = kind.Enqueue(t.Context(), q, "later", pawl.Delay(time.Hour))
	require.NoError(t, err)
	require.Contains(t, events, "enqueued 0 delayed")
	require.NoError(t, w.Drain(t.Context(), pawl.WaitDrained))
	require.Equal(t, pawl.Counts{Dead: 1, Delayed: 1}, Counts(t, q))
}

// Rule: of two jobs that come for one fetch at once, the fetch returns one, and the other is ready without a crash.
func twoKindsAtOnce(t *testing.T, e Engine) {
	open := e.New(t, Options{})
	q, other := open(), open()
	both := pawl.Request{Kinds: []string{"a", "b"}, Max: 1}
	for range 10 {
		got := make(chan []*pawl.Lease, 1)
		go func() {
			leases, _ := q.Fetch(t.Context(), both)
			got <- leases
		}()
		for _, kind := range both.Kinds {
			go func() { _, _ = other.Enqueue(t.Context(), &pawl.Envelope{Kind: kind}) }()
		}
		leases := <-got
		require.Len(t, leases, 1)
		second, err := other.Fetch(t.Context(), both)
		require.NoError(t, err)
		require.NotEqual(t, leases[0].Kind, second[0].Kind)
		require.Zero(t, second[0].Crashes)
		require.NoError(t, q.Settle(t.Context(), leases[0].Ack()))
		require.NoError(t, other.Settle(t.Context(), second[0].Ack()))
	}
	require.Equal(t, pawl.Counts{}, Counts(t, q))
}
