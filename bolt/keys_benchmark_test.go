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
// jobs from each of ten queues in memory, 64 at a time: without keys; with a limit for each of a thousand
// keys; with such keys in order; with a rate for each of them; and beside a hundred thousand jobs that stay. These are
// blocked jobs of one other key, or of as many other keys, which have a leased job each; leased jobs without a key, or of
// as many keys; or blocked jobs of as many keys, which a dead job holds, or which have used up their rate. Each metric is
// the median rate of a queue, as a part of that of another one: the first for keyed and ordered, keyed for those with a
// limit, ordered for the one with dead jobs, and rated for the one whose keys have used up their rate. Blocked keys are
// compared with leased ones, too. For those beside other jobs, the rate of the fetches alone has a metric. A rate is jobs in
// the processor time of the process, since other processes change that less than the time that passes.
func BenchmarkKeys(b *testing.B) {
	const jobs, keys, blockedJobs = 6400, 1000, 100_000
	const all = 1000 // the starts that a key has in the time of the benchmark
	one := pawl.Limits{RunningPerKey: 1}
	rate := pawl.Limits{RatePerKey: pawl.Rate{Starts: 2*all + 200, Per: 366 * 24 * time.Hour, Burst: all, MaxCost: all}}
	open := func(limits pawl.Limits) drained {
		q, err := bolt.Open(filepath.Join(memdir.New(b), "jobs.db"), &bolt.Options{
			Logger: hclog.NewNullLogger(), Lease: time.Hour, Limits: map[string]pawl.Limits{pawl.DefaultQueue: limits}})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { q.Close() })
		return drained{b: b, q: q}
	}
	names := []string{"plain", "keyed", "ordered", "blocked", "blockedkeys", "leases", "leasedkeys", "heldkeys", "rated", "ratedkeys"}
	queues := map[string]drained{"plain": open(pawl.Limits{}), "keyed": open(one), "ordered": open(pawl.Limits{InOrder: pawl.OrderContinue}),
		"blocked": open(one), "blockedkeys": open(one), "leases": open(one), "leasedkeys": open(one), "heldkeys": open(pawl.Limits{InOrder: pawl.OrderHold}), "rated": open(rate), "ratedkeys": open(rate)}
	busy := func(i int) string { return fmt.Sprint("busy ", i) }
	queues["blocked"].store(blockedJobs+1, func(int) string { return "busy" })
	queues["blocked"].fetch(1)
	queues["leases"].store(blockedJobs, func(int) string { return "" })
	for _, name := range []string{"blockedkeys", "leasedkeys", "heldkeys", "ratedkeys"} {
		q := queues[name]
		if name == "ratedkeys" {
			q.cost = all
		}
		q.store(blockedJobs, busy)
	}
	for _, name := range []string{"blockedkeys", "leases", "leasedkeys", "heldkeys", "ratedkeys"} {
		for left := blockedJobs; left > 0; {
			leases := queues[name].fetch(1000)
			left -= len(leases)
			switch name {
			case "heldkeys":
				queues[name].settle(leases, func(l *pawl.Lease) pawl.Settlement { return l.Abandon(pawl.ReasonPermanent, nil) })
			case "ratedkeys":
				queues[name].settle(leases, (*pawl.Lease).Ack)
			}
		}
	}
	for _, name := range []string{"blockedkeys", "heldkeys", "ratedkeys"} {
		queues[name].store(blockedJobs, busy) // behind the jobs that are leased, dead, or done
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
	for _, pair := range [][2]string{{"blocked", "keyed"}, {"blockedkeys", "keyed"}, {"leases", "keyed"}, {"leasedkeys", "keyed"},
		{"blockedkeys", "leasedkeys"}, {"heldkeys", "ordered"}, {"ratedkeys", "rated"}} {
		b.ReportMetric(median(pair[1])/median(pair[0]), pair[0]+"/"+pair[1])
		b.ReportMetric(medianOf(fetching[pair[1]])/medianOf(fetching[pair[0]]), pair[0]+"/"+pair[1]+"-fetch")
	}
	b.ReportMetric(median("plain")/1000/jobs, "µs/plain-job")
}

func medianOf(all []time.Duration) float64 {
	slices.Sort(all)
	return float64(all[len(all)/2])
}

// drained is a queue of a benchmark.
type drained struct {
	b    *testing.B
	q    *bolt.Queue
	cost int // of a job; 0 means 1
}

func (d drained) store(n int, key func(i int) string) {
	list := make([]*pawl.Envelope, 0, 1000)
	for i := range n {
		list = append(list, &pawl.Envelope{Kind: "k", Key: key(i), Cost: d.cost, Payload: []byte("\xc0")})
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
		d.settle(leases, (*pawl.Lease).Ack)
		jobs -= len(leases)
	}
	return fetching
}

func (d drained) settle(leases []*pawl.Lease, how func(*pawl.Lease) pawl.Settlement) {
	list := make([]pawl.Settlement, 0, len(leases))
	for _, l := range leases {
		list = append(list, how(l))
	}
	if err := d.q.Settle(d.b.Context(), list...); err != nil {
		d.b.Fatal(err)
	}
}
