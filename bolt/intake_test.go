package bolt

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/withid"
)

// offerCall leaves a call in an intake that no scheduler empties.
func offerCall(t *testing.T, in *intake, op operation, bytes int) *call {
	t.Helper()
	c := &call{op: op, bytes: bytes, done: make(chan struct{})}
	require.NoError(t, in.offer(t.Context(), c))
	return c
}

// blocked offers a call for which there is no room.
func blocked(t *testing.T, ctx context.Context, in *intake, bytes int) <-chan error {
	t.Helper()
	offer := started(func() error {
		return in.offer(ctx, &call{op: new(enqueue), bytes: bytes, done: make(chan struct{})})
	})
	synctest.Wait()
	require.Empty(t, offer, "there is no room")
	return offer
}

func TestCallsWaitForRoom(t *testing.T) {
	const half = maxWaitingBytes / 2
	for _, c := range []struct {
		bound string
		fill  func(*testing.T, *intake)
		bytes int // bytes of the call beyond the limit
	}{
		{"count", func(t *testing.T, in *intake) {
			for range maxWaiting / 2 {
				offerCall(t, in, new(enqueue), 0)
				offerCall(t, in, new(settlements), 0)
			}
		}, 0},
		{"bytes", func(t *testing.T, in *intake) {
			offerCall(t, in, new(enqueue), half)
			offerCall(t, in, new(enqueue), half)
			offerCall(t, in, new(settlements), 0) // adds no bytes
		}, 1},
		{"bytes of a single call, which comes alone", func(t *testing.T, in *intake) {
			offerCall(t, in, new(enqueue), 2*maxWaitingBytes)
		}, 1},
	} {
		t.Run(c.bound, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				in := newIntake()
				c.fill(t, in)
				stays := blocked(t, t.Context(), in, c.bytes)
				ctx, cancel := context.WithCancel(t.Context())
				leaves := blocked(t, ctx, in, c.bytes)
				cancel()
				require.ErrorIs(t, <-leaves, pawl.ErrNotAccepted)
				synctest.Wait()
				require.Empty(t, stays)

				group, _, _ := in.take(nil, nil)
				require.NotEmpty(t, group)
				require.NoError(t, <-stays, "once there is room it goes on")
			})
		})
	}
}

func TestCallsThatWaitForRoomAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newIntake()
		offerCall(t, in, new(enqueue), maxWaitingBytes)
		waiting := blocked(t, t.Context(), in, 1)
		in.refuse(pawl.ErrClosed)
		require.Equal(t, pawl.ErrClosed, <-waiting)
		in.refuse(pawl.ErrPoisoned)
		require.Equal(t, pawl.ErrClosed, in.reason(), "the first reason stands")
	})
}

func TestGroupsAreBounded(t *testing.T) {
	in := newIntake()
	for range maxGroup + 1 {
		offerCall(t, in, new(enqueue), 0)
	}
	group, _, more := in.take(nil, nil)
	require.Len(t, group, maxGroup)
	require.True(t, more)
	group, _, more = in.take(nil, nil)
	require.Len(t, group, 1)
	require.False(t, more)

	for _, bytes := range []int{maxGroupBytes / 2, maxGroupBytes / 2, 1, maxGroupBytes + 1, 1, maxGroupBytes} {
		offerCall(t, in, new(enqueue), bytes)
	}
	for i, size := range []int{2, 1, 1, 1, 1} {
		group, _, more = in.take(nil, nil)
		require.Len(t, group, size, "group %d", i)
		require.Equal(t, i < 4, more)
	}
	require.Zero(t, in.bytes)
}

// Settles keep coming. A batch that fills a commit alone must not wait for a moment without
// them.
func TestLargeBatchIsNotHeldUpBySettles(t *testing.T) {
	in := newIntake()
	large := offerCall(t, in, new(enqueue), pawl.MaxBatchBytes)
	behind := offerCall(t, in, new(enqueue), 1)
	settle := offerCall(t, in, new(settlements), 0)
	group, _, more := in.take(nil, nil)
	require.Equal(t, []*call{settle, large}, group)
	require.True(t, more)
	group, _, _ = in.take(nil, nil)
	require.Equal(t, []*call{behind}, group)
}

func TestGroupsTakeSettlesFirst(t *testing.T) {
	in := newIntake()
	var enqueues, settles []*call
	for range 3 {
		enqueues = append(enqueues, offerCall(t, in, new(enqueue), 1))
		settles = append(settles, offerCall(t, in, new(settlements), 0))
	}
	require.True(t, settles[1].stage.CompareAndSwap(offered, withdrawn))
	group, _, more := in.take(nil, nil)
	require.False(t, more)
	require.Equal(t, append([]*call{settles[0], settles[2]}, enqueues...), group)
	for _, c := range group {
		require.False(t, c.stage.CompareAndSwap(offered, withdrawn), "it is accepted, nobody withdraws it any more")
	}
}

func TestManyCallersAllGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openTest(t, nil)
		g := gateCommits(q)
		release := g.occupy(q)
		const callers = maxWaiting + 100
		done := make(chan error, callers)
		for range callers {
			go func() { done <- withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "k"}) }()
		}
		synctest.Wait()
		require.Len(t, q.scheduler.intake.others, maxWaiting)
		release()
		for range callers {
			require.NoError(t, <-done)
		}
		require.Equal(t, pawl.Counts{Ready: callers}, countsOf(t, q, pawl.DefaultQueue))
	})
}

// More enqueues wait than one commit takes, followed by an ack.
func TestSettlesGoBeforeEnqueues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openTest(t, nil)
		g := gateCommits(q)
		add(t, q, nil)
		l := leaseOne(t, q)
		release := g.occupy(q)
		done := make(chan error, maxGroup)
		for range maxGroup {
			go func() { done <- withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "k"}) }()
		}
		synctest.Wait()
		acked := started(func() error { return q.Settle(t.Context(), l.Ack()) })
		synctest.Wait()
		var first *pawl.Counts
		g.look = func(tx *bbolt.Tx) {
			if first == nil {
				s, _ := openStore(tx)
				n, _, _ := s.number(pawl.DefaultQueue)
				counts, _ := s.countsOf(n)
				first = &counts
			}
		}
		release()
		require.NoError(t, <-acked)
		for range maxGroup {
			require.NoError(t, <-done)
		}
		require.Equal(t, &pawl.Counts{Ready: maxGroup - 1}, first)
	})
}
