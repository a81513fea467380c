package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/core"
)

// Mutate carries out a mutation as part of a group commit and returns when it is durable. Mutations
// of several processes that declare their rows, see [driver.Declared], run at the same time unless
// they touch the same rows. Any other mutation runs alone.
//
// Size is roughly how many bytes the mutation writes. It keeps commits within limits.
//
// It returns the error of Check or Apply, unwrapped; [pawl.ErrNotAccepted] if ctx ended before the
// queue accepted the mutation; or the error of a failed commit.
func (q *Queue) Mutate(ctx context.Context, m driver.Mutation, size int) error {
	return q.submit(ctx, newMutate(q, m, size))
}

// Now returns the time by the clock of the queue.
func (q *Queue) Now() time.Time {
	if q.opts.Now != nil {
		return q.opts.Now()
	}
	return time.Now().Add(q.agenda.Load().skew)
}

// mutate is a call of Mutate.
type mutate struct {
	q        *Queue
	mutation driver.Mutation
	declared driver.Needs
	size     int // roughly how many bytes it writes
	alone    bool
}

// declare records what the mutation declares, so that the scheduler can read it before it accepts the
// call.
func (op *mutate) declare() {
	op.declared = driver.Needs{}
	if d, ok := op.mutation.(driver.Declared); ok {
		d.Declare(&op.declared)
	} else {
		op.alone = true
	}
}

func newMutate(q *Queue, m driver.Mutation, size int) *mutate {
	op := &mutate{q: q, mutation: m, size: size}
	op.declare()
	return op
}

func (op *mutate) Bytes() int { return max(op.size, 0) }

func (op *mutate) needs(n *needs) {
	n.alone = n.alone || op.alone
	n.rows = append(n.rows, &op.declared)
	n.ids = append(n.ids, op.declared.Jobs...)
}

func (op *mutate) apply(t *txn) error {
	if err := t.finishGroups(); err != nil { // so that Check reads what earlier calls left
		return t.breaks(err)
	}
	rs := t.rows
	rs.begin(&op.declared)
	o := &ops{rows: rs, t: t, q: op.q}
	o.Ops = core.Ops[*job]{Moves: &t.Moves, Engine: o}
	err := core.Careful(func() error { return op.mutation.Check(o) })
	switch {
	case rs.err != nil:
		return t.breaks(op.retried(rs.err))
	case err != nil:
		return err
	}
	before := len(rs.onCommit)
	for _, part := range o.Parts {
		if err := part(); err != nil {
			return t.breaks(err)
		}
	}
	err = core.Careful(func() error { return op.mutation.Apply(rs) })
	if err == nil && rs.err == nil {
		err = rs.end(len(o.Parts) > 0)
	}
	switch {
	case rs.err != nil:
		return t.breaks(op.retried(rs.err))
	case err != nil:
		return t.breaks(&undone{op, err})
	}
	t.after = append(t.after, o.Durable...)
	t.after = append(t.after, rs.onCommit[before:]...)
	return nil
}

// retried returns the error that ends the transaction. A mutation that touched more than it declared
// runs again immediately, since it does not wait for a lock. It runs alone unless it now declares
// more.
func (op *mutate) retried(err error) error {
	if errors.Is(err, errAlone) {
		before := op.declared.Len()
		op.declare()
		op.alone = op.alone || op.declared.Len() <= before
	}
	return err
}

// breaks makes an error end the transaction.
func (t *txn) breaks(err error) error {
	t.broken = err
	return err
}

// undone is an error of Apply. It undoes the transaction, and the other calls run again without
// the mutation.
type undone struct {
	op    *mutate
	cause error
}

func (u *undone) Error() string { return u.cause.Error() }

// without answers the mutation that an error is about, and returns the other calls.
func (u *undone) without(calls []*call) []*call {
	return slices.DeleteFunc(slices.Clone(calls), func(c *call) bool {
		if c.operation != operation(u.op) {
			return false
		}
		c.Answer(u.cause)
		return true
	})
}

// ops implements [driver.Ops].
type ops struct {
	*rows
	core.Ops[*job]
	t *txn
	q *Queue
}

// read reads what an operation needs, unless the transaction knows it.
func (o *ops) read(n *needs) error {
	if o.rows.err != nil {
		return o.rows.err
	}
	n.ids = slices.DeleteFunc(n.ids, func(id pawl.ID) bool { return o.t.looked[id] })
	n.keys = slices.DeleteFunc(n.keys, func(key []byte) bool { _, known := o.t.holders[string(key)]; return known })
	if err := o.t.read(n); err != nil {
		return o.failed(err)
	}
	return nil
}

func (o *ops) job(id pawl.ID) (*job, error) {
	if err := o.read(&needs{ids: []pawl.ID{id}}); err != nil {
		return nil, err
	}
	return o.t.Get(id), nil
}

// State implements [driver.Ops].
func (o *ops) State(id pawl.ID) (pawl.State, error) {
	j, err := o.job(id)
	if j == nil {
		return "", err
	}
	return j.State, nil
}

// Job implements [driver.Ops].
func (o *ops) Job(id pawl.ID) (*pawl.Envelope, error) {
	j, err := o.job(id)
	switch {
	case err != nil:
		return nil, err
	case j == nil:
		return nil, fmt.Errorf("job %s: %w", id, pawl.ErrNotFound)
	}
	e := j.Envelope
	return &e, nil
}

// CheckNew implements [core.OpsEngine].
func (o *ops) CheckNew(jobs []*pawl.Envelope) error {
	if err := driver.SupportsJobs(abilities, jobs...); err != nil {
		return err
	}
	if _, err := driver.CheckBatch(jobs, o.q.opts.MaxPayload); err != nil {
		return err
	}
	var n needs
	(&enqueue{jobs: jobs}).needs(&n)
	return o.read(&n)
}

// Look implements [core.OpsEngine].
func (o *ops) Look(c *pawl.Change, id pawl.ID) error {
	if _, err := o.job(id); err != nil {
		return err
	}
	if err := o.t.complement(&change{Change: *c, ids: []pawl.ID{id}}); err != nil {
		return o.failed(err)
	}
	return nil
}

// Leased implements [core.OpsEngine].
func (o *ops) Leased(l *pawl.Lease) (*job, error) {
	if _, err := o.job(l.ID); err != nil {
		return nil, err
	}
	return o.t.leased(l)
}

// Renew implements [core.OpsEngine].
func (o *ops) Renew(j *job, cursor []byte) { o.t.keep(j, cursor) }

// Settle implements [core.OpsEngine].
func (o *ops) Settle(_ *pawl.Lease, _ *job, s *pawl.Settlement) error {
	return o.t.end(s, pawl.Failure{})
}

// keep extends a lease of this process, resets the crashes of its job, and stores the cursor if it is
// not nil. So the job is no longer a repeat suspect.
func (t *txn) keep(j *job, cursor []byte) {
	if h := t.q.held[j.ID]; h != nil && h.token == j.token {
		t.extends[j.ID] = true
		t.after = append(t.after, func() { h.expires = t.expiry() })
	}
	if j.Crashes == 0 && cursor == nil {
		return
	}
	if cursor != nil {
		j.Cursor = cursor
	}
	if j.isRepeat() {
		t.effects[repeatSlot] = effect{}
	}
	j.Crashes, j.rewritten = 0, true
	t.touch(j)
}

// mutations adds the statements to the pipe that lock and read what the mutations of a group declare.
func (t *txn) mutations(n *needs) error {
	for _, id := range n.ids {
		t.looked[id] = true
	}
	if len(n.rows) == 0 {
		return nil
	}
	t.rows = newRows(t.q, t.ctx, t.tx)
	t.rows.cover.alone = n.alone
	t.after = append(t.after, t.rows.remember)
	t.rows.foresee(&t.tx.held, n.rows)
	return t.rows.err
}

// isOfMutation reports whether a transaction failed because of one mutation.
func isOfMutation(err error) bool {
	var failed *undone
	return errors.As(err, &failed) || errors.Is(err, errAlone)
}

// withoutUndone returns the calls to carry out again after such an error.
func withoutUndone(calls []*call, err error) []*call {
	var failed *undone
	if errors.As(err, &failed) {
		return failed.without(calls)
	}
	return calls
}
