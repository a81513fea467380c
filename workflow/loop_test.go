package workflow_test

import (
	"context"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/internal/memdir"
	"github.com/gopawl/pawl/internal/race"
	"github.com/gopawl/pawl/internal/torture/usage"
	"github.com/gopawl/pawl/worker"
	"github.com/gopawl/pawl/workflow"
)

// tenths is how many parts of a loop are compared.
const tenths = 10

// loop runs a loop of steps in one run. It calls mark before the first step and after each tenth of
// them.
func loop(tb testing.TB, steps int, mark func()) {
	q, err := bolt.Open(filepath.Join(memdir.New(tb), "loop.db"), &bolt.Options{Logger: hclog.NewNullLogger()})
	require.NoError(tb, err)
	defer q.Close()
	e := workflow.Open(q, &workflow.Options{Logger: hclog.NewNullLogger()})
	flow := workflow.Define("loop", func(r *workflow.Run, n int) (int, error) {
		mark()
		for i := range n {
			if _, err := workflow.Step(r, "step", func(context.Context) (int, error) { return i, nil }); err != nil {
				return 0, err
			}
			if (i+1)%(n/tenths) == 0 {
				mark()
			}
		}
		return n, nil
	})
	w := worker.New(q, &worker.Options{Logger: hclog.NewNullLogger()})
	require.NoError(tb, e.Handle(tb.Context(), w, flow))
	_, err = flow.Start(tb.Context(), e, "1", steps)
	require.NoError(tb, err)
	require.NoError(tb, w.Drain(tb.Context(), pawl.WaitDrained))
}

// Rule: the steps at the end of a loop that fills the journal allocate as much as those at its
// start, within a fifth.
func TestLoopCostsTheSameToItsEnd(t *testing.T) {
	var at []uint64
	loop(t, race.Fewer(workflow.MaxEntries), func() {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		at = append(at, m.Mallocs)
	})
	require.Len(t, at, tenths+1)
	first, last := at[1]-at[0], at[tenths]-at[tenths-1]
	require.InDelta(t, 1, float64(last)/float64(first), 0.2, "allocations of the first tenth: %d; of the last: %d", first, last)
}

// BenchmarkLoop measures the processor time of the first and the last thousand of 10 000 steps in one
// run, as the medians of all loops. The time of a clock says little on a busy machine.
func BenchmarkLoop(b *testing.B) {
	var first, last []time.Duration
	for b.Loop() {
		var at []time.Duration
		loop(b, workflow.MaxEntries, func() { at = append(at, usage.CPU()) })
		first, last = append(first, at[1]-at[0]), append(last, at[tenths]-at[tenths-1])
	}
	median := func(all []time.Duration) time.Duration {
		slices.Sort(all)
		return all[len(all)/2]
	}
	const steps = workflow.MaxEntries / tenths
	b.ReportMetric(float64(median(first).Microseconds())/steps, "µs/step-first")
	b.ReportMetric(float64(median(last).Microseconds())/steps, "µs/step-last")
	b.ReportMetric(median(last).Seconds()/median(first).Seconds(), "last/first")
}
