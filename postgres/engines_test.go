package postgres_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/postgres"
	"github.com/gopawl/pawl/worker"
	"github.com/gopawl/pawl/workflow"
)

var _ workflow.Transactor[postgres.Tx] = (*postgres.Queue)(nil)

// trips are flows whose effects are counted: the effects of steps in this process, and the effects of
// transactions in the table trip of the schema.
type trips struct {
	schema string
	steps  sync.Map           // by run and step, how often it ran
	meet   func(build string) // is called in each step

	parent *workflow.Flow[int, int]
	child  *workflow.Flow[int, int]
	signal *workflow.Signal[int]
}

func newTrips(t *testing.T, schema string) *trips {
	s := &trips{schema: schema, signal: workflow.DefineSignal[int]("go"), meet: func(string) {}}
	execute(t, "CREATE TABLE "+schema+".trip (name text PRIMARY KEY, n int8 NOT NULL)")
	s.child = workflow.Define("child", func(r *workflow.Run, n int) (int, error) { return s.book(r, n) })
	s.parent = workflow.Define("parent", func(r *workflow.Run, n int) (int, error) {
		if _, err := s.book(r, n); err != nil {
			return 0, err
		}
		if _, err := s.signal.Wait(r, workflow.Forever); err != nil {
			return 0, err
		}
		return workflow.Call(r, "child", s.child, n)
	})
	return s
}

// book makes a step and a transaction.
func (s *trips) book(r *workflow.Run, n int) (int, error) {
	if _, err := workflow.Step(r, "step", func(context.Context) (int, error) {
		count, _ := s.steps.LoadOrStore(r.Key(), new(atomic.Int32))
		count.(*atomic.Int32).Add(1)
		return n, nil
	}); err != nil {
		return 0, err
	}
	return workflow.StepTx(r, "book", func(tx postgres.Tx) (int, error) {
		_, err := tx.Exec(context.Background(), "INSERT INTO "+s.schema+".trip AS c VALUES ($1, 1) ON CONFLICT (name) DO UPDATE SET n = c.n + 1", r.Key())
		return n, err
	})
}

// engine runs the flows with its own client, which stands for a separate process.
func (s *trips) engine(t *testing.T, url, build string) *workflow.Engine {
	q, err := postgres.Open(t.Context(), url, &postgres.Options{Schema: s.schema, Poll: 20 * time.Millisecond, Logger: hclog.NewNullLogger()})
	require.NoError(t, err)
	e := workflow.Open(q, &workflow.Options{Build: build, Logger: hclog.NewNullLogger(), Middleware: []workflow.Middleware{
		func(next workflow.StepFunc) workflow.StepFunc {
			return func(ctx context.Context, info workflow.StepInfo) (any, error) {
				s.meet(build)
				return next(ctx, info)
			}
		},
	}})
	w := worker.New(q, &worker.Options{Concurrency: 4, Drain: time.Second, Logger: hclog.NewNullLogger()})
	require.NoError(t, e.Handle(t.Context(), w, s.parent, s.child))
	ctx, stop := context.WithCancel(context.Background())
	gone := make(chan error, 1)
	go func() { gone <- w.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		<-gone
		require.NoError(t, q.Close())
	})
	return e
}

// once requires that each effect of n trips happened once.
func (s *trips) once(t *testing.T, n int) {
	conn, err := pgx.Connect(t.Context(), server.url)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(context.Background())) }()
	var rows, most int
	require.NoError(t, conn.QueryRow(t.Context(), "SELECT count(*), max(n) FROM "+s.schema+".trip").Scan(&rows, &most))
	require.Equal(t, 2*n, rows, "a transaction of each run")
	require.Equal(t, 1, most, "how often one took effect")
	steps := 0
	s.steps.Range(func(key, count any) bool {
		steps++
		require.EqualValues(t, 1, count.(*atomic.Int32).Load(), "step %v", key)
		return true
	})
	require.Equal(t, 2*n, steps)
}

// meeting returns a function that waits until it was called with each of some words.
func meeting(t *testing.T, words ...string) func(word string) {
	var mu sync.Mutex
	late, all, ctx := slices.Clone(words), make(chan struct{}), patient(t)
	return func(word string) {
		mu.Lock()
		if i := slices.Index(late, word); i >= 0 {
			if late = slices.Delete(late, i, i+1); len(late) == 0 {
				close(all)
			}
		}
		mu.Unlock()
		select {
		case <-all:
		case <-ctx.Done():
			t.Errorf("no word of %q", late)
		}
	}
}

// Rule: several engines of several builds share the runs of one database. Whatever engine starts a
// run, sends it a signal, or waits for it, each of its steps runs once. Each build has a part in the work.
func TestEnginesOfSeveralBuilds(t *testing.T) {
	t.Parallel()
	const runs = 12
	s := newTrips(t, migrated(t))
	s.meet = meeting(t, "1", "2") // the engines of build 1 have room for fewer runs
	var engines []*workflow.Engine
	for _, build := range []string{"1", "1", "2"} {
		engines = append(engines, s.engine(t, server.url, build))
	}
	var wg sync.WaitGroup
	for i := range runs {
		wg.Go(func() {
			begins, sends, waits := engines[i%3], engines[(i+1)%3], engines[(i+2)%3]
			h, err := s.parent.Start(t.Context(), begins, fmt.Sprint(i), i)
			if err == nil {
				err = s.signal.Send(t.Context(), sends, h.Run(), 1, "once")
			}
			if err == nil {
				h, err = s.parent.Handle(t.Context(), waits, fmt.Sprint(i))
			}
			if err != nil {
				t.Errorf("run %d: %v", i, err)
				return
			}
			if out, err := h.Result(t.Context()); err != nil || out != i {
				t.Errorf("run %d: result %d, error %v", i, out, err)
			}
		})
	}
	wg.Wait()
	s.once(t, runs)
	for _, e := range engines {
		require.NoError(t, e.Check(t.Context()))
	}
}

// Rule: if connections break before or after a COMMIT while runs commit, no step runs twice, and no
// transaction of the app takes effect twice.
func TestConnectionsBreakAmidCheckpoints(t *testing.T) {
	const runs = 12
	proxy := newCutter(t)
	s := newTrips(t, migrated(t))
	e := s.engine(t, proxy.url, "1")
	var handles []*workflow.Handle[int]
	cuts := 0
	cut := func() { // at the next commit, before it and after it in turn
		if proxy.before.Load() || proxy.after.Load() {
			return
		}
		cuts++
		proxy.before.Store(cuts%2 == 0)
		proxy.after.Store(cuts%2 == 1)
	}
	for i := range runs {
		cut()
		h, err := s.parent.Start(t.Context(), e, fmt.Sprint(i), i)
		require.NoError(t, err)
		cut()
		require.NoError(t, s.signal.Send(t.Context(), e, h.Run(), 1, "once"))
		handles = append(handles, h)
	}
	for i, h := range handles {
		cut()
		out, err := h.Result(t.Context())
		require.NoError(t, err)
		require.Equal(t, i, out)
	}
	require.Greater(t, cuts, runs)
	s.once(t, runs)
	require.NoError(t, e.Check(t.Context()))
}

// migrated returns the name of a schema with the tables of a queue.
func migrated(t *testing.T) string {
	schema := newSchema(t)
	q, err := postgres.Open(t.Context(), server.url, &postgres.Options{Schema: schema, Logger: hclog.NewNullLogger()})
	require.NoError(t, err)
	require.NoError(t, q.Close())
	return schema
}
