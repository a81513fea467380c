package workflow_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/driver"
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

// slowQueue holds up the commit of one mutation, after the mutation has written.
type slowQueue struct {
	*bolt.Queue
	armed           atomic.Bool
	wrote, released chan struct{}
}

func (q *slowQueue) Mutate(ctx context.Context, m driver.Mutation, size int) error {
	if q.armed.CompareAndSwap(true, false) {
		m = slow{m, q}
	}
	return q.Queue.Mutate(ctx, m, size)
}

type slow struct {
	driver.Mutation
	q *slowQueue
}

func (s slow) Apply(tx driver.Writer) error {
	err := s.Mutation.Apply(tx)
	close(s.q.wrote)
	<-s.q.released
	return err
}

// Rule: a step that ends while the end of another one is written does not stay out of the file for long either.
func TestStepThatEndsDuringAWriteIsStoredSoon(t *testing.T) {
	path := filepath.Join(memdir.New(t), "jobs.db")
	synctest.Test(t, func(t *testing.T) {
		file, err := bolt.Open(path, &bolt.Options{Logger: hclog.NewNullLogger()})
		require.NoError(t, err)
		defer file.Close()
		q := &slowQueue{Queue: file, wrote: make(chan struct{}), released: make(chan struct{})}
		e := workflow.Open(q, &workflow.Options{Logger: hclog.NewNullLogger()})
		begun, compute := make(chan struct{}), make(chan struct{})
		branch := func(r *workflow.Run, name string, fn func()) *workflow.Branch[int] {
			return workflow.Go(r, name, func(r *workflow.Run) (int, error) {
				_, err := workflow.Step(r, name, func(context.Context) (int, error) { fn(); return 1, nil })
				<-compute
				return 1, err
			})
		}
		flow := workflow.Define("two", func(r *workflow.Run, _ int) (int, error) {
			second := branch(r, "second", func() { close(begun); <-q.wrote })
			first := branch(r, "first", func() { <-begun; q.armed.Store(true) })
			if _, err := first.Wait(r); err != nil {
				return 0, err
			}
			return second.Wait(r)
		})
		w := worker.New(q, &worker.Options{Logger: hclog.NewNullLogger()})
		require.NoError(t, e.Handle(t.Context(), w, flow))
		ctx, stop := context.WithCancel(t.Context())
		gone := make(chan error, 1)
		go func() { gone <- w.Run(ctx) }()
		h, err := flow.Start(t.Context(), e, "1", 0)
		require.NoError(t, err)
		<-q.wrote
		synctest.Wait() // the second step has ended
		close(q.released)
		<-time.After(time.Second)
		synctest.Wait()
		entries, err := e.Journal(t.Context(), h.Run(), false)
		require.NoError(t, err)
		var stored []string
		for _, each := range entries {
			if each.Kind == workflow.KindStep && each.State == workflow.EntryDone {
				stored = append(stored, each.Name)
			}
		}
		require.ElementsMatch(t, []string{"first", "second"}, stored)
		close(compute)
		_, err = h.Result(t.Context())
		require.NoError(t, err)
		stop()
		require.NoError(t, <-gone)
	})
}
