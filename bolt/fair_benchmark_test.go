package bolt_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/internal/memdir"
	"github.com/gopawl/pawl/internal/torture/usage"
)

func openFair(b *testing.B, fair bool) drained {
	q, err := bolt.Open(filepath.Join(memdir.New(b), "jobs.db"), &bolt.Options{Logger: hclog.NewNullLogger(), Lease: time.Hour,
		Limits: map[string]pawl.Limits{pawl.DefaultQueue: {Fair: fair}}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { q.Close() })
	return drained{b: b, q: q}
}

// BenchmarkTenBesideAMillion stores a million jobs of one key. An operation enqueues ten jobs of another key, and
// runs jobs one after the other until those are done. The metric is the most starts that this took. More than
// 20 end the benchmark.
func BenchmarkTenBesideAMillion(b *testing.B) {
	q := openFair(b, true)
	q.store(1_000_000, func(int) string { return "many" })
	most, keys := 0, 0
	for b.Loop() {
		keys++
		few := fmt.Sprint("few ", keys)
		q.store(10, func(int) string { return few })
		starts := 0
		for done := 0; done < 10; starts++ {
			l := q.fetch(1)[0]
			if err := q.q.Settle(b.Context(), l.Ack()); err != nil {
				b.Fatal(err)
			}
			if l.Key == few {
				done++
			}
		}
		if most = max(most, starts); most > 20 {
			b.Fatalf("ten jobs took %d starts", most)
		}
	}
	b.ReportMetric(float64(most), "starts")
}

// BenchmarkFair measures what turns cost: the rate of a queue whose keys take turns, as a part of that of one
// without keys and limits, by the processor time of the process. An operation enqueues and drains the same jobs of
// each, 64 at a time, with a thousand keys.
func BenchmarkFair(b *testing.B) {
	const jobs, keys = 6400, 1000
	queues := []drained{openFair(b, false), openFair(b, true)}
	var took [2][]time.Duration
	for b.Loop() {
		for i, q := range queues {
			begun := usage.CPU()
			q.store(jobs, func(k int) string {
				if i == 0 {
					return ""
				}
				return fmt.Sprint("key ", k%keys)
			})
			q.drain(jobs)
			took[i] = append(took[i], usage.CPU()-begun)
		}
	}
	median := func(all []time.Duration) float64 {
		slices.Sort(all)
		return float64(all[len(all)/2])
	}
	b.ReportMetric(median(took[0])/median(took[1]), "fair/plain")
}
