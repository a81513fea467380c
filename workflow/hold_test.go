package workflow_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/internal/memdir"
	"github.com/gopawl/pawl/worker"
	"github.com/gopawl/pawl/workflow"
)

// Rule: a run of n steps takes n+1 commits of the file: its start, one before each step but the first, and its end.
func TestCommitsOfARun(t *testing.T) {
	path := filepath.Join(memdir.New(t), "jobs.db")
	synctest.Test(t, func(t *testing.T) {
		q, err := bolt.Open(path, &bolt.Options{Logger: hclog.NewNullLogger()})
		require.NoError(t, err)
		defer q.Close()
		e := workflow.Open(q, &workflow.Options{Logger: hclog.NewNullLogger()})
		flow := workflow.Define("steps", func(r *workflow.Run, n int) (int, error) {
			for i := range n {
				if _, err := workflow.Step(r, "step", func(context.Context) (int, error) { return i, nil }); err != nil {
					return 0, err
				}
			}
			return n, nil
		})
		w := worker.New(q, &worker.Options{Logger: hclog.NewNullLogger()})
		require.NoError(t, e.Handle(t.Context(), w, flow))
		ctx, stop := context.WithCancel(t.Context())
		gone := make(chan error, 1)
		go func() { gone <- w.Run(ctx) }()
		synctest.Wait()

		commits := func() (n int) {
			require.NoError(t, q.View(t.Context(), func(tx *bbolt.Tx) error {
				n = tx.ID()
				return nil
			}))
			return n
		}
		for _, n := range []int{1, 5, 20} {
			before := commits()
			h, err := flow.Start(t.Context(), e, fmt.Sprint(n), n)
			require.NoError(t, err)
			got, err := h.Result(t.Context())
			require.NoError(t, err)
			require.Equal(t, n, got)
			synctest.Wait()
			require.Equal(t, n+1, commits()-before, "%d steps", n)
		}
		stop()
		require.NoError(t, <-gone)
	})
}
