package postgres

import (
	"context"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/core"
)

// The verbs of operators, and of the app beside its workers.

// Cancel ends a job. A waiting job becomes dead. A leased job is marked, and the Cancelled signal of its
// lease fires. If another process holds the lease, that process sees the mark after a notification, or
// with the next extension of the lease. When the lease ends, the job is dead unless it was acked. Cancel
// returns [pawl.ErrConflict] for a dead or completed job, and [pawl.ErrNotFound] for an unknown one.
func (q *Queue) Cancel(ctx context.Context, id pawl.ID) error {
	return driver.ChangeOne(ctx, q.Change, pawl.Change{Verb: pawl.VerbCancel}, id)
}

// Retry makes a dead job ready. Its history stays. Its attempts start again from 0 unless
// keepAttempts is set. Retry returns [pawl.ErrConflict] for a job that is not dead, that is past its
// deadline, or whose unique key another job has. It returns [pawl.ErrNotFound] for an unknown job.
func (q *Queue) Retry(ctx context.Context, id pawl.ID, keepAttempts bool) error {
	return driver.ChangeOne(ctx, q.Change, pawl.Change{Verb: pawl.VerbRetry, KeepAttempts: keepAttempts}, id)
}

// RunNow makes a delayed job ready immediately, behind the ready jobs of its priority. It returns [pawl.ErrConflict]
// for a job in another state, and [pawl.ErrNotFound] for an unknown one.
func (q *Queue) RunNow(ctx context.Context, id pawl.ID) error {
	return driver.ChangeOne(ctx, q.Change, pawl.Change{Verb: pawl.VerbRunNow}, id)
}

// Delete removes a dead job or the record of a completed job permanently. It returns [pawl.ErrConflict] for a job in
// another state, and [pawl.ErrNotFound] for an unknown one.
func (q *Queue) Delete(ctx context.Context, id pawl.ID) error {
	return driver.ChangeOne(ctx, q.Change, pawl.Change{Verb: pawl.VerbDelete}, id)
}

// Change applies c to each job, all in one transaction. It returns an error for each ID in order, nil for a changed
// job: [pawl.ErrNotFound]; [pawl.ErrNotEligible] for a job in the wrong state for the verb, or that does not match the
// condition; [pawl.ErrConflict] for a dead job whose deadline has passed or whose unique key another job has. If the
// second result is an error, the whole change failed, and the first result is nil.
func (q *Queue) Change(ctx context.Context, c pawl.Change, ids ...pawl.ID) ([]error, error) {
	return q.changes(ctx, &change{Change: c, ids: ids})
}

// DryRun returns what [Queue.Change] would return for each job now, and changes nothing.
func (q *Queue) DryRun(ctx context.Context, c pawl.Change, ids ...pawl.ID) ([]error, error) {
	return q.changes(ctx, &change{Change: c, ids: ids, dry: true})
}

func (q *Queue) changes(ctx context.Context, op *change) ([]error, error) {
	if err := driver.CheckChange(&op.Change, len(op.ids)); err != nil || len(op.ids) == 0 {
		return nil, err
	}
	if err := q.submit(ctx, op); err != nil {
		return nil, err
	}
	return op.errs, nil
}

// change is a call of Change or DryRun.
type change struct {
	pawl.Change
	ids  []pawl.ID
	dry  bool
	body bool // it reads payloads and histories, even if no condition needs them
	errs []error
}

func (op *change) needs(n *needs) { n.ids = append(n.ids, op.ids...) }

func (op *change) apply(t *txn) error {
	if err := t.complement(op); err != nil {
		return err
	}
	op.errs = t.Changes(&op.Change, op.ids, op.dry)
	return nil
}

// complement reads what a change needs besides the rows of its jobs: the holders of their unique keys, and payloads and
// histories if the condition needs them.
func (t *txn) complement(op *change) error {
	var n needs
	var bodies []*pawl.Envelope
	for _, id := range op.ids {
		j := t.Get(id)
		if j == nil {
			continue
		}
		if op.Verb == pawl.VerbRetry && j.UniqueKey != "" {
			name := core.UniqueName(&j.Envelope)
			if _, known := t.holders[name]; !known {
				n.keys = append(n.keys, []byte(name))
			}
		}
		if (op.body || op.If != nil && driver.ReadsBody(op.If)) && j.stored && !j.edited {
			bodies = append(bodies, &j.Envelope)
		}
	}
	if err := t.read(&n); err != nil {
		return err
	}
	return t.q.readBodies(t.ctx, t.tx, bodies)
}

// Meets reports whether a job matches a condition.
func (t *txn) Meets(c pawl.Condition, j *job) bool {
	e := j.Envelope
	if !driver.ReadsBody(c) {
		e.Payload, e.History = nil, nil
	}
	return c.Matches(&e)
}

// Transfer replaces the dead job that has the ID of e, in one transaction. It removes the dead job
// with its history, and stores e as [Queue.Enqueue] would. It does not change the envelope.
//
// Errors: those of Enqueue; [pawl.ErrNotFound] if there is no job with that ID; [pawl.ErrNotEligible] if that job is
// not dead or does not match the condition. Transfer refuses a unique key.
func (q *Queue) Transfer(ctx context.Context, e *pawl.Envelope, when pawl.Condition) error {
	if err := driver.SupportsJobs(abilities, e); err != nil {
		return err
	}
	if err := driver.CheckTransfer(e, q.opts.MaxPayload); err != nil {
		return err
	}
	return q.submit(ctx, &transfer{change: change{Change: pawl.Change{If: when}, ids: []pawl.ID{e.ID}}, envelope: e})
}

// transfer is a call of Transfer.
type transfer struct {
	change
	envelope *pawl.Envelope
}

func (op *transfer) needs(n *needs) {
	op.change.needs(n)
	n.newJob(op.envelope)
}

func (op *transfer) Bytes() int { return len(op.envelope.Payload) }

func (op *transfer) apply(t *txn) error {
	if err := t.complement(&op.change); err != nil {
		return err
	}
	return t.Transfer(op.envelope, op.If)
}

// Pause stops fetches from a queue, by all processes, until [Queue.Resume]. Everything else continues. A queue that
// never had a job can be paused, too. Other processes notice the pause at their next fetch.
func (q *Queue) Pause(ctx context.Context, queue string) error {
	return q.setPaused(ctx, queue, true)
}

// Resume ends the pause of a queue, and its rest, if there is one.
func (q *Queue) Resume(ctx context.Context, queue string) error {
	return q.setPaused(ctx, queue, false)
}

func (q *Queue) setPaused(ctx context.Context, queue string, paused bool) error {
	if err := driver.CheckQueue(queue); err != nil {
		return err
	}
	return q.submit(ctx, &pause{[]byte(queue), paused})
}

// pause is a call of Pause or Resume.
type pause struct {
	queue  []byte
	paused bool
}

func (op *pause) needs(*needs) {}

func (op *pause) apply(t *txn) error {
	if op.paused {
		t.write(sqlPause, op.queue, true)
	} else {
		t.write(sqlResume, op.queue)
		t.write(sqlEndQueueRest, op.queue)
		t.news.ready(string(op.queue))
	}
	t.stir()
	return nil
}
