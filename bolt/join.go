package bolt

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
)

// Rider is a change of rows of one's own that rides in a commit of the queue, with the
// calls of others and with verbs of the queue that are to happen together with it. It is
// for packages that keep state beside the jobs; an app's own writes are mostly simpler in
// [Queue.Update], which pays for a commit of its own.
//
// A rider has two halves because bbolt cannot undo one caller's part of a transaction. Both
// run on the goroutine of the queue, Check right before Apply, and everybody waits for
// them: they are short, call nothing of the queue but the plan, and leave their goroutine
// alone, which t.FailNow would end. When a commit fails on a neighbour they run again in
// another transaction, so they keep nothing of an earlier run.
//
// A panic of theirs is an error of theirs, with its stack. A fault of memory is not: it is
// met where the file is damaged, and poisons the queue like everywhere else.
type Rider interface {
	// Check looks whether the change can be made, and tells plan which verbs are part of
	// it. It reads, and writes nothing. An error refuses the whole: it is the answer of
	// [Queue.Join], and nothing happens.
	Check(plan *Plan) error

	// Apply makes the change that Check allowed, in top-level buckets other than the
	// queue's. The verbs have been carried out, and the end of the transaction is the
	// queue's. An error is the answer, and undoes the transaction, which costs the others
	// that are in it a second one: what can be foreseen is for Check.
	Apply(tx *bbolt.Tx) error
}

// Join carries out a rider and returns when it is durable. Bytes is about how much it
// writes, by which commits are kept within bounds.
//
// Errors: that of Check or Apply, as it is; [pawl.ErrNotAccepted] when ctx ended before the
// rider was taken; and those of a failed commit, as for every call.
func (q *Queue) Join(ctx context.Context, r Rider, bytes int) error {
	err := q.scheduler.intake.do(ctx, &join{queue: q, rider: careful{r}}, max(bytes, 0))
	return asItIs(err)
}

// JoinTx carries out a rider as part of a transaction of the app's, on the goroutine of the
// app, where a panic surfaces. An error of Check leaves the transaction as it was; after any
// other it must be rolled back.
func (q *Queue) JoinTx(tx *bbolt.Tx, r Rider) error {
	return asItIs(q.within(tx, &join{queue: q, rider: r}, nil))
}

// join is the operation that a rider is.
type join struct {
	queue *Queue
	rider Rider
	plan  Plan
}

func (op *join) check(t *txn) error {
	if t.err != nil { // it is undone: nobody is to see what a neighbour left half done
		return t.err
	}
	op.plan = Plan{t: t, queue: op.queue}
	return op.rider.Check(&op.plan)
}

func (op *join) apply(t *txn) {
	for _, part := range op.plan.parts {
		part.apply(t)
	}
	tx := t.jobs.Tx()
	for _, fn := range op.plan.durable {
		tx.OnCommit(fn)
	}
	t.changed = true
	if err := op.rider.Apply(tx); err != nil {
		t.fail(applyError{err})
	}
}

// applyError is an error of Apply. It hides what it wraps, so that the transaction which it
// undoes takes no error of bbolt's over a row of the rider's for one over a row of the queue's.
type applyError struct{ error }

func asItIs(err error) error {
	var own applyError
	if errors.As(err, &own) {
		return own.error
	}
	return err
}

// careful is a rider whose panic is an error, for a goroutine that is not the caller's.
type careful struct{ Rider }

func (c careful) Check(p *Plan) (err error) {
	defer recovered(&err, p)
	return c.Rider.Check(p)
}

func (c careful) Apply(tx *bbolt.Tx) (err error) {
	defer recovered(&err, nil)
	return c.Rider.Apply(tx)
}

// recovered is deferred around a half of a rider. A fault of memory, and what panics while
// the queue's own rows are looked at, mean that the file is damaged, and go on.
func recovered(err *error, p *Plan) {
	panicked := recover()
	if panicked == nil {
		return
	}
	if _, fault := panicked.(interface{ Addr() uintptr }); fault || p != nil && p.looking {
		panic(panicked)
	}
	*err = fmt.Errorf("rider panicked: %v\n\n%s", panicked, debug.Stack())
}

// Plan is what a [Rider] has done to jobs, together with its own change. Its verbs look
// whether they apply, and refuse as those of [Queue] do; they are carried out once Check
// has returned nil, before Apply, or not at all. No verb sees what one before it will do, so
// each job, and each unique key that is to be taken, is named once at most. A Plan is of no
// use after Check.
type Plan struct {
	t       *txn
	queue   *Queue
	parts   []operation
	moved   []pawl.ID
	taken   []string // unique keys, with their scope
	durable []func() // called when the transaction has committed
	looking bool     // at rows of the queue's
}

// Tx is the transaction, to read from.
func (p *Plan) Tx() *bbolt.Tx { return p.t.jobs.Tx() }

// Now is the time of the transaction, by the queue's clock.
func (p *Plan) Now() time.Time { return p.t.now }

// State is where a job stands; "" when there is none of that ID.
func (p *Plan) State(id pawl.ID) (pawl.State, error) {
	p.looking = true
	_, at, err := p.t.find(id)
	p.looking = false
	if errors.Is(err, pawl.ErrNotFound) {
		return "", nil
	}
	return at.state, err
}

// Enqueue stores jobs; see [pawl.Enqueuer]. It completes the envelopes when they are
// durable, not before: a job whose ID is to be known to Apply, or after
// [pawl.ErrUnknownOutcome], is given one.
func (p *Plan) Enqueue(jobs ...*pawl.Envelope) error {
	if len(jobs) == 0 {
		return nil
	}
	op, _, err := p.queue.prepare(jobs)
	if err != nil {
		return err
	}
	if err := p.look(op); err != nil {
		return err
	}
	var moved []pawl.ID
	var taken []string
	for i := range op.jobs { // which may share an ID or a key among themselves
		j := &op.jobs[i]
		moved = append(moved, j.ID)
		taken = append(taken, uniqueScope(&j.Envelope)...)
	}
	if err := p.name(moved, taken); err != nil {
		return err
	}
	p.parts = append(p.parts, op)
	p.durable = append(p.durable, func() { op.answer(jobs) })
	return nil
}

// Hold requires that a lease still holds its job, and extends it. What the job did until
// now counts as progress: the crashes in a row before are forgotten.
func (p *Plan) Hold(l *pawl.Lease) error {
	return p.add(&keep{holding: holding{l.ID, l.Token}, crashed: l.Crashes > 0}, l.ID)
}

// Ack ends a lease whose job is done; see [Queue.AckTx].
func (p *Plan) Ack(l *pawl.Lease) error {
	return p.end(l, &ackOnce{settle{finished: doneBy(l, p.queue.scheduler.observer.listening()), how: ack}})
}

// Snooze ends a lease, and the job comes back at a time, or at once when that has passed. A
// job that was cancelled meanwhile is a dead letter instead.
func (p *Plan) Snooze(l *pawl.Lease, until time.Time) error {
	return p.end(l, &settle{finished: finishedBy(l), how: snooze(until.Sub(p.t.now))})
}

// RunNow has a delayed job wait no longer; see [Queue.RunNow].
func (p *Plan) RunNow(id pawl.ID) error {
	return p.add(&changeOne{Change: &pawl.Change{Verb: pawl.VerbRunNow}, id: id}, id)
}

// Retry takes a dead letter back to ready, with its attempts counted anew; see
// [Queue.Retry].
func (p *Plan) Retry(id pawl.ID) error {
	op := &changeOne{Change: &pawl.Change{Verb: pawl.VerbRetry}, id: id}
	if err := p.look(op); err != nil {
		return err
	}
	if err := p.name([]pawl.ID{id}, uniqueScope(op.job.Envelope)); err != nil {
		return err
	}
	p.parts = append(p.parts, op)
	return nil
}

// end is a verb that settles: once that is durable the holder of the lease neither settles
// nor extends it.
func (p *Plan) end(l *pawl.Lease, op operation) error {
	err := p.add(op, l.ID)
	if err == nil {
		p.durable = append(p.durable, l.MarkSettled)
	}
	return err
}

func (p *Plan) add(op operation, id pawl.ID) error {
	if err := p.look(op); err != nil {
		return err
	}
	if err := p.name([]pawl.ID{id}, nil); err != nil {
		return err
	}
	p.parts = append(p.parts, op)
	return nil
}

// look has a verb look whether it applies.
func (p *Plan) look(op operation) error {
	p.looking = true
	err := op.check(p.t)
	p.looking = false
	return err
}

// name refuses a second verb for a job or a unique key: it was checked before the first is
// carried out.
func (p *Plan) name(moved []pawl.ID, taken []string) error {
	for _, id := range moved {
		if slices.Contains(p.moved, id) {
			return &pawl.InvalidError{Field: "plan", Reason: fmt.Sprintf("names job %s twice", id)}
		}
	}
	for _, key := range taken {
		if slices.Contains(p.taken, key) {
			return &pawl.InvalidError{Field: "plan", Reason: "takes a unique key twice"}
		}
	}
	p.moved, p.taken = append(p.moved, moved...), append(p.taken, taken...)
	return nil
}

// uniqueScope is the unique key of a job with its scope, if it has one.
func uniqueScope(e *pawl.Envelope) []string {
	if e.UniqueKey == "" {
		return nil
	}
	return []string{e.Queue + "\x00" + e.Kind + "\x00" + e.UniqueKey} // no name has a NUL
}

// keep is a lease that goes on.
type keep struct {
	holding
	crashed bool // the job has crashes to forget
}

func (op *keep) check(t *txn) error {
	_, err := t.held(&op.holding)
	return err
}

func (op *keep) apply(t *txn) {
	t.renewed[op.id] = true
	if !op.crashed {
		return
	}
	j, err := t.record(op.id)
	if err != nil {
		t.damagedRow(fmt.Errorf("the crashes of job %s are not forgotten: %w", op.id, err))
		return
	}
	if j.Crashes > 0 {
		j.Crashes = 0
		t.rewrite(j)
	}
}
