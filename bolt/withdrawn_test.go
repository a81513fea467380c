package bolt

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

// Rule: a withdrawn call releases its room, its place and its bytes, whatever sort of call it
// is and wherever it is in the queue.
func TestWithdrawnCallsGiveTheirRoomBack(t *testing.T) {
	const half = maxWaitingBytes / 2
	withdraw := func(c *call) { require.True(t, c.stage.CompareAndSwap(offered, withdrawn)) }
	ops := map[string]func() operation{
		"enqueue": func() operation { return new(enqueue) },
		"settle":  func() operation { return new(settlements) },
		"update":  func() operation { return new(update) },
	}
	for name, op := range ops {
		for _, live := range []int{0, 1, 2} { // calls that are not withdrawn
			t.Run(fmt.Sprint(name, " beside ", live), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					in := newIntake()
					for range 3 {
						if live > 0 {
							offerCall(t, in, new(enqueue), 1)
						}
						withdraw(offerCall(t, in, op(), half-2))
						if live > 1 {
							offerCall(t, in, new(settlements), 1)
						}
						withdraw(offerCall(t, in, op(), half-2))
						ctx, cancel := context.WithCancel(t.Context())
						leaves := blocked(t, ctx, in, half)
						cancel()
						require.ErrorIs(t, <-leaves, pawl.ErrNotAccepted)

						stays := blocked(t, t.Context(), in, half)
						for more := true; more; {
							_, _, more = in.take(nil, nil)
						}
						require.NoError(t, <-stays)
						require.Equal(t, half, in.bytes)
						for more := true; more; {
							_, _, more = in.take(nil, nil)
						}
						require.Zero(t, in.bytes)
						require.Zero(t, len(in.settles)+len(in.others))
					}
				})
			})
		}
	}
}

// waitingFor returns how many calls and bytes are in the intake of a queue.
func waitingFor(q *Queue) (calls, bytes int) {
	in := q.scheduler.intake
	in.mu.Lock()
	defer in.mu.Unlock()
	return len(in.settles) + len(in.others) + len(in.fetches), in.bytes
}

// Rule: a queue whose callers give up while it is busy has all of its room again, round after
// round.
func TestAQueueHasItsRoomAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openTest(t, nil)
		g := gateCommits(q)
		for range 5 {
			release := g.occupy(q)
			ctx, cancel := context.WithCancel(t.Context())
			var calls []<-chan error
			for range 4 {
				calls = append(calls, started(func() error { return q.Mutate(ctx, new(ride), maxWaitingBytes/4) }))
				calls = append(calls, started(func() error {
					_, err := q.Fetch(ctx, pawl.Request{Queues: []string{"never"}, Max: 1})
					return err
				}))
			}
			synctest.Wait()
			cancel()
			for _, call := range calls {
				require.ErrorIs(t, <-call, pawl.ErrNotAccepted)
			}
			release()
			synctest.Wait()
			left, bytes := waitingFor(q)
			require.Zero(t, left)
			require.Zero(t, bytes)
		}
		release := g.occupy(q) // while the intake is full
		var calls []<-chan error
		for range 4 {
			calls = append(calls, started(func() error { return q.Mutate(t.Context(), new(ride), maxWaitingBytes/4) }))
		}
		synctest.Wait()
		_, bytes := waitingFor(q)
		release()
		require.Equal(t, maxWaitingBytes, bytes)
		for _, call := range calls {
			require.NoError(t, <-call)
		}
	})
}
