package redis

import (
	"context"
	"fmt"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Cancel ends a job. A waiting job becomes dead. A leased job is marked, and the Cancelled signal of
// its lease fires. When the lease ends, the job is dead unless it was acked. Cancel returns
// [pawl.ErrConflict] for a dead or completed job, and [pawl.ErrNotFound] for an unknown one.
func (q *Queue) Cancel(ctx context.Context, id pawl.ID) error {
	return driver.ChangeOne(ctx, q.Change, pawl.Change{Verb: pawl.VerbCancel}, id)
}

// Retry makes a dead job ready. Its history stays. Its attempts start again from 0 unless keepAttempts is set. Retry
// returns [pawl.ErrConflict] for a job that is not dead, that is past its deadline, or whose unique key another job
// has. It returns [pawl.ErrNotFound] for an unknown job.
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

// Change applies c to each job, all in one transition. It returns an error for each ID in order, nil for a changed job:
// [pawl.ErrNotFound]; [pawl.ErrNotEligible] for a job in the wrong state for the verb, or that does not match the
// condition; [pawl.ErrConflict] for a dead job whose deadline has passed or whose unique key another job has. If the
// second result is an error, the whole change failed, and the first result is nil.
//
// A condition is evaluated in this process. If one of the jobs changes in between, Change reads all of them again.
func (q *Queue) Change(ctx context.Context, c pawl.Change, ids ...pawl.ID) ([]error, error) {
	return q.change(ctx, c, false, ids)
}

// DryRun returns what [Queue.Change] would return for each job now, and changes nothing. If several dead jobs share a
// unique key, only the first would be retried.
func (q *Queue) DryRun(ctx context.Context, c pawl.Change, ids ...pawl.ID) ([]error, error) {
	return q.change(ctx, c, true, ids)
}

func (q *Queue) change(ctx context.Context, c pawl.Change, dry bool, ids []pawl.ID) ([]error, error) {
	if err := driver.CheckChange(&c, len(ids)); err != nil || len(ids) == 0 {
		return nil, err
	}
	op := &change{Change: c, ids: ids}
	op.wire = wireChange{Verb: "change", Change: c.Verb, Keep: c.KeepAttempts, Dry: dry, IDs: make([]string, len(ids))}
	for i, id := range ids {
		op.wire.IDs[i] = string(id[:])
	}
	for {
		if err := q.judge(ctx, c.If, op.wire.IDs, &op.seen); err != nil {
			return nil, err
		}
		if err := q.submit(ctx, op, len(ids), 0); err != nil {
			return nil, err
		}
		if !op.again {
			return op.errs, nil
		}
	}
}

// seen is the result of a condition for jobs, and the rows that it saw.
type seen struct {
	Rows map[string]string `msgpack:"seen,omitempty"`
	No   map[string]bool   `msgpack:"no,omitempty"` // jobs that it does not match
}

// judge evaluates a condition.
func (q *Queue) judge(ctx context.Context, when pawl.Condition, ids []string, s *seen) error {
	if when == nil {
		return nil
	}
	parts := driver.Parts(0)
	if driver.ReadsBody(when) {
		parts = driver.AllParts
	}
	jobs, rows, err := q.read(ctx, ids, parts)
	if err != nil {
		return err
	}
	*s = seen{rows, make(map[string]bool)}
	for _, listed := range jobs {
		if listed.Err != nil || !when.Matches(listed.Job) {
			s.No[string(listed.Job.ID[:])] = true
		}
	}
	return nil
}

// change is a call of Change or DryRun.
type change struct {
	pawl.Change
	seen
	ids   []pawl.ID
	wire  wireChange
	errs  []error
	again bool
}

type wireChange struct {
	Verb   string    `msgpack:"v"`
	Change pawl.Verb `msgpack:"verb"`
	Keep   bool      `msgpack:"keep"`
	Dry    bool      `msgpack:"dry"`
	IDs    []string  `msgpack:"ids"`

	Rows map[string]string `msgpack:"seen,omitempty"`
	No   map[string]bool   `msgpack:"no,omitempty"`
}

func (op *change) request(*group) any {
	op.wire.Rows, op.wire.No = op.seen.Rows, op.seen.No
	return op.wire
}

func (op *change) result(_ *group, b msgpack.RawMessage) error {
	var r struct {
		Again bool      `msgpack:"again"`
		List  []refusal `msgpack:"r"`
	}
	if err := msgpack.Unmarshal(b, &r); err != nil {
		return err
	}
	if op.again = r.Again; op.again {
		return nil
	}
	op.errs = make([]error, len(op.ids))
	for i, refused := range r.List {
		op.errs[i] = refused.of(&op.Change, op.ids[i])
	}
	return nil
}

// of returns the error of a refusal, nil for none.
func (r *refusal) of(c *pawl.Change, id pawl.ID) error {
	switch r.Error {
	case "":
		return nil
	case "none":
		return fmt.Errorf("job %s: %w", id, pawl.ErrNotFound)
	case "state":
		return driver.Refuses(c, id, stateOf(r.State), false)
	case "if":
		return driver.NotEligible(id, "it does not match any more")
	case "late":
		return fmt.Errorf("job %s: %w: its deadline has passed, it would be dead again at once", id, pawl.ErrConflict)
	}
	return fmt.Errorf("job %s: %w: job %s, which is %s, has its unique key", id, pawl.ErrConflict, idOf(r.ID), stateOf(r.State))
}

// Transfer replaces the dead job that has the ID of e, as one transition. It removes the dead job with its history, and
// stores e as [Queue.Enqueue] would. It does not change the envelope.
//
// Errors: those of Enqueue; [pawl.ErrNotFound] if there is no job with that ID; [pawl.ErrNotEligible] if that job is
// not dead or does not match the condition. Transfer refuses a unique key.
func (q *Queue) Transfer(ctx context.Context, e *pawl.Envelope, when pawl.Condition) error {
	if err := driver.SupportsJobs(abilities, e); err != nil {
		return err
	}
	bytes, err := driver.CheckBatch([]*pawl.Envelope{e}, q.opts.MaxPayload)
	if err != nil {
		return err
	}
	if e.UniqueKey != "" {
		return &pawl.InvalidError{Field: "unique key", Reason: "a job that takes the place of a dead job has none"}
	}
	op := &transfer{job: *e}
	for {
		if err := q.judge(ctx, when, []string{string(e.ID[:])}, &op.seen); err != nil {
			return err
		}
		if err := q.submit(ctx, op, 1, bytes); err != nil {
			return err
		}
		if !op.again {
			return op.err
		}
	}
}

// transfer is a call of Transfer.
type transfer struct {
	seen
	job   pawl.Envelope
	err   error
	again bool
}

type wireTransfer struct {
	Verb string            `msgpack:"v"`
	Job  stored            `msgpack:"job"`
	Rows map[string]string `msgpack:"seen,omitempty"`
	No   bool              `msgpack:"no,omitempty"`
}

func (op *transfer) request(g *group) any {
	own, id := op.job, op.job.ID
	driver.Accept(&own, g.now)
	own.ID = id // even the zero ID, which no job has
	return wireTransfer{"transfer", storedOf(&own), op.Rows, len(op.No) > 0}
}

func (op *transfer) result(_ *group, b msgpack.RawMessage) error {
	var r refusal
	if err := msgpack.Unmarshal(b, &r); err != nil {
		return err
	}
	op.again = r.Again
	op.err = r.of(&pawl.Change{Verb: pawl.VerbRetry}, op.job.ID)
	return nil
}

// Pause stops fetches from a queue, by all processes, until [Queue.Resume]. Everything else continues. A queue that
// never had a job can be paused, too.
func (q *Queue) Pause(ctx context.Context, queue string) error { return q.pause(ctx, queue, true) }

// Resume ends the pause of a queue, if there is one.
func (q *Queue) Resume(ctx context.Context, queue string) error { return q.pause(ctx, queue, false) }

func (q *Queue) pause(ctx context.Context, queue string, on bool) error {
	if err := driver.CheckQueue(queue); err != nil {
		return err
	}
	return q.submit(ctx, &pause{"pause", queue, on}, 1, 0)
}

// pause is a call of Pause or Resume.
type pause struct {
	Verb  string `msgpack:"v"`
	Queue string `msgpack:"q"`
	On    bool   `msgpack:"on"`
}

func (op *pause) request(*group) any                   { return op }
func (*pause) result(*group, msgpack.RawMessage) error { return nil }
