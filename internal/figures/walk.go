package figures

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/metrics"
)

// Walk takes random steps over a queue.
type Walk struct {
	T      *testing.T
	Queue  Queue
	Random *rand.Rand
	leases []*pawl.Lease
}

// Queue is a queue that takes these steps.
type Queue interface {
	pawl.Queue
	metrics.Source
	Cancel(ctx context.Context, id pawl.ID) error
}

// Step takes one step. Time passes only in it.
func (w *Walk) Step() {
	ctx := w.T.Context()
	seconds := func(n int) time.Duration { return time.Duration(w.Random.IntN(n)) * time.Second }
	switch w.Random.IntN(8) {
	case 0, 1, 2:
		e := &pawl.Envelope{Kind: []string{"a", "b"}[w.Random.IntN(2)], Queue: []string{"x", "y", ""}[w.Random.IntN(3)]}
		e.Delay = seconds(3) * time.Duration(w.Random.IntN(2))
		e.MaxRetries = w.Random.IntN(3)
		e.Retain = time.Duration(w.Random.IntN(2)) * 24 * time.Hour
		done, err := w.Queue.Enqueue(ctx, e)
		require.NoError(w.T, err)
		if w.Random.IntN(6) == 0 {
			require.NoError(w.T, w.Queue.Cancel(ctx, done[0].ID))
		}
	case 3, 4:
		leases, err := w.Queue.Fetch(ctx, pawl.Request{Queues: []string{"x", "y", pawl.DefaultQueue}, Max: 3, Wait: pawl.WaitNot})
		if !errors.Is(err, pawl.ErrEmpty) {
			require.NoError(w.T, err)
		}
		w.leases = append(w.leases, leases...)
	case 5, 6:
		if len(w.leases) == 0 {
			return
		}
		l := w.leases[0]
		w.leases = w.leases[1:]
		settlement := []pawl.Settlement{
			l.Ack(), l.Ack(), l.Nack(seconds(5), errors.New("failed")), l.Abandon(pawl.ReasonPermanent, errors.New("failed")),
			l.Release(), l.Snooze(seconds(5)),
		}[w.Random.IntN(6)]
		if err := w.Queue.Settle(ctx, settlement); !errors.Is(err, pawl.ErrLeaseLost) {
			require.NoError(w.T, err)
		}
	case 7:
		time.Sleep(seconds(20)) // in the virtual time of the test
	}
}
