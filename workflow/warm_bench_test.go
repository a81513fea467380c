package workflow_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/internal/memdir"
	"github.com/gopawl/pawl/worker"
	"github.com/gopawl/pawl/workflow"
)

// BenchmarkPingPong measures rounds of a run that waits for a signal, answers it in a step, and
// continues, in memory and from its journal. In memory, the time of a round does not depend on
// how many rounds came before.
func BenchmarkPingPong(b *testing.B) {
	for _, warm := range []int{workflow.DefaultWarm, -1} {
		for _, rounds := range []int{100, 300, 1_000} {
			b.Run(fmt.Sprintf("warm=%d/rounds=%d", warm, rounds), func(b *testing.B) {
				for b.Loop() {
					pingPong(b, warm, rounds)
				}
				b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*rounds), "µs/round")
			})
		}
	}
}

func pingPong(b *testing.B, warm, rounds int) {
	q, err := bolt.Open(filepath.Join(memdir.New(b), "rounds.db"), &bolt.Options{Logger: hclog.NewNullLogger()})
	require.NoError(b, err)
	defer q.Close()
	e := workflow.Open(q, &workflow.Options{Warm: warm, Logger: hclog.NewNullLogger()})
	ping, pong := workflow.DefineSignal[int]("ping"), make(chan int, 1)
	flow := workflow.Define("pong", func(r *workflow.Run, n int) (int, error) {
		for range n {
			i, err := ping.Wait(r, workflow.Forever)
			if err != nil {
				return 0, err
			}
			if _, err := workflow.Step(r, "answer", func(context.Context) (int, error) { pong <- i; return i, nil }); err != nil {
				return 0, err
			}
		}
		return n, nil
	})
	w := worker.New(q, &worker.Options{Concurrency: 2, Logger: hclog.NewNullLogger()})
	require.NoError(b, e.Handle(b.Context(), w, flow))
	ctx, stop := context.WithCancel(b.Context())
	gone := make(chan error, 1)
	go func() { gone <- w.Run(ctx) }()
	h, err := flow.Start(ctx, e, "1", rounds)
	require.NoError(b, err)
	for i := range rounds {
		require.NoError(b, ping.Send(ctx, e, h.Run(), i, ""))
		<-pong
	}
	_, err = h.Result(ctx)
	require.NoError(b, err)
	stop()
	require.NoError(b, <-gone)
}
