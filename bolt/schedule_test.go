package bolt

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/withid"
)

// waitFetch asks for one job and waits for it. The channel gets the lease, or is closed if the
// fetch fails.
func waitFetch(t *testing.T, q *Queue) <-chan *pawl.Lease {
	leases := make(chan *pawl.Lease, 1)
	go func() {
		defer close(leases)
		if got, err := q.Fetch(t.Context(), pawl.Request{Max: 1}); err == nil {
			leases <- got[0]
		}
	}()
	return leases
}

func TestDelayedJobComesAtItsTime(t *testing.T) {
	for _, c := range []struct {
		rule  string
		setup func(*testing.T, *Queue) // delays the job
		delay time.Duration
	}{
		{"enqueued with a delay", func(t *testing.T, q *Queue) {
			add(t, q, func(e *pawl.Envelope) { e.Delay = 90 * time.Second })
		}, 90 * time.Second},
		{"enqueued for a time", func(t *testing.T, q *Queue) {
			add(t, q, func(e *pawl.Envelope) { e.NotBefore = time.Now().Add(36*time.Hour + 1) })
		}, 36*time.Hour + 1},
		{"the delay counts where both are given", func(t *testing.T, q *Queue) {
			add(t, q, func(e *pawl.Envelope) { e.Delay, e.NotBefore = time.Second, time.Now().Add(time.Hour) })
		}, time.Second},
		{"failed", func(t *testing.T, q *Queue) {
			add(t, q, nil)
			require.NoError(t, q.Settle(t.Context(), leaseOne(t, q).Nack(time.Minute, errBoom)))
		}, time.Minute},
		{"snoozed by a nanosecond", func(t *testing.T, q *Queue) {
			add(t, q, nil)
			require.NoError(t, q.Settle(t.Context(), leaseOne(t, q).Snooze(1)))
		}, 1},
		{"behind another delayed job", func(t *testing.T, q *Queue) {
			add(t, q, func(e *pawl.Envelope) { e.Delay = time.Hour })
			add(t, q, func(e *pawl.Envelope) { e.Delay = time.Minute })
		}, time.Minute},
	} {
		t.Run(c.rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := openTest(t, nil)
				c.setup(t, q)
				due := time.Now().Add(c.delay)
				waiting := waitFetch(t, q)
				pass(c.delay - 1)
				synctest.Wait()
				require.Empty(t, waiting, "not a nanosecond early")
				require.Empty(t, fetch(t, q, 1))
				l := <-waiting
				require.True(t, time.Now().Equal(due), "and not late")
				require.True(t, l.NotBefore.Equal(due), "it is ready since it was due")
			})
		})
	}
}

func TestJobForTheYear3000Waits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openTest(t, nil)
		for _, year := range []int{2261, 2263, 3000, 200_000} {
			at := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
			id := add(t, q, func(e *pawl.Envelope) { e.NotBefore = at }).ID
			require.True(t, find(t, q, id).NotBefore.Equal(at))
		}
		pass(time.Hour)
		require.Empty(t, fetch(t, q, 9))
		require.Equal(t, pawl.Counts{Delayed: 4}, countsOf(t, q, pawl.DefaultQueue))
	})
}

func TestEndlessDelaysSaturate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openTest(t, nil)
		const longest = 1<<63 - 1
		add(t, q, func(e *pawl.Envelope) { e.Delay = longest })
		add(t, q, nil)
		require.NoError(t, q.Settle(t.Context(), leaseOne(t, q).Nack(longest, errBoom)))
		pass(time.Hour)
		require.Equal(t, pawl.Counts{Delayed: 2}, countsOf(t, q, pawl.DefaultQueue))
	})
}

func TestJobOfThePastRunsNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openTest(t, nil)
		for _, at := range []time.Time{{}, time.Unix(0, 0), time.Date(-4000, 1, 1, 0, 0, 0, 0, time.UTC), time.Now().Add(-1), time.Now()} {
			e := add(t, q, func(e *pawl.Envelope) { e.NotBefore = at })
			l := leaseOne(t, q)
			require.Equal(t, e.ID, l.ID)
			require.True(t, l.NotBefore.Equal(time.Now()), "it is ready since now, not since %v", at)
		}
	})
}

func TestClockSetForwardIsNoticedWithinAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var clock stepClock
		q := openTest(t, &Options{Now: clock.now})
		add(t, q, func(e *pawl.Envelope) { e.Delay = 24 * time.Hour })
		waiting := waitFetch(t, q)
		pass(10 * time.Second)
		synctest.Wait()
		start := time.Now()
		clock.step(25 * time.Hour)
		require.NotNil(t, <-waiting)
		require.LessOrEqual(t, time.Since(start), time.Minute)
	})
}

func TestClockSetBackRunsNothingEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var clock stepClock
		q := openTest(t, &Options{Now: clock.now})
		id := add(t, q, func(e *pawl.Envelope) { e.Delay = 10 * time.Minute }).ID
		due := clock.now().Add(10 * time.Minute)
		clock.step(-time.Hour)
		pass(70*time.Minute - 1)
		synctest.Wait()
		require.Empty(t, fetch(t, q, 1))
		require.Equal(t, pawl.Delayed, find(t, q, id).State)
		waiting := waitFetch(t, q)
		require.NotNil(t, <-waiting)
		require.True(t, clock.now().Equal(due), "at its time, by the clock as it is now")
	})
}

func TestManyJobsFallDueInPortions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openTest(t, nil)
		g := gateCommits(q)
		const jobs = 4 * promotePortion
		batch := newBatch(jobs)
		for i, e := range batch {
			e.Delay = time.Hour + time.Duration(i)*time.Second/jobs
		}
		require.NoError(t, withid.Enqueue(t.Context(), q, batch...))
		require.Equal(t, pawl.Counts{Delayed: jobs}, countsOf(t, q, pawl.DefaultQueue))

		release := g.occupy(q) // so that all are due before the next commit
		pass(time.Hour + time.Second)
		var ready []int // after each commit
		g.look = func(tx *bbolt.Tx) {
			s, err := openStore(tx)
			require.NoError(t, err)
			n, _, _ := s.number(pawl.DefaultQueue)
			counts, err := s.countsOf(n)
			require.NoError(t, err)
			ready = append(ready, counts.Ready)
		}
		release()
		synctest.Wait()
		require.Equal(t, []int{promotePortion, 2 * promotePortion, 3 * promotePortion, jobs}, ready)
		require.Equal(t, pawl.Counts{Ready: jobs}, countsOf(t, q, pawl.DefaultQueue))
		for i, l := range fetch(t, q, jobs) {
			require.Equal(t, batch[i].ID, l.ID)
		}
	})
}

// A queue is not empty if its job became due, or its lease expired, behind more others than one
// commit takes.
func TestLateJobIsFoundBehindManyOthers(t *testing.T) {
	for _, wait := range []pawl.Wait{pawl.WaitNot, pawl.WaitDrained, pawl.WaitFinished} {
		for _, expired := range []bool{false, true} {
			t.Run(fmt.Sprintf("wait %d, expired %v", wait, expired), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					q := openTest(t, nil)
					g := gateCommits(q)
					batch := newBatch(max(promotePortion, reapPortion) + 1)
					for i, e := range batch {
						if e.Queue = "busy"; !expired {
							e.Delay = time.Duration(1+i) * time.Millisecond
						}
					}
					last := batch[len(batch)-1]
					last.Queue = "quiet"
					require.NoError(t, withid.Enqueue(t.Context(), q, batch...))
					if expired {
						fetch(t, q, len(batch), "busy")
						fetch(t, q, 1, "quiet")
					}
					release := g.occupy(q)
					pass(time.Minute)
					var leases []*pawl.Lease
					done := started(func() (err error) {
						leases, err = q.Fetch(t.Context(), pawl.Request{Queues: []string{"quiet"}, Max: 1, Wait: wait})
						return err
					})
					synctest.Wait()
					release()
					require.NoError(t, <-done)
					require.Equal(t, last.ID, leases[0].ID)
				})
			})
		}
	}
}

func TestWaitingFetchGetsANewJobInTheSameCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openTest(t, nil)
		g := gateCommits(q)
		waiting := waitFetch(t, q)
		synctest.Wait()
		e := add(t, q, nil)
		require.Equal(t, e.ID, (<-waiting).ID)
		require.EqualValues(t, 1, g.commits.Load())
	})
}

func TestWaitingFetchesAreServedInTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openTest(t, nil)
		var waiting []<-chan *pawl.Lease
		for range 3 {
			waiting = append(waiting, waitFetch(t, q))
			synctest.Wait()
		}
		for i, line := range waiting {
			id := add(t, q, nil).ID
			require.Equal(t, id, (<-line).ID)
			synctest.Wait()
			for _, later := range waiting[i+1:] {
				require.Empty(t, later)
			}
		}
	})
}

// An idle queue sleeps: it commits nothing, and a distant job wakes it once a minute at most.
func TestIdleQueueWritesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openTest(t, nil)
		g := gateCommits(q)
		add(t, q, func(e *pawl.Envelope) { e.Delay = 1000 * time.Hour })
		before := g.commits.Load()
		pass(24 * time.Hour)
		synctest.Wait()
		require.Equal(t, before, g.commits.Load())
	})
}

// Rule: a wall clock that stands still just before a job is due does not keep the queue busy.
func TestClockThatStandsIsAskedInPeace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, asked := time.Now(), new(atomic.Int64)
		q := openTest(t, &Options{Now: func() time.Time {
			if asked.Add(1) > 20_000 {
				return time.Now() // otherwise a busy queue would never end
			}
			return began
		}})
		e := add(t, q, func(e *pawl.Envelope) { e.NotBefore = began.Add(1) })
		pass(time.Second)
		synctest.Wait()
		require.Equal(t, pawl.Delayed, find(t, q, e.ID).State)
		require.Less(t, asked.Load(), int64(5000))
	})
}
