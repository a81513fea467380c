package postgres_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/postgres"
	"github.com/gopawl/pawl/worker"
	"github.com/gopawl/pawl/workflow"
)

// besideMutations opens an engine of a flow that ends immediately, and a transaction that stands for the
// mutations of other processes: a mutation that runs alone would wait for it.
func besideMutations(t *testing.T, opts ...workflow.Option) (*postgres.Queue, *workflow.Engine, *workflow.Flow[int, int]) {
	schema := newSchema(t)
	q := open(t, schema)
	e := workflow.Open(q, &workflow.Options{Logger: hclog.NewNullLogger()})
	f := workflow.Define("f", func(_ *workflow.Run, n int) (int, error) { return n, nil }, opts...)
	conn, err := pgx.Connect(t.Context(), server.url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	tx, err := conn.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), "LOCK TABLE "+schema+".meta IN ROW SHARE MODE")
	require.NoError(t, err)
	return q, e, f
}

// Rule: a start of a run whose ID exists, even in a transaction of the app, makes no other mutation
// wait, and waits for none.
func TestStartOfAnExistingRunIsNotAlone(t *testing.T) {
	t.Parallel()
	q, e, f := besideMutations(t)
	first, err := f.Start(patient(t), e, "1", 7)
	require.NoError(t, err)
	again, err := f.Start(patient(t), e, "1", 7)
	require.NoError(t, err)
	require.Equal(t, first.Run(), again.Run())
	_, err = f.Start(patient(t), e, "1", 8)
	require.ErrorIs(t, err, pawl.ErrConflict)
	require.NoError(t, q.Update(patient(t), func(tx postgres.Tx) error {
		within, err := workflow.StartTx(tx, e, f, "1", 7)
		if err != nil {
			return err
		}
		require.Equal(t, first.Run(), within.Run())
		if _, err = f.Start(patient(t), e, "2", 7); err != nil {
			return err
		}
		return within.Cancel(patient(t), "") // StartTx keeps no lock of the run
	}))
}

// Rule: the removal of runs at the end of their retention makes no other mutation wait, and waits for
// none.
func TestRemovalOfRunsIsNotAlone(t *testing.T) {
	t.Parallel()
	q, e, f := besideMutations(t, workflow.Retain(time.Millisecond))
	w := worker.New(q, &worker.Options{Logger: hclog.NewNullLogger()})
	require.NoError(t, e.Handle(t.Context(), w, f))
	for _, id := range []string{"1", "2", "3"} {
		_, err := f.Start(patient(t), e, id, 7)
		require.NoError(t, err)
	}
	require.NoError(t, w.Drain(patient(t), pawl.WaitDrained))
	for ctx := patient(t); ; {
		listing, err := e.List(ctx, workflow.Filter{}, "", 9)
		require.NoError(t, err)
		if len(listing.Runs) == 0 {
			return
		}
	}
}

// Rule: Prune keeps no other mutation waiting, and waits for none.
func TestPruneIsNotAlone(t *testing.T) {
	q, e, f := besideMutations(t)
	w := worker.New(q, &worker.Options{Logger: hclog.NewNullLogger()})
	require.NoError(t, e.Handle(t.Context(), w, f))
	for _, id := range []string{"1", "2", "3"} {
		_, err := f.Start(patient(t), e, id, 7)
		require.NoError(t, err)
	}
	require.NoError(t, w.Drain(patient(t), pawl.WaitDrained))
	done, err := e.Prune(patient(t), time.Now().Add(time.Hour), nil)
	require.NoError(t, err)
	require.Equal(t, 3, done)
}

// learning is a mutation of one row after another, each of which it declares only after it has needed
// it.
type learning struct {
	keys  []string
	table *driver.Table
	known int // how many of the rows it declares
	runs  int
}

func (m *learning) Declare(n *driver.Needs) {
	for _, key := range m.keys[:m.known] {
		n.Own(m.table, []byte(key))
	}
}

func (m *learning) Check(ops driver.Ops) error {
	m.runs++
	for i, key := range m.keys {
		m.known = max(m.known, i+1)
		if _, err := ops.Get(m.table, []byte(key)); err != nil {
			return err
		}
	}
	return nil
}

func (m *learning) Apply(w driver.Writer) error {
	for _, key := range m.keys {
		if err := w.Put(m.table, []byte(key), []byte{byte(m.runs)}); err != nil {
			return err
		}
	}
	return nil
}

// Rule: a mutation that needs more than it declared runs again immediately, also in a transaction of the
// app, because it waits for no other process. Time that passed would shift what it schedules.
func TestMutationThatDeclaresMoreLosesNoTime(t *testing.T) {
	schema := newSchema(t)
	table := driver.NewSpace("pawl.postgres.learning").Table("rows")
	synctest.Test(t, func(t *testing.T) {
		q, err := postgres.Open(t.Context(), server.url, &postgres.Options{
			Schema: schema, Poll: postgres.NoPoll, Now: time.Now, Logger: hclog.NewNullLogger(),
		})
		require.NoError(t, err)
		defer func() { require.NoError(t, q.Close()) }()
		began := time.Now()
		m := &learning{keys: []string{"a", "b", "c"}, table: table}
		require.NoError(t, q.Mutate(t.Context(), m, 0))
		require.Equal(t, 4, m.runs)
		require.NoError(t, q.Update(t.Context(), func(tx postgres.Tx) error {
			m = &learning{keys: []string{"d", "e"}, table: table}
			return q.MutateTx(tx, m)
		}))
		require.Equal(t, 3, m.runs)
		require.Zero(t, time.Since(began))
		var value []byte
		require.NoError(t, q.ViewRows(t.Context(), func(r driver.Reader) error {
			value, err = r.Get(table, []byte("c"))
			return err
		}))
		require.Equal(t, []byte{4}, value)
	})
}
