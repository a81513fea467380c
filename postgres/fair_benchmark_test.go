package postgres_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/postgres"
)

// In BenchmarkFair 64 producers store jobs of a thousand keys, and 16 workers drain them, alternately in a queue with
// another limit and in a fair queue. The metrics are the medians of the rates of the fair queue, divided by those of
// the other queue.
func BenchmarkFair(b *testing.B) {
	const jobs, keys, producers, workers = 6400, 1000, 64, 16
	limits := []pawl.Limits{{Running: 1_000_000}, {Running: 1_000_000, Fair: true}}
	var enqueued, drained [2][]time.Duration
	for b.Loop() {
		for i, l := range limits {
			q := open(b, newSchema(b), declaring(l), noPoll)
			enqueued[i] = append(enqueued[i], together(producers, func(n int) {
				for k := range jobs / producers {
					_, err := q.Enqueue(b.Context(), keyed("k", fmt.Sprint((n*jobs/producers+k)%keys)))
					require.NoError(b, err)
				}
			}))
			drained[i] = append(drained[i], together(workers, func(int) { drain(b, q) }))
		}
	}
	ratio := func(all [2][]time.Duration) float64 {
		slices.Sort(all[0])
		slices.Sort(all[1])
		return float64(all[0][len(all[0])/2]) / float64(all[1][len(all[1])/2])
	}
	b.ReportMetric(ratio(enqueued), "enqueue/other")
	b.ReportMetric(ratio(drained), "drain/other")
}

// together returns how long n goroutines take.
func together(n int, fn func(i int)) time.Duration {
	begun := time.Now()
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { fn(i) })
	}
	wg.Wait()
	return time.Since(begun)
}

// drain runs jobs, ten at a time, until there are none.
func drain(b *testing.B, q *postgres.Queue) {
	for {
		leases, err := q.Fetch(b.Context(), pawl.Request{Max: 10, Wait: pawl.WaitNot})
		if errors.Is(err, pawl.ErrEmpty) {
			return
		}
		require.NoError(b, err)
		settlements := make([]pawl.Settlement, len(leases))
		for i, l := range leases {
			settlements[i] = l.Ack()
		}
		require.NoError(b, q.Settle(b.Context(), settlements...))
	}
}
