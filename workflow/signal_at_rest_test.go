package workflow

import (
	"context"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/memdir"
	"github.com/gopawl/pawl/worker"
)

// atRest is a store that calls a function before the first suspension, and counts the commits of
// entries alone.
type atRest struct {
	*bolt.Queue
	first       sync.Once
	before      func()
	checkpoints atomic.Int64
}

func (s *atRest) Mutate(ctx context.Context, m driver.Mutation, size int) error {
	switch m.(type) {
	case *suspend:
		s.first.Do(s.before)
	case *checkpoint:
		s.checkpoints.Add(1)
	}
	return s.Queue.Mutate(ctx, m, size)
}

// Rule: a signal that comes while its run is being suspended is received without a commit for the wait
// that it ends.
func TestSignalDuringASuspensionCostsNoCommit(t *testing.T) {
	q, err := bolt.Open(filepath.Join(memdir.New(t), "jobs.db"), &bolt.Options{Logger: hclog.NewNullLogger()})
	require.NoError(t, err)
	defer q.Close()
	s := &atRest{Queue: q}
	e := Open(s, &Options{Logger: hclog.NewNullLogger()})
	ping := DefineSignal[int]("ping")
	flow := Define("wait", func(r *Run, _ int) (int, error) { return ping.Wait(r, Forever) })
	w := worker.New(q, &worker.Options{Concurrency: 1, Logger: hclog.NewNullLogger()})
	require.NoError(t, e.Handle(t.Context(), w, flow))
	h, err := flow.Start(t.Context(), e, "1", 0)
	require.NoError(t, err)
	s.before = func() { require.NoError(t, ping.Send(t.Context(), e, h.Run(), 7, "")) }

	ctx, stop := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() { gone <- w.Run(ctx) }()
	n, err := h.Result(ctx)
	require.NoError(t, err)
	require.Equal(t, 7, n)
	stop()
	require.NoError(t, <-gone)
	require.Zero(t, s.checkpoints.Load())
}
