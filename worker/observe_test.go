package worker_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/worker"
)

// observed is a policy that wraps another to see the delays which it gives.
type observed struct {
	pawl.Policy
	delays *[]time.Duration
}

func (o observed) Delay(r pawl.Retry) (time.Duration, bool) {
	delay, ok := o.Policy.Delay(r)
	*o.delays = append(*o.delays, delay)
	return delay, ok
}

// Rule: a policy can be wrapped to observe the delays that it gives, and only those.
func TestPolicyThatIsWatched(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		var delays []time.Duration
		w := newWorker(q, worker.Options{Policy: observed{plain, &delays}})
		worker.Handle(w, task, func(context.Context, *pawl.Job[string]) error { return errBroken })
		enqueue(t, q, "a", pawl.MaxRetries(3))
		require.NoError(t, w.Drain(t.Context(), pawl.WaitFinished))
		require.Equal(t, []time.Duration{5 * time.Second, 10 * time.Second, 20 * time.Second}, delays)
	})
}
