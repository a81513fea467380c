package redis_test

import (
	"context"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/dlq"
	"github.com/gopawl/pawl/redis"
	"github.com/gopawl/pawl/worker"
)

// Rule: worker and dlq work over this queue as over any other. A dead job moves to another queue in one
// transition, and its record says where it was dead. Dead jobs are retried together.
func TestWorkerAndDeadJobs(t *testing.T) {
	q := open(t, url(t), redis.Options{})
	ship := pawl.Define[int]("ship", pawl.MaxRetries(1), pawl.Backoff(pawl.Fixed(1)))
	var seen []string
	drain := func(queue string, err error) {
		w := worker.New(q, &worker.Options{Queues: []string{queue}, Logger: hclog.NewNullLogger()})
		worker.Handle(w, ship, func(_ context.Context, job *pawl.Job[int]) error {
			source, _ := dlq.SourceOf(job.Envelope)
			seen = append(seen, queue+" from "+source.Queue)
			return err
		})
		require.NoError(t, w.Drain(t.Context(), pawl.WaitFinished))
	}
	_, err := ship.Enqueue(t.Context(), q, 7)
	require.NoError(t, err)
	drain("default", errBoom)
	n, err := dlq.RetryAll(t.Context(), q, nil, pawl.Filter{Kind: "ship"})
	require.NoError(t, err)
	require.Equal(t, 1, n)
	drain("default", errBoom)
	n, err = dlq.Forward(t.Context(), q, dlq.ToQueue(q, dlq.FailedJobs), nil, pawl.Filter{Kind: "ship"})
	require.NoError(t, err)
	require.Equal(t, 1, n)
	drain(dlq.FailedJobs, nil)
	require.Equal(t, []string{
		"default from ", "default from ", "default from ", "default from ", dlq.FailedJobs + " from default",
	}, seen)
	stats, err := q.Stats(t.Context())
	require.NoError(t, err)
	for _, row := range stats.Queues {
		require.Zero(t, row.Counts)
	}
}
