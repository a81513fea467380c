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

// Rule: a run whose last signal came soon waits for the next one up to twice as long before it is suspended. Once it
// was suspended, it is suspended at once again.
func TestGraceBeforeASuspension(t *testing.T) {
	const soon = 5 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		q := memory.New(nil)
		defer q.Close()
		s := &slowRests{Queue: q}
		e := Open(s, &Options{Logger: hclog.NewNullLogger()})
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
		h, err := flow.Start(t.Context(), e, "1", 4)
		require.NoError(t, err)
		send := func(i int) { require.NoError(t, ping.Send(t.Context(), e, h.Run(), i, "")) }
		s.late = func() {
			time.Sleep(soon)
			send(1)
		}
		ctx, stop := context.WithCancel(t.Context())
		gone := make(chan error, 1)
		go func() { gone <- w.Run(ctx) }()

		time.Sleep(soon)
		synctest.Wait() // the first signal has come during the suspension
		time.Sleep(2*soon - 1)
		send(20)
		synctest.Wait()
		require.EqualValues(t, 1, s.rests.Load(), "the second signal came before the grace was over")
		time.Sleep(mostGrace)
		synctest.Wait()
		require.EqualValues(t, 2, s.rests.Load(), "the third signal did not come")
		send(300)
		synctest.Wait()
		require.EqualValues(t, 3, s.rests.Load(), "it was suspended before")
		send(4_000)
		sum, err := h.Result(ctx)
		require.NoError(t, err)
		require.Equal(t, 4_321, sum)
		stop()
		require.NoError(t, <-gone)
	})
}
