package workflow_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
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
		flow := workflow.Define("steps", func(r *workflow.Run, n int) (int, error) {
			for i := range n {
				if _, err := workflow.Step(r, "step", func(context.Context) (int, error) { return i, nil }); err != nil {
					return 0, err
				}
			}
			return n, nil
		})
		e, stop := handle(t, q, flow)
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
		e, stop := handle(t, q, flow)
		h, err := flow.Start(t.Context(), e, "1", 0)
		require.NoError(t, err)
		<-q.wrote
		synctest.Wait() // the second step has ended
		close(q.released)
		<-time.After(time.Second)
		synctest.Wait()
		require.ElementsMatch(t, []string{"first", "second"}, storedSteps(t, e, h.Run()))
		close(compute)
		_, err = h.Result(t.Context())
		require.NoError(t, err)
		stop()
	})
}

// brokenQueue fails one mutation.
type brokenQueue struct {
	*bolt.Queue
	armed atomic.Bool
}

func (q *brokenQueue) Mutate(ctx context.Context, m driver.Mutation, size int) error {
	if q.armed.CompareAndSwap(true, false) {
		return errors.New("no space left on device")
	}
	return q.Queue.Mutate(ctx, m, size)
}

// Rule: after a write of the end of a step has failed, it is tried again, although the run makes no further call.
func TestEndOfAStepIsWrittenAgain(t *testing.T) {
	path := filepath.Join(memdir.New(t), "jobs.db")
	synctest.Test(t, func(t *testing.T) {
		file, err := bolt.Open(path, &bolt.Options{Logger: hclog.NewNullLogger()})
		require.NoError(t, err)
		defer file.Close()
		q := &brokenQueue{Queue: file}
		compute := make(chan struct{})
		flow := workflow.Define("one", func(r *workflow.Run, _ int) (int, error) {
			n, err := workflow.Step(r, "step", func(context.Context) (int, error) { q.armed.Store(true); return 1, nil })
			<-compute
			return n, err
		})
		e, stop := handle(t, q, flow)
		defer stop()
		release := sync.OnceFunc(func() { close(compute) })
		defer release()
		h, err := flow.Start(t.Context(), e, "1", 0)
		require.NoError(t, err)
		<-time.After(500 * time.Millisecond)
		require.Empty(t, storedSteps(t, e, h.Run()))
		require.False(t, q.armed.Load())
		<-time.After(time.Second)
		require.Equal(t, []string{"step"}, storedSteps(t, e, h.Run()))
		release()
		_, err = h.Result(t.Context())
		require.NoError(t, err)
	})
}

// handle runs a flow by its own worker until stop.
func handle(t *testing.T, q interface {
	workflow.Store
	pawl.Queue
}, flow workflow.Definition, around ...worker.Middleware) (e *workflow.Engine, stop func()) {
	e = workflow.Open(q, &workflow.Options{Logger: hclog.NewNullLogger()})
	w := worker.New(q, &worker.Options{Logger: hclog.NewNullLogger(), Middleware: around})
	require.NoError(t, e.Handle(t.Context(), w, flow))
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() { gone <- w.Run(ctx) }()
	return e, func() {
		cancel()
		require.NoError(t, <-gone)
	}
}

// storedSteps returns the names of the steps of a run whose ends are in the file.
func storedSteps(t *testing.T, e *workflow.Engine, run pawl.ID) (names []string) {
	entries, err := e.Journal(t.Context(), run, false)
	require.NoError(t, err)
	for _, each := range entries {
		if each.Kind == workflow.KindStep && each.State == workflow.EntryDone {
			names = append(names, each.Name)
		}
	}
	return names
}

// Rule: a worker may begin to run the function while the queue writes a cancel that found no active run. The end of a
// step is then written immediately: that cancel does not write it, and a crash behind the cancel would leave the step
// without its undo step.
func TestStepThatEndsDuringACancelOfARunThatBegins(t *testing.T) {
	path := filepath.Join(memdir.New(t), "jobs.db")
	synctest.Test(t, func(t *testing.T) {
		file, err := bolt.Open(path, &bolt.Options{Logger: hclog.NewNullLogger()})
		require.NoError(t, err)
		defer file.Close()
		q := &slowQueue{Queue: file, wrote: make(chan struct{}), released: make(chan struct{})}
		leased, begin, compute := make(chan struct{}), make(chan struct{}), make(chan struct{})
		flow := workflow.Define("one", func(r *workflow.Run, _ int) (int, error) {
			n, err := workflow.Step(r, "step", func(context.Context) (int, error) { return 1, nil })
			<-compute
			if err == nil {
				err = workflow.Sleep(r, "behind", 0)
			}
			return n, err
		})
		e, stop := handle(t, q, flow, func(next worker.HandlerFunc) worker.HandlerFunc {
			return func(ctx context.Context, l *pawl.Lease) error {
				close(leased)
				<-begin
				return next(ctx, l)
			}
		})
		h, err := flow.Start(t.Context(), e, "1", 0)
		require.NoError(t, err)
		<-leased
		q.armed.Store(true)
		cancelled := make(chan error, 1)
		go func() { cancelled <- h.Cancel(t.Context(), "not needed") }()
		<-q.wrote
		close(begin)
		synctest.Wait() // the step has ended
		close(q.released)
		require.NoError(t, <-cancelled)
		synctest.Wait() // no time passes
		require.Equal(t, []string{"step"}, storedSteps(t, e, h.Run()))
		close(compute)
		_, err = h.Result(t.Context())
		require.ErrorIs(t, err, workflow.ErrCancelled)
		stop()
	})
}
