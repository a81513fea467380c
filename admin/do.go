package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/dlq"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/workflow"
)

// forwardAtOnce is how many dead jobs of one Do are forwarded at a time. They share commits.
const forwardAtOnce = 256

// do carries out an action.
func (d direct) do(ctx context.Context, a Action, ids []pawl.ID) ([]error, error) {
	return a.on(ids, MaxIDs, func(c *pawl.Change, condition pawl.Condition, todo []pawl.ID) ([]error, error) {
		change := func(ids ...pawl.ID) ([]error, error) {
			errs, err := d.q.Change(ctx, *c, ids...)
			if errors.Is(err, pawl.ErrUnknownOutcome) && !stopped(err) { // the result of each job
				return slices.Repeat([]error{err}, len(ids)), nil
			}
			return errs, err
		}
		switch {
		case a.Verb == Cancel:
			return d.cancel(ctx, a.Force, todo, change)
		case c != nil:
			return change(todo...)
		}
		place := func(dead *pawl.Envelope) dlq.Target {
			return inPlace{d.q, conditions{dlq.Unchanged(dead), condition}}
		}
		return forward(ctx, d.q, place, a.target(), todo)
	})
}

// dryRun is do without a change. The same code decides.
func (d direct) dryRun(ctx context.Context, a Action, ids []pawl.ID) ([]error, error) {
	return a.on(ids, MaxDryIDs, func(c *pawl.Change, condition pawl.Condition, todo []pawl.ID) ([]error, error) {
		change := func(ids ...pawl.ID) ([]error, error) { return d.q.DryRun(ctx, *c, ids...) }
		switch {
		case a.Verb == Cancel:
			return d.cancel(ctx, a.Force, todo, change)
		case c != nil:
			return change(todo...)
		}
		place := func(dead *pawl.Envelope) dlq.Target { return notReally{d.q, dead, conditions{condition}} }
		return forward(ctx, d.q, place, a.target(), todo)
	})
}

// on checks an action and calls carry to do it, as a change or, if c is nil, as a forward. An ID
// that is named twice is acted on once, and both places get its result.
func (a Action) on(ids []pawl.ID, most int, carry func(c *pawl.Change, condition pawl.Condition, todo []pawl.ID) ([]error, error)) ([]error, error) {
	condition, err := a.If.condition()
	if err != nil {
		return nil, err
	}
	change := &pawl.Change{Verb: pawl.Verb(a.Verb), KeepAttempts: a.KeepAttempts, If: condition}
	switch a.Verb {
	case Retry, Cancel, Delete, RunNow, ReleaseKey:
	case Forward:
		if change, err = nil, driver.CheckQueue(a.target()); err != nil {
			return nil, err
		}
	default:
		return nil, invalid("verb", "%q is none of %s, %s, %s, %s, %s, %s", truncate(string(a.Verb)), Retry, Cancel, Delete, RunNow, ReleaseKey, Forward)
	}
	if len(ids) > most {
		return nil, invalid("ids", "%d of them, one call takes %d", len(ids), most)
	}
	at := make(map[pawl.ID]int, len(ids)) // index of an ID in todo
	var todo []pawl.ID
	for _, id := range ids {
		if _, again := at[id]; !again {
			at[id] = len(todo)
			todo = append(todo, id)
		}
	}
	errs, err := carry(change, condition, todo)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.Verb, err)
	}
	if err := incomplete(errs, a.DryRun, func(i int) string { return fmt.Sprintf("%s of job %s", a.Verb, todo[i]) }); err != nil {
		return nil, err
	}
	results := make([]error, len(ids))
	for i, id := range ids {
		results[i] = errs[at[id]]
	}
	return results, nil
}

// incomplete returns the error of an action that stopped before its end, nil if it did not. The
// outcome is unknown if a part was tried, except in a dry run. Name describes what stopped.
func incomplete(errs []error, dry bool, name func(i int) string) error {
	i := slices.IndexFunc(errs, stopped)
	if i < 0 {
		return nil
	}
	err := fmt.Errorf("%s: %w", name(i), errs[i])
	if !dry && slices.ContainsFunc(errs, func(err error) bool { return !stopped(err) }) {
		err = fmt.Errorf("%w: a part may be done: %w", pawl.ErrUnknownOutcome, err)
	}
	return err
}

// target returns the queue that Forward enqueues on.
func (a Action) target() string {
	if a.Queue == "" {
		return dlq.FailedJobs
	}
	return a.Queue
}

// stopped reports whether an error ends an action: the caller went away, or the queue no longer
// works. An unknown outcome alone is the result of the jobs that it concerns.
func stopped(err error) bool {
	return isAny(err, pawl.ErrNotAccepted, pawl.ErrPoisoned, pawl.ErrClosed, context.Canceled, context.DeadlineExceeded)
}

// isAny reports whether an error matches one of the targets.
func isAny(err error, targets ...error) bool {
	return slices.ContainsFunc(targets, func(target error) bool { return errors.Is(err, target) })
}

// forward replaces dead jobs by jobs of another queue. place returns what replaces one of them.
func forward(ctx context.Context, from dlq.Reader, place func(dead *pawl.Envelope) dlq.Target, to string, ids []pawl.ID) ([]error, error) {
	results := make([]error, len(ids))
	one := func(id pawl.ID) error {
		dead, err := dlq.Inspect(ctx, from, id)
		if err != nil {
			return err
		}
		if dead.Queue == to {
			return fmt.Errorf("job %s: %w: it is a dead job of queue %q already; forward it to another queue, or retry it", id, pawl.ErrConflict, to)
		}
		return dlq.ToQueue(place(dead), to).Store(ctx, dead)
	}
	AtOnce(len(ids), forwardAtOnce, func(i int) { results[i] = one(ids[i]) })
	return results, nil
}

// AtOnce calls fn for 0 to n-1, several at a time, but no more than most.
func AtOnce(n, most int, fn func(i int)) {
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(n, most) {
		all.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				fn(int(i))
			}
		})
	}
	all.Wait()
}

// inPlace is the target of a dead job that stays in the same file. If someone else removes or
// retries the dead job in the meantime, inPlace does not restore it.
type inPlace struct {
	q    Store
	when conditions
}

// Enqueue implements [pawl.Enqueuer].
func (p inPlace) Enqueue(ctx context.Context, jobs ...*pawl.Envelope) ([]pawl.Enqueued, error) {
	done := make([]pawl.Enqueued, len(jobs))
	for i, job := range jobs {
		if err := p.q.Transfer(ctx, job, p.when); err != nil {
			return nil, err
		}
		done[i].ID = job.ID
	}
	return done, nil
}

// Job implements [dlq.Target].
func (p inPlace) Job(ctx context.Context, id pawl.ID) (*pawl.Envelope, error) {
	return p.q.Job(ctx, id)
}

// notReally is inPlace for a dry run.
type notReally struct {
	Store
	dead *pawl.Envelope
	when conditions
}

// Enqueue implements [pawl.Enqueuer]. It stores nothing.
func (n notReally) Enqueue(_ context.Context, jobs ...*pawl.Envelope) ([]pawl.Enqueued, error) {
	if !n.when.Matches(n.dead) {
		return nil, driver.NotEligible(n.dead.ID, "it no longer matches")
	}
	_, err := driver.CheckBatch(jobs, pawl.MaxBatchBytes)
	return make([]pawl.Enqueued, len(jobs)), err
}

// conditions holds where every condition in it holds. Nil ones hold.
type conditions []pawl.Condition

// ReadsBody reports whether one of them needs the payload or the history; see [driver.ReadsBody].
func (all conditions) ReadsBody() bool {
	return slices.ContainsFunc(all, func(c pawl.Condition) bool { return c != nil && driver.ReadsBody(c) })
}

// Matches implements [pawl.Condition].
func (all conditions) Matches(job *pawl.Envelope) bool {
	return !slices.ContainsFunc(all, func(c pawl.Condition) bool { return c != nil && !c.Matches(job) })
}

// cancel ends jobs, or asks running ones to end, through a change that may be a dry run. The job
// of a workflow run requires force: without its job the run is dead, and nothing undoes its
// steps.
func (d direct) cancel(ctx context.Context, force bool, ids []pawl.ID, change func(...pawl.ID) ([]error, error)) ([]error, error) {
	errs := make([]error, len(ids))
	var todo []pawl.ID
	var at []int
	for i, id := range ids {
		if errs[i] = d.refuseRun(ctx, force, id); errs[i] == nil {
			todo, at = append(todo, id), append(at, i)
		}
	}
	done, err := change(todo...)
	if err != nil {
		return nil, err
	}
	for n, i := range at {
		if errs[i] = done[n]; done[n] != nil || !d.live { // the process that leased the jobs of a stopped app has ended
			continue
		}
		if e, err := d.q.Job(ctx, ids[i]); err == nil && e.State == pawl.Leased {
			errs[i] = fmt.Errorf("job %s: %w", ids[i], ErrCancelRequested)
		}
	}
	return errs, nil
}

// refuseRun rejects the job of an open workflow run.
func (d direct) refuseRun(ctx context.Context, force bool, id pawl.ID) error {
	e, err := d.q.Job(ctx, id)
	runs, kept := d.q.(workflow.Source)
	if force || err != nil || !kept || !strings.HasPrefix(e.Kind, workflow.KindPrefix) {
		return nil
	}
	run, err := workflow.Read(runs).Info(ctx, id)
	if err == nil && !run.Status.Ended() {
		return fmt.Errorf("job %s: %w %s:%s", id, ErrWorkflowJob, run.Flow, run.ID)
	}
	return nil
}
