package memory_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/dlq"
	"github.com/gopawl/pawl/memory"
	"github.com/gopawl/pawl/worker"
)

// What the package is for: a program's handlers, run in a test.
func TestWorkerAndDeadJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := memory.New(&memory.Options{Logger: hclog.NewNullLogger()})
		defer q.Close()
		broken := true
		kind := pawl.Define[string]("greet", pawl.MaxRetries(2))
		var greeted []string
		w := worker.New(q, &worker.Options{Concurrency: 1, Logger: hclog.NewNullLogger()})
		worker.Handle(w, kind, func(_ context.Context, job *pawl.Job[string]) error {
			if broken && job.Args == "you" {
				return errors.New("not today")
			}
			greeted = append(greeted, job.Args)
			return nil
		})
		for _, name := range []string{"me", "you", "us"} {
			_, err := kind.Enqueue(t.Context(), q, name)
			require.NoError(t, err)
		}
		require.NoError(t, w.Drain(t.Context(), pawl.WaitFinished))
		require.Equal(t, []string{"me", "us"}, greeted)

		var dead []*pawl.Envelope
		for e, err := range dlq.List(t.Context(), q, pawl.Filter{}) {
			require.NoError(t, err)
			dead = append(dead, e)
		}
		require.Len(t, dead, 1)
		require.Equal(t, 3, dead[0].Attempts)
		require.Len(t, dead[0].History, 3)

		broken = false
		n, err := dlq.RetryAll(t.Context(), q, nil, pawl.Filter{})
		require.NoError(t, err)
		require.Equal(t, 1, n)
		require.NoError(t, w.Drain(t.Context(), pawl.WaitFinished))
		require.Equal(t, []string{"me", "us", "you"}, greeted)
	})
}
