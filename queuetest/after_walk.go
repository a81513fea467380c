package queuetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/gopawl/pawl"
)

// needing maps each job that waits to what it waits for: true for any end.
type needing map[pawl.ID]map[pawl.ID]bool

// ended notes that a job has succeeded or is dead.
func (n needing) ended(id pawl.ID, success bool) {
	for _, needs := range n {
		if anyEnd, there := needs[id]; there && (success || anyEnd) {
			delete(needs, id)
		}
	}
}

// walkAfter takes random steps over jobs that wait for each other.
func (f *fixture) walkAfter(seed uint64) {
	random := rand.New(rand.NewPCG(seed, 0))
	waits := make(needing)
	var leases []*pawl.Lease
	for step := range 120 {
		jobs := f.list(pawl.Filter{})
		var dead, waiting []pawl.ID
		for _, e := range jobs {
			switch e.State {
			case pawl.Dead:
				dead = append(dead, e.ID)
			case pawl.Ready, pawl.Delayed:
				waiting = append(waiting, e.ID)
			}
		}
		f.compareAfter(jobs, waits, fmt.Sprint("seed ", seed, ", step ", step))
		switch n := random.IntN(12); {
		case n < 4:
			f.walkEnqueue(random, jobs, waits)
		case n < 6:
			leases = append(leases, f.fetch(3)...)
		case n < 9 && len(leases) > 0:
			l := leases[0]
			if leases = leases[1:]; random.IntN(3) == 0 {
				f.abandon(l)
				waits.ended(l.ID, false)
			} else {
				f.ack(l)
				waits.ended(l.ID, true)
			}
		case n == 9 && len(dead) > 0:
			f.retry(dead[random.IntN(len(dead))], false)
		case n == 10 && len(dead) > 0 && random.IntN(2) == 0:
			id := dead[random.IntN(len(dead))]
			f.remove(id)
			delete(waits, id)
		case n == 10 && len(waiting) > 0:
			id := waiting[random.IntN(len(waiting))]
			f.cancel(id)
			waits.ended(id, false)
		case n == 11 && len(leases) == 0 && f.config.Persists:
			f.restart()
		case n == 11:
			f.pass(time.Second)
		}
	}
}

// walkEnqueue enqueues a job that waits for some of the jobs that are there.
func (f *fixture) walkEnqueue(random *rand.Rand, jobs []*pawl.Envelope, waits needing) {
	e := &pawl.Envelope{ID: pawl.NewID(time.Now()), Kind: "k", Delay: time.Duration(random.IntN(3)) * time.Second}
	e.Retain = time.Duration(random.IntN(2)) * time.Minute
	needs := make(map[pawl.ID]bool)
	for range min(len(jobs), random.IntN(4)) {
		p := jobs[random.IntN(len(jobs))]
		anyEnd := random.IntN(2) == 0
		if anyEnd {
			e.AfterAny = append(e.AfterAny, p.ID)
		} else {
			e.After = append(e.After, p.ID)
		}
		if p.State != pawl.Completed && !(anyEnd && p.State == pawl.Dead) {
			before, there := needs[p.ID]
			needs[p.ID] = anyEnd && (!there || before)
		}
	}
	f.enqueueOne(e, nil)
	waits[e.ID] = needs
}

// compareAfter compares what jobs wait for.
func (f *fixture) compareAfter(jobs []*pawl.Envelope, waits needing, when string) {
	f.Helper()
	blocked, ready := 0, 0
	for _, e := range jobs {
		needs := waits[e.ID]
		for id, anyEnd := range needs {
			named := e.After
			if anyEnd {
				named = e.AfterAny
			}
			equal(f, slices.Contains(named, id), true, when+": it says that it waits for another")
		}
		equal(f, len(e.After)+len(e.AfterAny), len(needs), when+": prerequisites")
		if e.State == pawl.Ready {
			ready++
		}
		if e.State == pawl.Ready && len(needs) > 0 {
			blocked++
		}
		equal(f, e.State == pawl.Leased && len(needs) > 0, false, when+": a job runs before its prerequisites")
	}
	equal(f, f.blocked(pawl.DefaultQueue), blocked, when+": blocked jobs")
	equal(f, len(f.list(pawl.Filter{State: pawl.Ready})), ready, when+": ready jobs of a list")
}
