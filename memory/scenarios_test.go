package memory_test

import (
	"context"
	"maps"
	"os"
	"sync"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/scenario"
	"github.com/gopawl/pawl/memory"
	"github.com/gopawl/pawl/workflow"
)

var _ workflow.Store = (*memory.Queue)(nil)

// TestScenarios proves the promises of workflows that do not need the death of a process. The queue
// outlives the programs that open it.
func TestScenarios(t *testing.T) {
	scenario.FewerSeeds(t)
	var mu sync.Mutex
	all := make(map[string]*store)
	scenario.Run(t, scenario.Store{Volatile: true, Without: without(), Open: func(t testing.TB, path string, o scenario.Options) scenario.Queue {
		mu.Lock()
		defer mu.Unlock()
		s := all[path]
		if s == nil {
			s = &store{counters: make(map[string]uint64)}
			s.Queue = memory.New(&memory.Options{Now: o.Now, MaxCrashes: o.MaxCrashes, Logger: hclog.NewNullLogger()})
			all[path] = s
			t.Cleanup(func() { _ = s.Close() })
		}
		s.ForgetTurns()
		s.Recover()
		return &program{client: newClient(s.Queue), t: t, s: s}
	}})
}

// without returns the scenarios to leave out, with the reasons.
func without() map[string]string {
	const killed, long = "the jobs end with their process", "it has many thousand rows; set PAWL_SLOW_TESTS=1 to run it"
	names := map[string]string{
		"Scenario05KilledAnywhere":               killed,
		"Scenario42KilledWhileAJournalIsRemoved": killed,
		"KilledWhileStartsWait":                  killed,
		"Scenario34TakeUnderWay":                 "no two mutations share a commit",
	}
	if os.Getenv("PAWL_SLOW_TESTS") != "" {
		return names
	}
	for _, name := range []string{
		"ReviewFullJournalIsUndone", "Scenario30Sleepers", "Scenario37SpinningEndsWithItsRefusal",
		"Scenario37SpinningOverBranchesIsEnded", "Scenario41BranchesAndSignals", "Scenario41Journal",
		"Scenario41Published", "Scenario41SpinningInAFullJournalIsEnded",
	} {
		names[name] = long
	}
	return names
}

// store is a queue with counters of the app.
type store struct {
	*memory.Queue
	counters map[string]uint64 // replaced by each transaction that changes it
	commits  int
}

// program is one life of a program that uses a store.
type program struct {
	*client
	t testing.TB
	s *store
}

// Abilities implements [driver.Able]. Only one program at a time uses a store.
func (p *program) Abilities() pawl.Ability { return p.s.Abilities() }

// Done implements [workflow.Store].
func (p *program) Done() <-chan struct{} { return p.open.Done() }

// Counts implements [scenario.Queue].
func (p *program) Counts(ctx context.Context) (map[string]pawl.Counts, error) {
	return counts(ctx, p.s.Queue)
}

// Check implements [scenario.Queue]. There is nothing to check.
func (p *program) Check(context.Context) error { return nil }

// Damage implements [scenario.Queue].
func (p *program) Damage(context.Context, pawl.ID) error {
	p.t.Skip("memory is not damaged")
	return nil
}

// Crash implements [scenario.Queue].
func (p *program) Crash() { p.t.Error("a queue in memory cannot crash within a commit") }

// view runs fn in a mutation that changes nothing, beside which nothing changes.
func (p *program) view(ctx context.Context, fn func()) error {
	return p.client.Mutate(ctx, mutation{check: func(driver.Ops) error { fn(); return nil }}, 0)
}

// Counters implements [scenario.Queue].
func (p *program) Counters(ctx context.Context) (all map[string]uint64, err error) {
	return all, p.view(ctx, func() { all = p.s.counters })
}

// Commits implements [scenario.Queue].
func (p *program) Commits(ctx context.Context) (n int, err error) {
	err = p.view(ctx, func() { n = p.s.commits })
	return n, err
}

// Mutate implements [workflow.Store].
func (p *program) Mutate(ctx context.Context, m driver.Mutation, size int) error {
	return p.client.Mutate(ctx, mutation{
		check: func(ops driver.Ops) error {
			if p.open.Err() != nil {
				return pawl.ErrClosed // it waited for its turn for too long
			}
			return m.Check(ops)
		},
		apply: func(w driver.Writer) error {
			w.OnCommit(func() { p.s.commits++ })
			return m.Apply(w)
		},
	}, size)
}

// Update implements [workflow.Transactor] by a mutation: the app runs in its Check.
func (p *program) Update(ctx context.Context, fn func(scenario.Tx) error) error {
	var panicked any
	app := new(tx)
	err := p.Mutate(ctx, mutation{
		check: func(ops driver.Ops) (err error) {
			defer func() {
				if panicked = recover(); panicked != nil {
					err = pawl.ErrClosed // which nobody reads
				}
			}()
			app.ops, app.counters = ops, maps.Clone(p.s.counters)
			return fn(app)
		},
		apply: func(w driver.Writer) error {
			for _, m := range app.mutations {
				if err := m.Apply(w); err != nil {
					return err
				}
			}
			for _, fn := range app.onCommit {
				w.OnCommit(fn)
			}
			w.OnCommit(func() { p.s.counters = app.counters })
			return nil
		},
	}, 0)
	if panicked != nil {
		panic(panicked)
	}
	return err
}

// MutateTx implements [workflow.Transactor].
func (p *program) MutateTx(app scenario.Tx, m driver.Mutation) error {
	err := m.Check(app.(*tx).ops)
	if err == nil {
		app.(*tx).mutations = append(app.(*tx).mutations, m)
	}
	return err
}

// In implements [workflow.Transactor].
func (p *program) In(app scenario.Tx) pawl.Enqueuer { return app.(*tx) }

// tx is a transaction of the app.
type tx struct {
	ops       driver.Ops
	counters  map[string]uint64
	mutations []driver.Mutation
	onCommit  []func()
}

// Count implements [scenario.Tx].
func (tx *tx) Count(name string) (uint64, error) {
	tx.counters[name]++
	return tx.counters[name], nil
}

// OnCommit implements [scenario.Tx].
func (tx *tx) OnCommit(fn func()) { tx.onCommit = append(tx.onCommit, fn) }

// Enqueue implements [pawl.Enqueuer].
func (tx *tx) Enqueue(_ context.Context, jobs ...*pawl.Envelope) ([]pawl.Enqueued, error) {
	return tx.ops.Enqueue(jobs...)
}

// mutation is a mutation of functions. A nil function does nothing.
type mutation struct {
	check func(driver.Ops) error
	apply func(driver.Writer) error
}

func (m mutation) Check(ops driver.Ops) error {
	if m.check == nil {
		return nil
	}
	return m.check(ops)
}

func (m mutation) Apply(w driver.Writer) error {
	if m.apply == nil {
		return nil
	}
	return m.apply(w)
}
