package bolt

import (
	"context"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/withid"
)

// settling is every verb that ends a lease, and whether the job is alive after it.
var settling = []struct {
	name string
	end  func(context.Context, *Queue, *pawl.Lease) error
	live bool
}{
	{"ack", func(ctx context.Context, q *Queue, l *pawl.Lease) error { return q.Settle(ctx, l.Ack()) }, false},
	{"nack", func(ctx context.Context, q *Queue, l *pawl.Lease) error { return q.Settle(ctx, l.Nack(0, errBoom)) }, true},
	{"abandon", func(ctx context.Context, q *Queue, l *pawl.Lease) error {
		return q.Settle(ctx, l.Abandon(pawl.ReasonPermanent, errBoom))
	}, false},
	{"release", func(ctx context.Context, q *Queue, l *pawl.Lease) error { return q.Settle(ctx, l.Release()) }, true},
	{"snooze", func(ctx context.Context, q *Queue, l *pawl.Lease) error { return q.Settle(ctx, l.Snooze(time.Second)) }, true},
}

func TestLeaseEndsAfterItsLength(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openTest(t, &Options{Lease: 10 * time.Second})
		id := add(t, q, nil).ID
		l := leaseOne(t, q)
		require.Equal(t, 10*time.Second, l.Length)
		require.True(t, l.Expires.Equal(time.Now().Add(10*time.Second)))

		pass(10*time.Second - 1)
		synctest.Wait()
		require.Equal(t, pawl.Leased, find(t, q, id).State, "not a nanosecond early")
		pass(1)
		synctest.Wait()
		e := find(t, q, id)
		require.Equal(t, pawl.Ready, e.State)
		require.Equal(t, 1, e.Crashes)
		require.Zero(t, e.Attempts, "an attempt that never settled does not count")
	})
}

func TestExtendKeepsALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openTest(t, nil)
		kept, left := add(t, q, nil).ID, add(t, q, nil).ID
		done := add(t, q, nil).ID
		leases := fetch(t, q, 3)
		require.Equal(t, []pawl.ID{kept, left, done}, []pawl.ID{leases[0].ID, leases[1].ID, leases[2].ID})
		expires := leases[0].Expires
		require.NoError(t, q.Settle(t.Context(), leases[2].Ack()))
		forged := *leases[1]
		forged.Token++

		pass(20 * time.Second)
		lost, err := q.Extend(t.Context(), leases[2], leases[0], &forged)
		require.NoError(t, err)
		require.Equal(t, []*pawl.Lease{leases[2], &forged}, lost)
		require.Equal(t, expires, leases[0].Expires, "the value is the caller's")
		lost, err = q.Extend(t.Context())
		require.NoError(t, err)
		require.Empty(t, lost)

		pass(10 * time.Second)
		synctest.Wait()
		require.Equal(t, pawl.Ready, find(t, q, left).State, "a forged token extends nothing")
		require.Equal(t, pawl.Leased, find(t, q, kept).State)
		pass(20*time.Second - 1)
		synctest.Wait()
		require.Equal(t, pawl.Leased, find(t, q, kept).State, "the full length from the moment of Extend")
		pass(1)
		synctest.Wait()
		require.Equal(t, pawl.Ready, find(t, q, kept).State)
	})
}

// Extend and the expiry fall into one transaction. If Extend reports success, the caller must
// have the lease.
func TestExtendAtTheLastMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openTest(t, nil)
		g := gateCommits(q)
		id := add(t, q, nil).ID
		l := leaseOne(t, q)
		release := g.occupy(q)
		pass(time.Minute) // the disk is slow
		var lost []*pawl.Lease
		extended := started(func() (err error) {
			lost, err = q.Extend(t.Context(), l)
			return err
		})
		synctest.Wait()
		release()
		require.NoError(t, <-extended)
		require.Empty(t, lost)
		require.Equal(t, pawl.Leased, find(t, q, id).State)
		require.NoError(t, q.Settle(t.Context(), l.Ack()))
	})
}

func TestStaleHolderChangesNothing(t *testing.T) {
	for _, loss := range []struct {
		how  string
		lose func(*testing.T, *Queue, *pawl.Lease) *pawl.Lease // returns the stale lease
	}{
		{"acked", func(t *testing.T, q *Queue, l *pawl.Lease) *pawl.Lease {
			require.NoError(t, q.Settle(t.Context(), l.Ack()))
			return l
		}},
		{"failed, and leased by another", func(t *testing.T, q *Queue, l *pawl.Lease) *pawl.Lease {
			require.NoError(t, q.Settle(t.Context(), l.Nack(0, nil)))
			leaseOne(t, q)
			return l
		}},
		{"dead", func(t *testing.T, q *Queue, l *pawl.Lease) *pawl.Lease {
			require.NoError(t, q.Settle(t.Context(), l.Abandon(pawl.ReasonPermanent, nil)))
			return l
		}},
		{"snoozed", func(t *testing.T, q *Queue, l *pawl.Lease) *pawl.Lease {
			require.NoError(t, q.Settle(t.Context(), l.Snooze(time.Hour)))
			return l
		}},
		{"expired", func(_ *testing.T, q *Queue, l *pawl.Lease) *pawl.Lease {
			expire(q)
			return l
		}},
		{"expired, and leased by another", func(t *testing.T, q *Queue, l *pawl.Lease) *pawl.Lease {
			expire(q)
			leaseOne(t, q)
			return l
		}},
		{"a guess", func(_ *testing.T, _ *Queue, l *pawl.Lease) *pawl.Lease {
			forged := *l
			forged.Token ^= 1
			return &forged
		}},
		{"of a job that never was", func(_ *testing.T, _ *Queue, l *pawl.Lease) *pawl.Lease {
			return &pawl.Lease{Envelope: &pawl.Envelope{ID: pawl.NewID(time.Now())}, Token: l.Token}
		}},
	} {
		t.Run(loss.how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := openTest(t, nil)
				add(t, q, func(e *pawl.Envelope) { e.Payload = make([]byte, 2*largePayload) })
				stale := loss.lose(t, q, leaseOne(t, q))
				before := digest(t, q)
				for _, verb := range settling {
					require.ErrorIs(t, verb.end(t.Context(), q, stale), pawl.ErrLeaseLost, verb.name)
				}
				lost, err := q.Extend(t.Context(), stale)
				require.NoError(t, err)
				require.Equal(t, []*pawl.Lease{stale}, lost)
				require.Equal(t, before, digest(t, q))
			})
		})
	}
}

func TestClockStepsReapNothingAndLoseNothing(t *testing.T) {
	const day, century = 24 * time.Hour, 100 * 365 * 24 * time.Hour
	for _, step := range []time.Duration{time.Second, day, century, -time.Second, -day, -century} {
		t.Run(step.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var clock stepClock
				q := openTest(t, &Options{Now: clock.now})
				for _, verb := range settling {
					add(t, q, func(e *pawl.Envelope) { e.Kind = verb.name })
				}
				add(t, q, func(e *pawl.Envelope) { e.Kind = "crash" })
				leases := fetch(t, q, len(settling)+1)
				waiting := add(t, q, nil).ID
				clock.step(step)
				pass(q.opts.Lease - 1)
				reaped, err := q.Reap(t.Context())
				require.NoError(t, err)
				require.Zero(t, reaped)
				require.Equal(t, pawl.Counts{Leased: len(leases), Ready: 1}, countsOf(t, q, pawl.DefaultQueue))

				for i, verb := range settling {
					require.NoError(t, verb.end(t.Context(), q, leases[i]), verb.name)
				}
				fresh := add(t, q, nil).ID
				pass(1)
				synctest.Wait()
				crashed := find(t, q, leases[len(settling)].ID)
				require.Equal(t, pawl.Ready, crashed.State, "reaped on time")
				require.Equal(t, 1, crashed.Crashes)
				require.Equal(t, pawl.Ready, find(t, q, waiting).State)
				require.Equal(t, pawl.Ready, find(t, q, fresh).State)

				pass(time.Second) // the snooze
				synctest.Wait()
				require.Len(t, fetch(t, q, 99), 6, "all that live run at once: nack, release, snooze, the crashed, the two new")
			})
		})
	}
}

// A commit is held while leases expire, so that Reap finds them before the queue reaps them
// itself.
func TestReapCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openTest(t, nil)
		g := gateCommits(q)
		const jobs = 40
		require.NoError(t, withid.Enqueue(t.Context(), q, newBatch(jobs+2)...))
		leases := fetch(t, q, jobs+1)
		require.NoError(t, q.Settle(t.Context(), leases[0].Ack()), "settled ones are not reaped")
		pass(time.Second)
		fetch(t, q, 1) // this lease expires later
		release := g.occupy(q)
		pass(q.opts.Lease - time.Second)
		var reaped int
		done := started(func() (err error) {
			reaped, err = q.Reap(t.Context())
			return err
		})
		synctest.Wait()
		release()
		require.NoError(t, <-done)
		require.Equal(t, jobs, reaped)
		require.Equal(t, pawl.Counts{Ready: jobs, Leased: 1}, countsOf(t, q, pawl.DefaultQueue))
		reaped, err := q.Reap(t.Context())
		require.NoError(t, err)
		require.Zero(t, reaped, "nothing is left")
	})
}

func TestManyLeasesExpireInPortions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openTest(t, nil)
		g := gateCommits(q)
		const jobs = 2*reapPortion + 1
		require.NoError(t, withid.Enqueue(t.Context(), q, newBatch(jobs)...))
		require.Len(t, fetch(t, q, jobs), jobs)
		before := g.commits.Load()
		expire(q)
		require.Equal(t, pawl.Counts{Ready: jobs}, countsOf(t, q, pawl.DefaultQueue))
		require.EqualValues(t, 3, g.commits.Load()-before)
	})
}

func TestCrashCap(t *testing.T) {
	for _, c := range []struct {
		max, survives int
	}{{0, 4}, {1, 0}, {2, 1}, {7, 6}} {
		t.Run(fmt.Sprint("MaxCrashes ", c.max), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := openTest(t, &Options{MaxCrashes: c.max})
				id := add(t, q, nil).ID
				for n := range c.survives {
					leaseOne(t, q)
					expire(q)
					require.Equal(t, pawl.Ready, find(t, q, id).State)
					require.Equal(t, n+1, find(t, q, id).Crashes)
				}
				leaseOne(t, q)
				expire(q)
				e := find(t, q, id)
				now := fromFile(time.Now())
				require.Equal(t, pawl.Dead, e.State)
				require.Equal(t, &pawl.Death{Reason: pawl.ReasonPoison, At: now}, e.Death)
				require.Zero(t, e.Attempts)
				cause := fmt.Sprintf("crashed %d times in a row", c.survives+1)
				require.Equal(t, []pawl.Failure{{Attempt: 1, At: now, Error: cause}}, e.History)
				require.Equal(t, pawl.Counts{Dead: 1}, countsOf(t, q, pawl.DefaultQueue))

				require.NoError(t, q.Retry(t.Context(), id, true))
				require.Zero(t, find(t, q, id).Crashes, "a retried job starts with a clean slate")
			})
		})
	}
	t.Run("NoMaxCrashes", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			q := openTest(t, &Options{MaxCrashes: NoMaxCrashes})
			id := add(t, q, nil).ID
			for range 20 {
				leaseOne(t, q)
				expire(q)
			}
			require.Equal(t, pawl.Ready, find(t, q, id).State)
			require.Equal(t, 20, find(t, q, id).Crashes)
		})
	})
	t.Run("a count from a damaged record does not overflow", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			q := openTest(t, &Options{MaxCrashes: NoMaxCrashes})
			id := add(t, q, nil).ID
			require.NoError(t, q.Update(t.Context(), func(tx *bbolt.Tx) error {
				s, err := openStore(tx)
				require.NoError(t, err)
				j, err := s.record(id)
				require.NoError(t, err)
				j.Crashes = math.MaxInt
				return putRecord(&s, j.Envelope)
			}))
			leaseOne(t, q)
			expire(q)
			require.Equal(t, math.MaxInt, find(t, q, id).Crashes)
		})
	})
}
