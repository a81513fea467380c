package postgres_test

import (
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/withid"
	"github.com/gopawl/pawl/postgres"
)

// declaring has a client declare the limits of the default queue.
func declaring(l pawl.Limits) func(*postgres.Options) {
	return func(o *postgres.Options) { o.Limits = map[string]pawl.Limits{pawl.DefaultQueue: l} }
}

// limitsOf returns the limits of the default queue that are in force, and those that are declared.
func limitsOf(t testing.TB, q *postgres.Queue) (pawl.Limits, *pawl.Limits) {
	t.Helper()
	stats, err := q.Stats(t.Context())
	require.NoError(t, err)
	return stats.Queues[0].Limits, stats.Queues[0].Declared
}

// Rule: limits that an operator sets stay in force whatever a process declares that opens the queue later. A reset returns to what was
// declared last, by whichever process.
func TestOperatorsLimitsBesideDeclarations(t *testing.T) {
	t.Parallel()
	schema := newSchema(t)
	q := open(t, schema, declaring(pawl.Limits{Running: 1}))
	require.NoError(t, withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "k"}))
	set := pawl.Limits{Running: 2, RatePerKey: pawl.Rate{Starts: 3, Per: pawl.MinPer, Burst: 2}}
	require.NoError(t, q.SetLimits(t.Context(), pawl.DefaultQueue, &set))
	for _, later := range []pawl.Limits{{Running: 7}, {}, {RunningPerKey: 4}} {
		open(t, schema, declaring(later))
		open(t, schema) // declares nothing
		inForce, declared := limitsOf(t, q)
		require.Equal(t, set, inForce)
		require.Equal(t, &later, declared)
	}
	require.NoError(t, open(t, schema).SetLimits(t.Context(), pawl.DefaultQueue, nil))
	inForce, declared := limitsOf(t, q)
	require.Equal(t, pawl.Limits{RunningPerKey: 4}, inForce)
	require.Nil(t, declared)
}

// Rule: if an operator and processes set limits at the same time, none undoes the change of another: the operator's
// limits are in force, and one of the declarations is stored beside them.
func TestOperatorsLimitsWhileProcessesDeclare(t *testing.T) {
	t.Parallel()
	schema := newSchema(t)
	q := open(t, schema)
	require.NoError(t, withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "k"}))
	for n := range 5 {
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				opts := &postgres.Options{Schema: schema, Poll: postgres.NoPoll, Logger: hclog.NewNullLogger()}
				declaring(pawl.Limits{Running: 10 + i})(opts)
				process, err := postgres.Open(t.Context(), server.url, opts)
				if err == nil {
					err = process.Close()
				}
				if err != nil {
					t.Errorf("process %d: %v", i, err)
				}
			})
		}
		set := pawl.Limits{Running: 1 + n}
		wg.Go(func() {
			if err := q.SetLimits(t.Context(), pawl.DefaultQueue, &set); err != nil {
				t.Errorf("set limits: %v", err)
			}
		})
		wg.Wait()
		inForce, declared := limitsOf(t, q)
		require.Equal(t, set, inForce)
		require.NotNil(t, declared)
		require.NoError(t, q.SetLimits(t.Context(), pawl.DefaultQueue, nil))
		inForce, _ = limitsOf(t, q)
		require.GreaterOrEqual(t, inForce.Running, 10)
	}
}

// Rule: a wait for a job ends immediately when another process raises a limit.
func TestFetchHearsOfRaisedLimits(t *testing.T) {
	schema := newSchema(t)
	far := func(o *postgres.Options) { o.Poll, o.Lease = time.Hour, time.Hour } // so that nothing else ends the wait
	q, other := open(t, schema, declaring(pawl.Limits{Running: 1}), far), open(t, schema, far)
	lease(t, q, &pawl.Envelope{Kind: "k"})
	require.NoError(t, withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "k"}))
	got := make(chan error)
	go func() {
		_, err := q.Fetch(patient(t), pawl.Request{Max: 1})
		got <- err
	}()
	require.NoError(t, other.SetLimits(t.Context(), pawl.DefaultQueue, &pawl.Limits{}))
	require.NoError(t, <-got)
}
