package memory_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/memory"
	"github.com/gopawl/pawl/worker"
	"github.com/gopawl/pawl/workflow"
)

// Rule: a run that stayed in the memory of a process continues from its journal if another process has
// run it since. If nobody has, it continues in memory.
func TestRunInMemoryOfOneProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := memory.New(&memory.Options{Logger: hclog.NewNullLogger()})
		defer q.Close()
		word := workflow.DefineSignal[int]("word")
		calls := 0
		var received []int
		f := workflow.Define("listener", func(r *workflow.Run, n int) (int, error) {
			calls++
			for range n {
				i, err := word.Wait(r, workflow.Forever)
				if err != nil {
					return 0, err
				}
				if _, err := workflow.Step(r, "receive", func(context.Context) (int, error) { received = append(received, i); return i, nil }); err != nil {
					return 0, err
				}
			}
			return n, nil
		})
		var processes [2]*workflow.Engine
		for i := range processes {
			processes[i] = workflow.Open(newClient(q), &workflow.Options{Build: "1", Logger: hclog.NewNullLogger()})
		}
		h, err := f.Start(t.Context(), processes[0], "1", 6)
		require.NoError(t, err)
		for i, turn := range []struct{ process, calls int }{{0, 1}, {0, 1}, {1, 2}, {0, 3}, {0, 3}, {1, 4}} {
			ctx, stop := context.WithCancel(t.Context())
			e, w := processes[turn.process], worker.New(newClient(q), &worker.Options{Concurrency: 1, Drain: 1, Logger: hclog.NewNullLogger()})
			require.NoError(t, e.Handle(ctx, w, f))
			gone := make(chan error, 1)
			go func() { gone <- w.Run(ctx) }()
			require.NoError(t, word.Send(ctx, e, h.Run(), i, ""))
			synctest.Wait()
			stop()
			require.NoError(t, <-gone)
			require.Equal(t, turn.calls, calls, "turn %d", i)
		}
		_, err = h.Result(t.Context())
		require.NoError(t, err)
		require.Equal(t, []int{0, 1, 2, 3, 4, 5}, received)
	})
}
