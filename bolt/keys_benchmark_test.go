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
)

// BenchmarkKeys measures what keys cost, as ratios within one run. An operation drains the same number of
// jobs from four queues of one file in memory, 64 at a time: without keys; with a limit for each of a thousand
// keys; with such keys in order; and with such a limit, beside a hundred thousand blocked jobs of one
// other key. Each metric is the median rate of a queue, as a part of that of another one: the first for
// keyed and ordered, and keyed for blocked.
func BenchmarkKeys(b *testing.B) {
	const jobs, keys, blockedJobs = 6400, 1000, 100_000
	one := pawl.Limits{RunningPerKey: 1}
	q, err := bolt.Open(filepath.Join(memdir.New(b), "jobs.db"), &bolt.Options{Logger: hclog.NewNullLogger(), Limits: map[string]pawl.Limits{
		"keyed": one, "blocked": one, "ordered": {InOrder: pawl.OrderContinue},
	}})
	if err != nil {
		b.Fatal(err)
	}
	defer q.Close()
	store := func(queue string, n int, key func(i int) string) {
		list := make([]*pawl.Envelope, 0, 1000)
		for i := range n {
			list = append(list, &pawl.Envelope{Kind: "k", Queue: queue, Key: key(i), Payload: []byte("\xc0")})
			if len(list) == cap(list) || i == n-1 {
				if _, err := q.Enqueue(b.Context(), list...); err != nil {
					b.Fatal(err)
				}
				list = list[:0]
			}
		}
	}
	fetch := func(queue string, n int) []*pawl.Lease {
		leases, err := q.Fetch(b.Context(), pawl.Request{Queues: []string{queue}, Max: n, Wait: pawl.WaitNot})
		if err != nil {
			b.Fatal(err)
		}
		return leases
	}
	store("blocked", blockedJobs+1, func(int) string { return "busy" })
	fetch("blocked", 1)

	names := []string{"plain", "keyed", "ordered", "blocked"}
	took := make(map[string][]time.Duration)
	b.ResetTimer()
	for b.Loop() {
		for _, queue := range names {
			store(queue, jobs, func(i int) string {
				if queue == "plain" {
					return ""
				}
				return fmt.Sprint("key ", i%keys)
			})
			begun := time.Now()
			for left := jobs; left > 0; {
				leases := fetch(queue, 64)
				var acks []pawl.Settlement
				for _, l := range leases {
					acks = append(acks, l.Ack())
				}
				if err := q.Settle(b.Context(), acks...); err != nil {
					b.Fatal(err)
				}
				left -= len(leases)
			}
			took[queue] = append(took[queue], time.Since(begun))
		}
	}
	median := func(queue string) float64 {
		slices.Sort(took[queue])
		return float64(took[queue][len(took[queue])/2])
	}
	b.ReportMetric(median("plain")/median("keyed"), "keyed/plain")
	b.ReportMetric(median("plain")/median("ordered"), "ordered/plain")
	b.ReportMetric(median("keyed")/median("blocked"), "blocked/keyed")
}
