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

// BenchmarkKeys measures what keys cost, as ratios within one run. An operation drains the same number of
// jobs from each of six queues in memory, 64 at a time: without keys; with a limit for each of a thousand
// keys; with such keys in order; and with such a limit, beside a hundred thousand blocked jobs, of one
// other key or of as many other keys, which have a leased job each, or beside that many leased jobs without
// a key. Each metric is the median rate of a queue, as a part of that of another one: the first for keyed and
// ordered, and keyed for the others. For these, the rate of the fetches alone has a metric, too. A rate is jobs
// in the processor time of the process, since other processes change that less than the time that passes.
func BenchmarkKeys(b *testing.B) {
	const jobs, keys, blockedJobs = 6400, 1000, 100_000
	one := pawl.Limits{RunningPerKey: 1}
	open := func(limits pawl.Limits) drained {
		q, err := bolt.Open(filepath.Join(memdir.New(b), "jobs.db"), &bolt.Options{
			Logger: hclog.NewNullLogger(), Lease: time.Hour, Limits: map[string]pawl.Limits{pawl.DefaultQueue: limits}})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { q.Close() })
		return drained{b, q}
	}
	names := []string{"plain", "keyed", "ordered", "blocked", "blockedkeys", "leases"}
	queues := map[string]drained{"plain": open(pawl.Limits{}), "keyed": open(one), "ordered": open(pawl.Limits{InOrder: pawl.OrderContinue}),
		"blocked": open(one), "blockedkeys": open(one), "leases": open(one)}
	queues["blocked"].store(blockedJobs+1, func(int) string { return "busy" })
	queues["blocked"].fetch(1)
	for range 2 { // the first job of each key is leased, and blocks the second one
		queues["blockedkeys"].store(blockedJobs, func(i int) string { return fmt.Sprint("busy ", i) })
	}
	queues["leases"].store(blockedJobs, func(int) string { return "" })
	for _, name := range []string{"blockedkeys", "leases"} {
		for left := blockedJobs; left > 0; {
			left -= len(queues[name].fetch(1000))
		}
	}
	took, fetching := make(map[string][]time.Duration), make(map[string][]time.Duration)
	b.ResetTimer()
	for b.Loop() {
		for _, name := range names {
			queues[name].store(jobs, func(i int) string {
				if name == "plain" {
					return ""
				}
				return fmt.Sprint("key ", i%keys)
			})
			begun := usage.CPU()
			fetching[name] = append(fetching[name], queues[name].drain(jobs))
			took[name] = append(took[name], usage.CPU()-begun)
		}
	}
	median := func(name string) float64 { return medianOf(took[name]) }
	b.ReportMetric(median("plain")/median("keyed"), "keyed/plain")
	b.ReportMetric(median("plain")/median("ordered"), "ordered/plain")
	for _, name := range []string{"blocked", "blockedkeys", "leases"} {
		b.ReportMetric(median("keyed")/median(name), name+"/keyed")
		b.ReportMetric(medianOf(fetching["keyed"])/medianOf(fetching[name]), name+"/keyed-fetch")
	}
	b.ReportMetric(median("plain")/1000/jobs, "µs/plain-job")
}

func medianOf(all []time.Duration) float64 {
	slices.Sort(all)
	return float64(all[len(all)/2])
}

// drained is a queue of a benchmark.
type drained struct {
	b *testing.B
	q *bolt.Queue
}

func (d drained) store(n int, key func(i int) string) {
	list := make([]*pawl.Envelope, 0, 1000)
	for i := range n {
		list = append(list, &pawl.Envelope{Kind: "k", Key: key(i), Payload: []byte("\xc0")})
		if len(list) == cap(list) || i == n-1 {
			if _, err := d.q.Enqueue(d.b.Context(), list...); err != nil {
				d.b.Fatal(err)
			}
			list = list[:0]
		}
	}
}

func (d drained) fetch(n int) []*pawl.Lease {
	leases, err := d.q.Fetch(d.b.Context(), pawl.Request{Max: n, Wait: pawl.WaitNot})
	if err != nil {
		d.b.Fatal(err)
	}
	return leases
}

// drain fetches jobs and acks them. It returns the processor time of the fetches.
func (d drained) drain(jobs int) (fetching time.Duration) {
	for jobs > 0 {
		begun := usage.CPU()
		leases := d.fetch(64)
		fetching += usage.CPU() - begun
		var acks []pawl.Settlement
		for _, l := range leases {
			acks = append(acks, l.Ack())
		}
		if err := d.q.Settle(d.b.Context(), acks...); err != nil {
			d.b.Fatal(err)
		}
		jobs -= len(leases)
	}
	return fetching
}
