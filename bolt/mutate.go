package bolt

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Mutate carries out a mutation and returns when it is durable. Size is roughly how many bytes
// the mutation writes. It keeps commits within limits. A memory fault in a mutation means that
// the file is damaged, and poisons the queue.
//
// It returns the error of Check or Apply, unwrapped; [pawl.ErrNotAccepted] if ctx ended before
// the queue accepted the mutation; or the error of a failed commit.
func (q *Queue) Mutate(ctx context.Context, m driver.Mutation, size int) error {
	err := q.scheduler.intake.do(ctx, &mutate{queue: q, mutation: careful{m}}, max(size, 0))
	return unwrapped(err)
}

// MutateTx carries out a mutation as part of an app's transaction, on the goroutine of the app.
// It does not recover a panic. An error of Check leaves the transaction unchanged. After any
// other error the app must roll the transaction back.
func (q *Queue) MutateTx(tx *bbolt.Tx, m driver.Mutation) error {
	return unwrapped(q.within(tx, &mutate{queue: q, mutation: m}, nil))
}

// mutate is the operation of a mutation.
type mutate struct {
	queue    *Queue
	mutation driver.Mutation
	ops      ops
}

func (op *mutate) check(t *txn) error {
	if t.err != nil { // the transaction will be undone, and Check must not read a neighbor's partial writes
		return t.err
	}
	t.finishEnds() // for the earlier operations, so that Check reads their results
	op.ops = ops{Reader: t.others(), t: t, queue: op.queue}
	return op.mutation.Check(&op.ops)
}

func (op *mutate) apply(t *txn) {
	for _, part := range op.ops.parts {
		part.apply(t)
	}
	for _, fn := range op.ops.durable {
		t.others().OnCommit(fn)
	}
	t.changed = true
	if err := op.mutation.Apply(t.others()); err != nil {
		t.fail(applyError{err})
	}
}

// applyError is an error of Apply. It hides the error it wraps: the undone transaction must not
// mistake a bbolt error about a row of the mutation for an error about a row of the queue.
type applyError struct{ error }

func unwrapped(err error) error {
	if err == nil {
		return nil // without memory for own
	}
	var own applyError
	if errors.As(err, &own) {
		return own.error
	}
	return err
}

// careful turns panics of a mutation into errors, because the mutation does not run on its
// caller's goroutine.
type careful struct{ driver.Mutation }

func (c careful) Check(o driver.Ops) (err error) {
	defer recovered(&err, o.(*ops))
	return c.Mutation.Check(o)
}

func (c careful) Apply(w driver.Writer) (err error) {
	defer recovered(&err, nil)
	return c.Mutation.Apply(w)
}

// recovered is deferred around Check or Apply of a mutation. A memory fault, or a panic while
// the queue reads its own rows, means that the file is damaged. recovered lets those panics
// continue.
func recovered(err *error, o *ops) {
	panicked := recover()
	if panicked == nil {
		return
	}
	if _, fault := panicked.(interface{ Addr() uintptr }); fault || o != nil && o.looking {
		panic(panicked)
	}
	*err = fmt.Errorf("mutation panicked: %v\n\n%s", panicked, debug.Stack())
}

// ops implements [driver.Ops].
type ops struct {
	driver.Reader
	t       *txn
	queue   *Queue
	parts   []operation
	named   driver.Named
	durable []func() // called once the transaction has committed
	looking bool     // the mutation reads rows of the queue
}

// Now implements [driver.Ops].
func (o *ops) Now() time.Time { return o.t.now }

// State implements [driver.Ops].
func (o *ops) State(id pawl.ID) (pawl.State, error) {
	o.looking = true
	_, at, err := o.t.find(id)
	o.looking = false
	if errors.Is(err, pawl.ErrNotFound) {
		return "", nil
	}
	return at.state, err
}

// Job implements [driver.Ops].
func (o *ops) Job(id pawl.ID) (*pawl.Envelope, error) {
	o.looking = true
	j, at, err := o.t.find(id)
	o.looking = false
	if err != nil {
		return nil, err
	}
	job := *j.Envelope
	job.State = at.state
	return &job, nil
}

// Enqueue implements [driver.Ops].
func (o *ops) Enqueue(jobs ...*pawl.Envelope) ([]pawl.Enqueued, error) {
	if len(jobs) == 0 {
		return nil, nil
	}
	op, _, err := o.queue.prepare(jobs)
	if err != nil {
		return nil, err
	}
	if err := o.look(op); err != nil {
		return nil, err
	}
	var ids []pawl.ID
	var keys []string
	for i := range op.jobs { // jobs of one call may share an ID or a key
		j := &op.jobs[i]
		ids = append(ids, j.ID)
		keys = append(keys, uniqueScope(&j.Envelope)...)
	}
	if err := o.named.Add(ids, keys); err != nil {
		return nil, err
	}
	o.parts = append(o.parts, op)
	return op.results(), nil
}

// Hold implements [driver.Ops].
func (o *ops) Hold(l *pawl.Lease) error { return o.Save(l, nil) }

// Save implements [driver.Ops]. Without a cursor it is Hold.
func (o *ops) Save(l *pawl.Lease, cursor []byte) error {
	return o.add(&keep{holding: holding{l.ID, l.Token}, crashed: l.Crashes > 0, cursor: cursor}, l.ID)
}

// Ack implements [driver.Ops].
func (o *ops) Ack(l *pawl.Lease) error {
	s := l.Ack()
	return o.end(l, &ackOnce{settleOne{settle: o.queue.settle(&s)}})
}

// Snooze implements [driver.Ops].
func (o *ops) Snooze(l *pawl.Lease, until time.Time) error {
	s := l.Snooze(until.Sub(o.t.now))
	return o.end(l, &settleOne{settle: o.queue.settle(&s)})
}

// RunNow implements [driver.Ops].
func (o *ops) RunNow(id pawl.ID) error {
	return o.add(&changeOne{Change: &pawl.Change{Verb: pawl.VerbRunNow}, id: id}, id)
}

// Retry implements [driver.Ops].
func (o *ops) Retry(id pawl.ID) error {
	op := &changeOne{Change: &pawl.Change{Verb: pawl.VerbRetry}, id: id}
	if err := o.look(op); err != nil {
		return err
	}
	if err := o.named.Add([]pawl.ID{id}, uniqueScope(op.job.Envelope)); err != nil {
		return err
	}
	o.parts = append(o.parts, op)
	return nil
}

// end adds an operation that settles a lease. Once it is durable, the holder neither settles
// nor extends the lease.
func (o *ops) end(l *pawl.Lease, op operation) error {
	err := o.add(op, l.ID)
	if err == nil {
		o.durable = append(o.durable, func() { driver.MarkSettled(l) })
	}
	return err
}

func (o *ops) add(op operation, id pawl.ID) error {
	if err := o.look(op); err != nil {
		return err
	}
	if err := o.named.Add([]pawl.ID{id}, nil); err != nil {
		return err
	}
	o.parts = append(o.parts, op)
	return nil
}

// look checks whether an operation is possible.
func (o *ops) look(op operation) error {
	o.looking = true
	err := op.check(o.t)
	o.looking = false
	return err
}

// uniqueScope returns the unique key of a job with its scope, if the job has one.
func uniqueScope(e *pawl.Envelope) []string {
	if e.UniqueKey == "" {
		return nil
	}
	return []string{e.Queue + "\x00" + e.Kind + "\x00" + e.UniqueKey} // names contain no NUL
}

// keep is a lease that continues.
type keep struct {
	holding
	crashed bool   // the job has crashes to clear
	cursor  []byte // to store; nil for none
	row     leaseRow
}

func (op *keep) check(t *txn) (err error) {
	op.row, err = t.held(&op.holding)
	if err == nil && op.cursor != nil {
		_, err = t.record(op.id)
	}
	return err
}

func (op *keep) apply(t *txn) {
	t.renewed[op.token] = true
	if !op.crashed && op.cursor == nil {
		return
	}
	j, err := t.record(op.id)
	if err != nil {
		t.damagedRow(fmt.Errorf("the crashes of job %s are not forgotten: %w", op.id, err))
		return
	}
	if op.cursor != nil {
		j.Cursor = op.cursor
	} else if j.Crashes == 0 {
		return
	}
	if j.Crashes > 0 {
		j.Crashes = 0
		t.cleared = append(t.cleared, op.holding)
	}
	t.rewrite(&j)
	if op.row.flags != j.flags() { // the rewrite moved its failures to the history
		op.row.flags = j.flags()
		t.put(t.leased, op.id[:], op.row.seal(t, op.id[:]))
	}
}
