package workflow

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/memory"
	"github.com/gopawl/pawl/worker"
)

// slowRests is a store that counts suspensions, and carries out the first one late.
type slowRests struct {
	*memory.Queue
	late  func()
	rests atomic.Int64
}

func (s *slowRests) Mutate(ctx context.Context, m driver.Mutation, size int) error {
	if _, is := m.(*suspend); is && s.rests.Add(1) == 1 {
		s.late()
	}
	return s.Queue.Mutate(ctx, m, size)
}

// graceful runs a flow that sums so many signals. Its first suspension comes late, and a signal with it.
type graceful struct {
	*slowRests
	send func(int)
	sum  func() int // once all signals have come
}

const soon = 15 * time.Millisecond

func newGraceful(t *testing.T, signals int) *graceful {
	q := memory.New(nil)
	t.Cleanup(func() { _ = q.Close() })
	g := &graceful{slowRests: &slowRests{Queue: q}}
	e := Open(g.slowRests, &Options{Logger: hclog.NewNullLogger()})
	ping := DefineSignal[int]("ping")
	flow := Define("wait", func(r *Run, n int) (sum int, err error) {
		for range n {
			i, err := ping.Wait(r, Forever)
			if err != nil {
				return 0, err
			}
			sum += i
		}
		return sum, nil
	})
	w := worker.New(q, &worker.Options{Concurrency: 1, Logger: hclog.NewNullLogger()})
	require.NoError(t, e.Handle(t.Context(), w, flow))
	h, err := flow.Start(t.Context(), e, "1", signals)
	require.NoError(t, err)
	g.send = func(i int) {
		require.NoError(t, ping.Send(t.Context(), e, h.Run(), i, ""))
		synctest.Wait()
	}
	g.late = func() {
		time.Sleep(soon)
		require.NoError(t, ping.Send(t.Context(), e, h.Run(), 1, ""))
	}
	ctx, stop := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() { gone <- w.Run(ctx) }()
	time.Sleep(soon)
	synctest.Wait() // the first signal has come during the suspension
	g.sum = func() int {
		sum, err := h.Result(ctx)
		require.NoError(t, err)
		stop()
		require.NoError(t, <-gone)
		return sum
	}
	return g
}

// Rule: a run whose last signal came soon waits for the next one before it is suspended. A run that was suspended
// does not wait before its next suspension.
func TestGraceBeforeASuspension(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGraceful(t, 4)
		time.Sleep(mostGrace - 1)
		g.send(20)
		require.EqualValues(t, 1, g.rests.Load(), "the second signal came before the grace was over")
		time.Sleep(mostGrace)
		synctest.Wait()
		require.EqualValues(t, 2, g.rests.Load(), "the third signal did not come")
		g.send(300)
		require.EqualValues(t, 3, g.rests.Load(), "it was suspended before")
		g.send(4_000)
		require.Equal(t, 4_321, g.sum())
	})
}

// Rule: a run whose signals come soon one after another gives its slot to others once it has had it for a second.
func TestGraceEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		signals := int(graceTurn/soon) + 3
		g := newGraceful(t, signals)
		for began := time.Now(); time.Since(began) < graceTurn-2*soon; {
			time.Sleep(soon)
			g.send(1)
			signals--
		}
		require.EqualValues(t, 1, g.rests.Load(), "it has had its slot for less than a second")
		for range signals - 1 {
			time.Sleep(soon)
			g.send(1)
		}
		require.Greater(t, g.rests.Load(), int64(1))
		require.Equal(t, int(graceTurn/soon)+3, g.sum())
	})
}
