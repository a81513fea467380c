package faults

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/internal/torture/harness"
	"github.com/gopawl/pawl/internal/withid"
)

// Prerequisites kills random runs of jobs that wait for each other.
var Prerequisites = &harness.Family{
	Name:  "prerequisites",
	Goals: "R2",
	Method: "SIGKILL before or amid a random write, or before a random sync, of a run of jobs that wait for each other (ends, " +
		"retries, cancellations, deletes, restarts); exactly those jobs wait whose prerequisites are not met, and then the others run",
	Unit: "kills",
	PR:   100, Nightly: 20_000, Share: 5, Parallel: 4,
	Missing: missingSupervision,
	Prepare: harness.Each(killedWaits),
}

// A run makes waitRounds changes, with some waitWrites writes and half as many syncs.
const (
	waitRounds = 60
	waitWrites = 250
)

func init() { harness.Role("faults-wait", waitRole) }

// waitKill draws where a run is killed.
func waitKill(r *rand.Rand) at {
	switch n := r.IntN(waitWrites); r.IntN(3) {
	case 0:
		return at{n: n / 2, call: call{kind: "fdatasync", file: queueName}, fault: fault{name: "killed before it", kill: true}}
	case 1:
		return at{n: n, call: call{kind: "pwrite64", file: queueName}, fault: fault{name: "killed when half of it is written", part: true, kill: true}}
	default:
		return at{n: n, call: call{kind: "pwrite64", file: queueName}, fault: fault{name: "killed before it", kill: true}}
	}
}

// The headers of a job are the IDs of its prerequisites, with one of these values.
const (
	needsSuccess = "success"
	needsEnd     = "end"
)

// waitRole runs jobs that wait for each other. It prints the ID of a dead job before it deletes it.
func waitRole(args harness.Args) error {
	defer harness.EndAfter(childTimeout)()
	u := newUser(args.Uint(1))
	for left := waitRounds; left > 0; {
		q, err := bolt.Open(args[0], options())
		if err != nil {
			return err
		}
		for open := true; open && left > 0; left-- {
			if err := waitRound(u, q); err != nil {
				violate("%v", err)
			}
			open = u.rand.IntN(10) > 0
		}
		if err := q.Close(); err != nil {
			return err
		}
	}
	return nil
}

// waitRound makes one change.
func waitRound(u *user, q *bolt.Queue) error {
	jobs, err := stored(background, q)
	if err != nil {
		return err
	}
	switch n := u.rand.IntN(10); {
	case n < 3 || len(jobs) == 0:
		return enqueueWaiting(u, q, jobs)
	case n < 6:
		leases, err := q.Fetch(background, pawl.Request{Max: 2, Wait: pawl.WaitNot})
		if errors.Is(err, pawl.ErrEmpty) {
			return nil
		}
		var each []pawl.Settlement
		for _, l := range leases {
			each = append(each, endOf(u.rand, l))
		}
		return cmp.Or(err, q.Settle(background, each...))
	}
	verb, in := pawl.VerbRetry, pawl.Dead
	switch u.rand.IntN(4) {
	case 0:
		verb, in = pawl.VerbCancel, pawl.Ready
	case 1:
		verb, in = pawl.VerbRunNow, pawl.Delayed
	case 2:
		verb = pawl.VerbDelete
	}
	ids := idsIn(jobs, in)
	if len(ids) == 0 {
		return nil
	}
	ids = ids[u.rand.IntN(len(ids)):]
	if verb == pawl.VerbDelete {
		ids = ids[:1]
		harness.Emit("deletes", ids[0])
	}
	return change(q, verb, ids...)
}

// endOf draws the end of an attempt.
func endOf(r *rand.Rand, l *pawl.Lease) pawl.Settlement {
	switch r.IntN(8) {
	case 0, 1:
		return l.Abandon(pawl.ReasonPermanent, errors.New("no"))
	case 2:
		return l.Nack(0, errors.New("not yet"))
	}
	return l.Ack()
}

// enqueueWaiting enqueues jobs that wait for some of the existing jobs.
func enqueueWaiting(u *user, q *bolt.Queue, jobs []*pawl.Envelope) error {
	var batch []*pawl.Envelope
	for range 1 + u.rand.IntN(4) {
		e := &pawl.Envelope{ID: u.newID(), Kind: "waits", Headers: make(map[string]string)}
		if u.rand.IntN(2) == 0 {
			e.Retain = retained
		}
		if u.rand.IntN(4) == 0 {
			e.Delay = time.Hour
		}
		known := slices.Concat(jobs, batch)
		for range min(len(known), u.rand.IntN(4)) {
			id := known[u.rand.IntN(len(known))].ID
			switch {
			case u.rand.IntN(3) > 0:
				e.After = append(e.After, id)
				e.Headers[id.String()] = needsSuccess
			case e.Headers[id.String()] == "":
				e.AfterAny = append(e.AfterAny, id)
				e.Headers[id.String()] = needsEnd
			}
		}
		batch = append(batch, e)
	}
	return withid.Enqueue(background, q, batch...)
}

func change(q *bolt.Queue, verb pawl.Verb, ids ...pawl.ID) error {
	errs, err := q.Change(background, pawl.Change{Verb: verb}, ids...)
	return cmp.Or(err, errors.Join(errs...))
}

func stored(ctx context.Context, q *bolt.Queue) (jobs []*pawl.Envelope, err error) {
	for e, err := range q.Jobs(ctx, pawl.Filter{}) {
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, e)
	}
	return jobs, nil
}

func idsIn(jobs []*pawl.Envelope, state pawl.State) (ids []pawl.ID) {
	for _, e := range jobs {
		if e.State == state {
			ids = append(ids, e.ID)
		}
	}
	return ids
}

// killedWaits runs the script, kills it, and runs the remaining jobs.
func killedWaits(t *harness.Try) error {
	a := waitKill(t.Rand)
	return killed(t, scripted{"faults-wait", t.Rand.Uint64()}, a, func(lines []string, q *bolt.Queue) error {
		w := &waitJudge{deleted: make(map[string]bool)}
		for _, line := range lines {
			id, ok := strings.CutPrefix(line, "deletes ")
			if !ok {
				return errors.New(line)
			}
			w.deleted[id] = true
		}
		return w.judge(t.Ctx, q)
	})
}

// waitJudge knows which jobs were deleted, and so that all other missing jobs have succeeded.
type waitJudge struct{ deleted map[string]bool }

// judge compares the waiting jobs with their prerequisites, and runs the jobs that do not wait until none is left.
func (w *waitJudge) judge(ctx context.Context, q *bolt.Queue) error {
	for {
		if err := q.Check(ctx); err != nil {
			return err
		}
		jobs, err := stored(ctx, q)
		for _, e := range jobs {
			delete(w.deleted, e.ID.String()) // the kill came before the delete
		}
		if err == nil {
			err = w.compare(ctx, q, jobs)
		}
		if err != nil {
			return err
		}
		leases, err := q.Fetch(ctx, pawl.Request{Max: 1000, Wait: pawl.WaitNot})
		dead, delayed := idsIn(jobs, pawl.Dead), idsIn(jobs, pawl.Delayed)
		switch {
		case err == nil:
			var each []pawl.Settlement
			for _, l := range leases {
				each = append(each, l.Ack())
			}
			err = q.Settle(ctx, each...)
		case !errors.Is(err, pawl.ErrEmpty):
		case len(dead)+len(delayed) > 0:
			err = errors.Join(change(q, pawl.VerbRetry, dead...), change(q, pawl.VerbRunNow, delayed...))
		default:
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// compare requires that each job waits for exactly the prerequisites that are not met. If a job was dead once and is
// not dead now, it is unknown whether it has met prerequisites that accept any end.
func (w *waitJudge) compare(ctx context.Context, q *bolt.Queue, jobs []*pawl.Envelope) error {
	states := make(map[string]pawl.State)
	for _, e := range jobs {
		states[e.ID.String()] = e.State
	}
	blocked := 0
	for _, e := range jobs {
		waits := slices.Concat(e.After, e.AfterAny)
		for id, need := range e.Headers {
			anyEnd := need == needsEnd
			state, there := states[id]
			gone := !there && w.deleted[id]
			met := state == pawl.Completed || !there && !gone || anyEnd && (gone || state == pawl.Dead)
			wait := slices.ContainsFunc(waits, func(p pawl.ID) bool { return p.String() == id })
			if wait == met && !(anyEnd && there && !met) {
				return fmt.Errorf("job %s, which is %s, waits for %s: %t; that is %q (deleted: %t)", e.ID, e.State, id, wait, state, gone)
			}
		}
		switch {
		case len(waits) == 0:
		case e.State == pawl.Ready:
			blocked++
		case e.State == pawl.Completed:
			return fmt.Errorf("job %s ran before %v", e.ID, waits)
		}
	}
	stats, err := q.Stats(ctx)
	if err != nil {
		return err
	}
	counted := 0
	for _, row := range stats.Queues {
		counted += row.Blocked
	}
	if counted != blocked {
		return fmt.Errorf("%d jobs are blocked, and %d wait", counted, blocked)
	}
	return nil
}
