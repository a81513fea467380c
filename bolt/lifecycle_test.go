package bolt

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

var errBoom = errors.New("boom")

// expire waits until every current lease has expired and was taken back.
func expire(q *Queue) {
	pass(q.opts.Lease)
	synctest.Wait()
}

// fromFile returns a time as it is read from the file.
func fromFile(t time.Time) time.Time { return time.Unix(t.Unix(), int64(t.Nanosecond())) }

// Each verb starts from the same job, which failed once and crashed once before. What the table
// does not name must not change.
func TestVerbs(t *testing.T) {
	for _, c := range []struct {
		rule  string
		verb  func(*testing.T, *Queue, *pawl.Lease) error
		state pawl.State // "" for gone
		after func(e *pawl.Envelope, now time.Time)
	}{{
		"ack removes the job",
		func(t *testing.T, q *Queue, l *pawl.Lease) error { return q.Settle(t.Context(), l.Ack()) },
		"", nil,
	}, {
		"nack counts an attempt, keeps the cause and is ready at once",
		func(t *testing.T, q *Queue, l *pawl.Lease) error { return q.Settle(t.Context(), l.Nack(0, errBoom)) },
		pawl.Ready, func(e *pawl.Envelope, now time.Time) { failed(e, now, "boom"); e.NotBefore, e.BackoffSince = now, now },
	}, {
		"nack with a delay waits for it",
		func(t *testing.T, q *Queue, l *pawl.Lease) error {
			return q.Settle(t.Context(), l.Nack(time.Minute, errBoom))
		},
		pawl.Delayed, func(e *pawl.Envelope, now time.Time) {
			failed(e, now, "boom")
			e.NotBefore, e.BackoffSince = now.Add(time.Minute), now
		},
	}, {
		"nack with a negative delay is one without",
		func(t *testing.T, q *Queue, l *pawl.Lease) error {
			return q.Settle(t.Context(), l.Nack(-time.Hour, errBoom))
		},
		pawl.Ready, func(e *pawl.Envelope, now time.Time) { failed(e, now, "boom"); e.NotBefore, e.BackoffSince = now, now },
	}, {
		"nack without a cause counts too",
		func(t *testing.T, q *Queue, l *pawl.Lease) error { return q.Settle(t.Context(), l.Nack(0, nil)) },
		pawl.Ready, func(e *pawl.Envelope, now time.Time) { failed(e, now, ""); e.NotBefore, e.BackoffSince = now, now },
	}, {
		"abandon counts an attempt and makes a dead job with its reason",
		func(t *testing.T, q *Queue, l *pawl.Lease) error {
			return q.Settle(t.Context(), l.Abandon(pawl.ReasonPermanent, errBoom))
		},
		pawl.Dead, func(e *pawl.Envelope, now time.Time) {
			failed(e, now, "boom")
			e.Death = &pawl.Death{Reason: pawl.ReasonPermanent, At: now}
		},
	}, {
		"release burns nothing",
		func(t *testing.T, q *Queue, l *pawl.Lease) error { return q.Settle(t.Context(), l.Release()) },
		pawl.Ready, func(e *pawl.Envelope, _ time.Time) { e.Crashes = 0 },
	}, {
		"snooze burns nothing and waits",
		func(t *testing.T, q *Queue, l *pawl.Lease) error { return q.Settle(t.Context(), l.Snooze(time.Minute)) },
		pawl.Delayed, func(e *pawl.Envelope, now time.Time) { e.Crashes, e.NotBefore = 0, now.Add(time.Minute) },
	}, {
		"extend changes nothing in the file",
		func(t *testing.T, q *Queue, l *pawl.Lease) error { _, err := q.Extend(t.Context(), l); return err },
		pawl.Leased, func(*pawl.Envelope, time.Time) {},
	}, {
		"an expiry counts a crash and no attempt",
		func(_ *testing.T, q *Queue, _ *pawl.Lease) error { expire(q); return nil },
		pawl.Ready, func(e *pawl.Envelope, _ time.Time) { e.Crashes++ },
	}} {
		t.Run(c.rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := openTest(t, nil)
				id := add(t, q, func(e *pawl.Envelope) {
					e.Priority, e.Timeout, e.Headers = -3, time.Hour, map[string]string{"trace": "1"}
					e.Payload = make([]byte, 2*largePayload)
				}).ID
				pass(time.Second)
				require.NoError(t, q.Settle(t.Context(), leaseOne(t, q).Nack(0, errors.New("first"))))
				firstFailure := time.Now()
				pass(time.Second)
				leaseOne(t, q)
				expire(q)
				l := leaseOne(t, q)
				leased := time.Now()
				pass(time.Second)

				before := find(t, q, id)
				require.Equal(t, 1, before.Attempts)
				require.Equal(t, 1, before.Crashes)
				require.Equal(t, []pawl.Failure{{Attempt: 1, At: fromFile(firstFailure), Error: "first"}}, before.History)
				require.Equal(t, fromFile(firstFailure), before.NotBefore)
				require.Equal(t, pawl.Leased, before.State)
				require.Equal(t, fromFile(leased), before.LeasedSince)
				require.Equal(t, pawl.Counts{Leased: 1}, countsOf(t, q, pawl.DefaultQueue))

				now := fromFile(time.Now())
				require.NoError(t, c.verb(t, q, l))
				got := find(t, q, id)
				if c.state == "" {
					require.Nil(t, got)
					require.Equal(t, pawl.Counts{}, countsOf(t, q, pawl.DefaultQueue))
					return
				}
				want := *before
				if want.State = c.state; c.state != pawl.Leased {
					want.LeasedSince = time.Time{}
				}
				c.after(&want, now)
				require.Equal(t, &want, got)
				var counts pawl.Counts
				*driver.CountOf(&counts, c.state) = 1
				require.Equal(t, counts, countsOf(t, q, pawl.DefaultQueue))
			})
		})
	}
}

// failed makes the changes of a failed attempt, whether the job is retried or becomes dead.
func failed(e *pawl.Envelope, now time.Time, cause string) {
	e.Attempts, e.Crashes, e.Failures = 2, 0, 2
	e.History = append(e.History[:1:1], pawl.Failure{Attempt: 2, At: now, Error: cause})
}

// Job a is the first of three and is leased when the verb comes. Job d is made one second after
// the verb, and e three seconds after it.
func TestPlaceInTheOrder(t *testing.T) {
	for _, c := range []struct {
		rule  string
		verb  func(*testing.T, *Queue, *pawl.Lease) error
		order string
	}{{
		"release keeps the place",
		func(t *testing.T, q *Queue, l *pawl.Lease) error { return q.Settle(t.Context(), l.Release()) },
		"abcde",
	}, {
		"reap keeps the place",
		func(_ *testing.T, q *Queue, _ *pawl.Lease) error { expire(q); return nil },
		"abcde",
	}, {
		"nack goes behind those that are ready",
		func(t *testing.T, q *Queue, l *pawl.Lease) error { return q.Settle(t.Context(), l.Nack(0, errBoom)) },
		"bcade",
	}, {
		"nack with a delay is ready since its end",
		func(t *testing.T, q *Queue, l *pawl.Lease) error {
			return q.Settle(t.Context(), l.Nack(2*time.Second, errBoom))
		},
		"bcdae",
	}, {
		"snooze is ready since the end of its delay",
		func(t *testing.T, q *Queue, l *pawl.Lease) error {
			return q.Settle(t.Context(), l.Snooze(2*time.Second))
		},
		"bcdae",
	}, {
		"a dead job that is retried goes behind",
		func(t *testing.T, q *Queue, l *pawl.Lease) error {
			return errors.Join(q.Settle(t.Context(), l.Abandon(pawl.ReasonExhausted, errBoom)), q.Retry(t.Context(), l.ID, false))
		},
		"bcade",
	}} {
		t.Run(c.rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := openTest(t, nil)
				for _, kind := range []string{"a", "b", "c"} {
					add(t, q, func(e *pawl.Envelope) { e.Kind = kind })
					pass(time.Second)
				}
				leases := fetch(t, q, 1)
				require.Equal(t, "a", kindsOf(leases))
				require.NoError(t, c.verb(t, q, leases[0]))
				pass(time.Second)
				add(t, q, func(e *pawl.Envelope) { e.Kind = "d" })
				pass(2 * time.Second)
				add(t, q, func(e *pawl.Envelope) { e.Kind = "e" })
				require.Equal(t, c.order, kindsOf(fetch(t, q, 9)))
			})
		})
	}
}

func TestRetry(t *testing.T) {
	for _, keep := range []bool{false, true} {
		t.Run(fmt.Sprintf("attempts kept: %v", keep), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := openTest(t, nil)
				id := add(t, q, func(e *pawl.Envelope) { e.Priority = 7 }).ID
				require.NoError(t, q.Settle(t.Context(), leaseOne(t, q).Nack(0, errors.New("first"))))
				require.NoError(t, q.Settle(t.Context(), leaseOne(t, q).Abandon(pawl.ReasonExhausted, errBoom)))
				want := find(t, q, id)
				require.Equal(t, pawl.Dead, want.State)
				require.Equal(t, 2, want.Attempts)
				require.Equal(t, pawl.Counts{Dead: 1}, countsOf(t, q, pawl.DefaultQueue))
				require.Empty(t, fetch(t, q, 1), "a dead job is not fetched")

				pass(time.Hour)
				require.NoError(t, q.Retry(t.Context(), id, keep))
				want.State, want.Death, want.NotBefore = pawl.Ready, nil, fromFile(time.Now())
				if !keep {
					want.Attempts = 0
				}
				require.Equal(t, want, find(t, q, id), "history, failures and priority stay")
				require.Equal(t, pawl.Counts{Ready: 1}, countsOf(t, q, pawl.DefaultQueue))
				require.ErrorIs(t, q.Retry(t.Context(), id, keep), pawl.ErrConflict, "it is not dead any more")

				l := leaseOne(t, q)
				require.NoError(t, q.Settle(t.Context(), l.Nack(0, errors.New("again"))))
				require.Len(t, find(t, q, id).History, 3)
				require.Equal(t, want.Attempts+1, find(t, q, id).Attempts)
			})
		})
	}
}

func TestRetryOfWhatIsNotDead(t *testing.T) {
	q := openTest(t, nil)
	require.ErrorIs(t, q.Retry(t.Context(), pawl.NewID(time.Now()), false), pawl.ErrNotFound)

	states := map[pawl.State]pawl.ID{}
	states[pawl.Leased] = add(t, q, nil).ID
	leaseOne(t, q)
	states[pawl.Ready] = add(t, q, nil).ID
	states[pawl.Delayed] = add(t, q, func(e *pawl.Envelope) { e.Delay = time.Hour }).ID
	before := digest(t, q)
	for state, id := range states {
		require.Equal(t, state, find(t, q, id).State)
		require.ErrorIs(t, q.Retry(t.Context(), id, false), pawl.ErrConflict, state)
	}
	require.Equal(t, before, digest(t, q), "a refused retry changes nothing")
}
