package postgres_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/worker"
	"github.com/gopawl/pawl/workflow"
)

// Rule: a workflow run moves from a file to a database and back between its steps, and ends where it
// is then. No step runs again.
func TestRunsMove(t *testing.T) {
	approved := workflow.DefineSignal[string]("approved")
	charged := 0
	order := workflow.Define("order", func(r *workflow.Run, cents int) (string, error) {
		payment, err := workflow.Step(r, "charge", func(context.Context) (int, error) {
			charged++
			return cents, nil
		})
		if err != nil || payment != cents {
			return "", err
		}
		return approved.Wait(r, time.Hour)
	})
	// work runs what is ready.
	work := func(q interface {
		pawl.Queue
		workflow.Store
	}) {
		t.Helper()
		e := workflow.Open(q, &workflow.Options{Logger: hclog.NewNullLogger()})
		w := worker.New(q, &worker.Options{Logger: hclog.NewNullLogger()})
		require.NoError(t, e.Handle(t.Context(), w, order))
		require.NoError(t, w.Drain(t.Context(), pawl.WaitDrained))
	}
	file := func(name string) *bolt.Queue {
		q, err := bolt.Open(filepath.Join(t.TempDir(), name), &bolt.Options{Logger: hclog.NewNullLogger()})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, q.Close()) })
		return q
	}
	first, back := file("first.db"), file("back.db")
	there, last := open(t, newSchema(t)), open(t, newSchema(t))

	e := workflow.Open(first, &workflow.Options{Logger: hclog.NewNullLogger()})
	started, err := order.Start(t.Context(), e, "A-1", 500)
	require.NoError(t, err)
	work(first)
	require.Equal(t, 1, charged)
	imported(t, admin.Of(there), exported(t, admin.Of(first)))
	work(there)
	imported(t, admin.Of(back), exported(t, admin.Of(there)))
	imported(t, admin.Of(last), exported(t, admin.Of(back)))

	e = workflow.Open(last, &workflow.Options{Logger: hclog.NewNullLogger()})
	require.NoError(t, approved.Send(t.Context(), e, started.Run(), "yes", "key"))
	work(last)
	run, err := order.Handle(t.Context(), e, "A-1")
	require.NoError(t, err)
	result, err := run.Result(t.Context())
	require.NoError(t, err)
	require.Equal(t, "yes", result)
	require.Equal(t, 1, charged)
}
