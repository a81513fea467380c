package oracle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
)

// limits are the limits of the queues that have some.
var limits = map[string]pawl.Limits{
	"b":       {Pool: pawl.Pool{Name: "shared", Running: 2}},
	"limited": {RunningPerKey: 2, Fair: true}, // no pool, which would hide a key with three jobs
	"ordered": {InOrder: pawl.OrderContinue, Fair: true},
	"held":    {InOrder: pawl.OrderHold, Pool: pawl.Pool{Name: "shared", Running: 3}},
}

// anyKey draws one of a few keys. Later it draws from other keys, since jobs of a workload hold many keys permanently.
func anyKey(id pawl.ID, r *rand.Rand) string {
	return fmt.Sprintf("%d-%d", made(id).UnixMilli()/100, r.IntN(4))
}

// keyOf returns the key of a job in its queue, "" for none.
func keyOf(e *pawl.Envelope) string {
	if e.Key == "" {
		return ""
	}
	return e.Queue + "/" + e.Key
}

func inOrder(e *pawl.Envelope) bool { return e.Key != "" && limits[e.Queue].InOrder != pawl.OrderNone }

// mostRunning is how many jobs of the key of a job may be leased at a time.
func mostRunning(e *pawl.Envelope) int { return cmp.Or(limits[e.Queue].RunningPerKey, 1) }

// pools count leased jobs by queue.
type pools map[string]int

// add counts a leased job of a queue. No queue of a pool may have more leases than its own number, and all queues
// together may not have more than the highest number. So the order in which simultaneous leases are counted does not
// matter.
func (p pools) add(queue string) error {
	pool := limits[queue].Pool
	if pool.Running == 0 {
		return nil
	}
	p[queue]++
	all, most := 0, 0
	for other, l := range limits {
		if l.Pool.Name == pool.Name {
			all, most = all+p[other], max(most, l.Pool.Running)
		}
	}
	if p[queue] > pool.Running || all > most {
		return fmt.Errorf("%d jobs of pool %q are leased, and it has a limit of %d; %d of them are of queue %s, which has a limit of %d",
			all, pool.Name, most, p[queue], queue, pool.Running)
	}
	return nil
}

// know records the state of a job, and whether it holds its key.
func (o *Oracle) know(id pawl.ID, k Known) {
	o.jobs[id] = k
	job := jobOf(id)
	switch key := keyOf(&job); {
	case k.Holds:
		o.holders[key] = id
	case o.holders[key] == id:
		delete(o.holders, key)
	}
}

// lease records a lease. During an operation on a job, its lease may already have ended. So only the other leases of
// the key certainly exist at the same time, and they must be within the limit.
func (o *Oracle) lease(id pawl.ID) error {
	job := jobOf(id)
	key := keyOf(&job)
	if inOrder(&job) {
		other, held := o.holders[key]
		if held && other != id && (o.under[other] == nil || outcome(o.under[other].verb, other, o.jobs[other]).Holds) {
			return fmt.Errorf("job %s was leased, and job %s holds key %q%s", id, other, key, o.amid(other))
		}
		k := o.jobs[id]
		k.Holds = true
		o.know(id, k)
	}
	o.leased[id] = leaseOf{job.Queue, key}
	running, taken := 0, make(pools)
	for other, of := range o.leased {
		if o.under[other] != nil {
			continue
		}
		if of.key == key {
			running++
		}
		if err := taken.add(of.queue); err != nil {
			return fmt.Errorf("job %s was leased: %w", id, err)
		}
	}
	if most := mostRunning(&job); key != "" && running > most {
		return fmt.Errorf("job %s was leased, and so %d jobs of key %q are, which has a limit of %d", id, running, key, most)
	}
	return nil
}

// hasTurn requires that a job has a tag if and only if it is ready or leased in a queue whose keys take turns.
func hasTurn(e *pawl.Envelope) error {
	if has := limits[e.Queue].Fair && (e.State == pawl.Ready || e.State == pawl.Leased); has != (e.FairTag != 0) {
		return fmt.Errorf("job %s of queue %s is %s, and has the tag %d", e.ID, e.Queue, e.State, e.FairTag)
	}
	return nil
}

// withinLimits reads a file before a queue opens it, so the leases are those of the last commit. No key and no pool may
// have more leases than its limit, and at most one job may hold a key.
func withinLimits(ctx context.Context, path string) (err error) {
	r, err := bolt.OpenReader(path)
	if err != nil {
		return nil // opening the queue reports the error
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	running, holding, taken := make(map[string]int), make(map[string]int), make(pools)
	for e, err := range r.Jobs(ctx, pawl.Filter{}) {
		if err != nil {
			return err
		}
		if e.State == pawl.Leased {
			if err := taken.add(e.Queue); err != nil {
				return fmt.Errorf("the file: %w", err)
			}
		}
		key := keyOf(e)
		if key == "" {
			continue
		}
		if e.State == pawl.Leased {
			running[key]++
		}
		if e.HoldsKey {
			holding[key]++
		}
		if running[key] > mostRunning(e) || holding[key] > 1 {
			return fmt.Errorf("the file has %d leases of key %q, which has a limit of %d, and %d jobs hold the key", running[key], key, mostRunning(e), holding[key])
		}
	}
	return nil
}

// Drain acks all jobs of a queue that can be fetched. It requires that none stays blocked without a reason,
// that no key and no pool exceeds its limit, that the jobs of each key run in their order, and that keys take turns.
func Drain(ctx context.Context, q *bolt.Queue) error {
	d := drain{jobs: make(map[pawl.ID]*pawl.Envelope), turns: make(map[string][]*pawl.Envelope)}
	for e, err := range q.Jobs(ctx, pawl.Filter{}) {
		if err != nil {
			return err
		}
		d.add(e)
	}
	for key, jobs := range d.turns {
		slices.SortFunc(jobs, inTurn)
		if jobs[0].State != pawl.Ready { // it holds the key
			for _, e := range jobs {
				delete(d.jobs, e.ID)
			}
			delete(d.turns, key)
		}
	}
	for _, name := range Queues {
		if err := q.Resume(ctx, name); err != nil && !errors.Is(err, pawl.ErrNotFound) {
			return err
		}
	}
	for {
		leases, err := q.Fetch(ctx, pawl.Request{Queues: Queues, Max: 64, Wait: pawl.WaitNot})
		switch {
		case errors.Is(err, pawl.ErrEmpty):
			for id := range d.jobs {
				return fmt.Errorf("job %s is ready, nothing of its key is leased or holds it, and no fetch finds it: %+v", id, d.jobs[id])
			}
			return q.Check(ctx)
		case err != nil:
			return err
		}
		if err := errors.Join(d.fetched(leases), q.Settle(ctx, Acks(leases)...)); err != nil {
			return err
		}
	}
}

// drain is the remaining jobs of a queue.
type drain struct {
	jobs  map[pawl.ID]*pawl.Envelope  // jobs that must be fetched
	turns map[string][]*pawl.Envelope // the jobs of each key whose jobs run in order
}

// add adds a job. A job that holds its key keeps the others from running, even if it is not ready.
func (d *drain) add(e *pawl.Envelope) {
	if e.State == pawl.Ready {
		d.jobs[e.ID] = e
	}
	if inOrder(e) && (e.State == pawl.Ready || e.HoldsKey) {
		d.turns[keyOf(e)] = append(d.turns[keyOf(e)], e)
	}
}

// inTurn compares jobs of a key that run in order.
func inTurn(a, b *pawl.Envelope) int {
	switch {
	case a.HoldsKey:
		return -1
	case b.HoldsKey:
		return 1
	}
	return cmp.Or(a.NotBefore.Compare(b.NotBefore), cmp.Compare(a.Seq, b.Seq))
}

// fetched processes the jobs of one fetch.
func (d *drain) fetched(leases []*pawl.Lease) error {
	running, taken, last := make(map[string]int), make(pools), make(map[string]*pawl.Envelope)
	for _, l := range leases {
		e := d.jobs[l.ID]
		if e == nil {
			return fmt.Errorf("job %s was fetched, and must not be", l.ID)
		}
		delete(d.jobs, l.ID)
		if err := taken.add(e.Queue); err != nil {
			return fmt.Errorf("a fetch: %w", err)
		}
		key := keyOf(e)
		if running[key]++; key != "" && running[key] > mostRunning(e) {
			return fmt.Errorf("a fetch returned %d jobs of key %q, which has a limit of %d", running[key], key, mostRunning(e))
		}
		if inOrder(e) {
			if first := d.turns[key][0]; first.ID != e.ID {
				return fmt.Errorf("job %s of key %q was fetched, and job %s was due before", e.ID, key, first.ID)
			}
			d.turns[key] = d.turns[key][1:]
		}
		if before := last[e.Queue]; before != nil && limits[e.Queue].Fair && before.Priority == e.Priority && before.FairTag > e.FairTag {
			return fmt.Errorf("job %s with the tag %d was fetched before job %s with %d", before.ID, before.FairTag, e.ID, e.FairTag)
		}
		last[e.Queue] = e
	}
	return nil
}
