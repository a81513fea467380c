package bolt

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/withid"
)

func offerUpdate(t *testing.T, in *intake) *call {
	t.Helper()
	return offerCall(t, in, new(update), 0)
}

// However many settles keep coming, an update waits for at most two groups.
func TestUpdateIsReachedWhileSettlesKeepComing(t *testing.T) {
	for _, settles := range []int{1, maxGroup, maxGroup + 100} {
		for _, before := range []int{0, 1} {
			t.Run(fmt.Sprintf("%d settles, %d enqueues before", settles, before), func(t *testing.T) {
				in := newIntake()
				for range before {
					offerCall(t, in, new(enqueue), 1)
				}
				u := offerUpdate(t, in)
				for groups := 0; ; groups++ {
					require.LessOrEqual(t, groups, 2+before)
					for len(in.settles) < settles {
						offerCall(t, in, new(settlements), 0)
					}
					if group, _, _ := in.take(nil, nil); len(group) == 1 && group[0] == u {
						break
					}
				}
			})
		}
	}
}

// Settles that fill every group do not keep enqueues out either.
func TestEnqueueIsReachedWhileSettlesFillGroups(t *testing.T) {
	in := newIntake()
	e := offerCall(t, in, new(enqueue), 1)
	for range maxGroup + 1 {
		offerCall(t, in, new(settlements), 0)
	}
	group, _, more := in.take(nil, nil)
	require.True(t, more)
	require.Len(t, group, maxGroup)
	group, _, _ = in.take(nil, nil)
	require.Equal(t, []*call{e}, group)
	group, _, _ = in.take(nil, nil)
	require.Len(t, group, 1)
}

// However many updates keep coming, between two of them all others get a turn. It may be an
// empty one, for the fetches.
func TestOthersAreReachedWhileUpdatesKeepComing(t *testing.T) {
	in := newIntake()
	var updates []*call
	for range 4 {
		updates = append(updates, offerUpdate(t, in))
	}
	requireGroup := func(want ...*call) {
		t.Helper()
		group, _, more := in.take(nil, nil)
		require.True(t, more)
		require.Equal(t, want, group)
	}
	requireGroup(updates[0])
	settle := offerCall(t, in, new(settlements), 0)
	requireGroup(settle)
	requireGroup(updates[1])
	requireGroup()
	behind := offerCall(t, in, new(enqueue), 1)
	requireGroup(updates[2])
	requireGroup()
	requireGroup(updates[3])
	group, _, more := in.take(nil, nil)
	require.Equal(t, []*call{behind}, group)
	require.False(t, more)

	last := offerUpdate(t, in)
	requireGroup(last) // a turn of all others is due
	group, _, more = in.take(nil, nil)
	require.Empty(t, group)
	require.False(t, more)
}

// Each update begins the next one, so that one is always waiting. Nobody else waits for more
// than a few of them.
func TestEverybodyIsServedAmongUpdates(t *testing.T) {
	for rule, begin := range map[string]func(ctx context.Context, q *Queue, l *pawl.Lease, due pawl.ID) error{
		"enqueue": func(ctx context.Context, q *Queue, _ *pawl.Lease, _ pawl.ID) error {
			return withid.Enqueue(ctx, q, &pawl.Envelope{Kind: "k", Queue: "other"})
		},
		"ack": func(ctx context.Context, q *Queue, l *pawl.Lease, _ pawl.ID) error { return q.Settle(ctx, l.Ack()) },
		"a fetch that finds a job": func(ctx context.Context, q *Queue, _ *pawl.Lease, _ pawl.ID) error {
			_, err := q.Fetch(ctx, pawl.Request{Max: 1, Queues: []string{"ready"}})
			return err
		},
		"a fetch that gives up": func(ctx context.Context, q *Queue, _ *pawl.Lease, _ pawl.ID) error {
			if _, err := q.Fetch(ctx, pawl.Request{Max: 1, Wait: pawl.WaitNot, Queues: []string{"empty"}}); err != pawl.ErrEmpty {
				return fmt.Errorf("got %w", err)
			}
			return nil
		},
		"a job that falls due": func(ctx context.Context, q *Queue, _ *pawl.Lease, due pawl.ID) error {
			leases, err := q.Fetch(ctx, pawl.Request{Max: 1, Queues: []string{"delayed"}})
			if err == nil && leases[0].ID != due {
				return fmt.Errorf("got job %s", leases[0].ID)
			}
			return err
		},
	} {
		t.Run(rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := openTest(t, nil)
				g := gateCommits(q)
				add(t, q, nil)
				l := leaseOne(t, q)
				add(t, q, func(e *pawl.Envelope) { e.Queue = "ready" })
				due := add(t, q, func(e *pawl.Envelope) { e.Queue, e.Delay = "delayed", time.Second }).ID

				release := g.occupy(q)
				const bound = 10
				var chain sync.WaitGroup
				updates, errs := 0, make(chan error, bound)
				var answer <-chan error
				var next func(*bbolt.Tx) error
				next = func(*bbolt.Tx) error {
					if updates++; updates < bound && len(answer) == 0 {
						chain.Go(func() { errs <- q.Update(t.Context(), next) })
					}
					pass(time.Second / 2) // the next update arrives in that time
					return nil
				}
				chain.Go(func() { errs <- q.Update(t.Context(), next) })
				synctest.Wait()
				answer = started(func() error { return begin(t.Context(), q, l, due) })
				synctest.Wait()
				release()
				chain.Wait()
				close(errs)
				for err := range errs {
					require.NoError(t, err)
				}
				require.NoError(t, <-answer)
				require.Less(t, updates, bound, "it waited for the end of all updates")
			})
		})
	}
}

// A fetch that arrives together with an update, with nothing else after it, is served.
func TestFetchThatComesWithAnUpdate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openTest(t, nil)
		g := gateCommits(q)
		add(t, q, nil)
		release := g.occupy(q)
		updated := started(func() error { return q.Update(t.Context(), func(*bbolt.Tx) error { return errRolledBack }) })
		fetched := started(func() error { _, err := q.Fetch(t.Context(), pawl.Request{Max: 1}); return err })
		synctest.Wait()
		release()
		require.Equal(t, errRolledBack, <-updated)
		require.NoError(t, <-fetched)
	})
}

// Goroutines that use a whole queue and an app's rows concurrently all finish, and nothing is
// lost or done twice.
func TestManyUpdatesAtOnce(t *testing.T) {
	q := openTest(t, nil)
	const callers, rounds = 16, 20
	var running sync.WaitGroup
	errs := make(chan error, 3*callers*rounds)
	for n := range callers {
		running.Go(func() {
			for i := range rounds {
				errs <- q.Update(t.Context(), func(tx *bbolt.Tx) error {
					if err := appPut(tx, fmt.Sprintf("%d/%d", n, i)); err != nil {
						return err
					}
					return withid.EnqueueTx(q, tx, &pawl.Envelope{Kind: "k", Queue: "q"})
				})
			}
		})
		running.Go(func() {
			for range rounds {
				errs <- withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "k", Queue: "q"})
			}
		})
		running.Go(func() {
			for done := 0; done < 2*rounds; {
				leases, err := q.Fetch(t.Context(), pawl.Request{Queues: []string{"q"}, Max: 2*rounds - done})
				if err != nil {
					errs <- err
					return
				}
				done += len(leases)
				for i, l := range leases {
					if i%2 == 0 {
						err = q.Update(t.Context(), func(tx *bbolt.Tx) error { return q.AckTx(tx, l) })
					} else {
						err = q.Settle(t.Context(), l.Ack())
					}
					if err != nil {
						errs <- fmt.Errorf("ack %d of %d: %w", i, len(leases), err)
					}
				}
			}
		})
	}
	running.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	require.Len(t, appRows(t, q.db), callers*rounds)
	require.Zero(t, countsOf(t, q, "q"))
	checkNow(t, q)
}
