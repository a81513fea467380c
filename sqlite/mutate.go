package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/core"
)

// Mutate carries out a mutation as part of a group commit and returns when it is durable. A failed
// mutation is undone, and the other calls of the group are not. The mutation does not have to declare
// its rows; see driver.Declared.
//
// Size is roughly how many bytes the mutation writes. It keeps commits within limits.
//
// Mutate returns the error of Check or Apply, unwrapped; [pawl.ErrNotAccepted] if ctx ended before
// the queue accepted the mutation; or the error of a failed commit.
func (q *Queue) Mutate(ctx context.Context, m driver.Mutation, size int) error {
	return q.submit(ctx, &mutate{q: q, mutation: m, size: size})
}

// MutateTx carries out a mutation as part of the transaction of [Queue.Update]. After an error, the
// transaction is unchanged.
func (q *Queue) MutateTx(tx *sql.Tx, m driver.Mutation) error {
	found, ok := q.updates.Load(tx)
	if !ok {
		return &pawl.InvalidError{Field: "transaction", Reason: "it is not that of a running Update of this queue"}
	}
	t, err := q.within(context.Background(), tx, &mutate{q: q, mutation: m})
	if err != nil {
		return err
	}
	u := found.(*update)
	u.mutated = append(u.mutated, t)
	return nil
}

// mutate is a call of Mutate.
type mutate struct {
	q        *Queue
	mutation driver.Mutation
	size     int // roughly how many bytes it writes
}

func (op *mutate) Bytes() int { return max(op.size, 0) }

func (op *mutate) apply(t *txn) error {
	if t.rows == nil {
		t.rows = newRows(t.c)
	}
	o := &ops{rows: t.rows, t: t, q: op.q}
	o.Ops = core.Ops[*job]{Moves: &t.Moves, Engine: o}
	if err := core.Careful(func() error { return op.mutation.Check(o) }); err != nil {
		t.fail(t.rows.err)
		return err
	}
	undo := t.savepoint()
	for _, part := range o.Parts {
		if err := part(); err != nil {
			undo()
			return err
		}
	}
	err := core.Careful(func() error { return op.mutation.Apply(t.rows) })
	if t.fail(t.rows.err); err != nil || t.err != nil {
		undo()
		return err
	}
	t.exec("RELEASE SAVEPOINT mutation")
	t.after = append(t.after, o.Durable...)
	t.after = append(t.after, t.rows.onCommit...)
	t.rows.onCommit = nil
	return nil
}

// savepoint begins a part of the transaction that may fail by itself. Undo reverts the part and ends
// it.
func (t *txn) savepoint() (undo func()) {
	t.exec("SAVEPOINT mutation")
	was := *t
	was.settled, was.extended, was.cancelled = maps.Clone(t.settled), maps.Clone(t.extended), maps.Clone(t.cancelled)
	was.sound, was.saved, was.acked = maps.Clone(t.sound), maps.Clone(t.saved), maps.Clone(t.acked)
	return func() {
		err, seq := t.err, t.seq
		*t = was
		t.err, t.seq = err, seq
		t.rows.forget()
		t.lines, t.ownLines = nil, false
		t.exec("ROLLBACK TO SAVEPOINT mutation")
		t.exec("RELEASE SAVEPOINT mutation")
	}
}

// ops implements [driver.Ops].
type ops struct {
	*rows
	core.Ops[*job]
	t *txn
	q *Queue
}

// State implements [driver.Ops].
func (o *ops) State(id pawl.ID) (pawl.State, error) {
	j := o.t.Get(id)
	if j == nil {
		return "", o.t.err
	}
	return j.State, o.t.err
}

// Job implements [driver.Ops].
func (o *ops) Job(id pawl.ID) (*pawl.Envelope, error) {
	j := o.t.Get(id)
	switch {
	case o.t.err != nil:
		return nil, o.t.err
	case j == nil:
		return nil, fmt.Errorf("job %s: %w", id, pawl.ErrNotFound)
	}
	return &j.Envelope, nil
}

// CheckNew implements [core.OpsEngine].
func (o *ops) CheckNew(jobs []*pawl.Envelope) error {
	if err := driver.SupportsJobs(abilities, jobs...); err != nil {
		return err
	}
	_, err := driver.CheckBatch(jobs, o.q.opts.MaxPayload)
	return err
}

// Look implements [core.OpsEngine]. A transaction reads jobs as it needs them.
func (o *ops) Look(*pawl.Change, pawl.ID) error { return nil }

// Leased implements [core.OpsEngine].
func (o *ops) Leased(l *pawl.Lease) (*job, error) { return o.t.leased(l) }

// Renew implements [core.OpsEngine].
func (o *ops) Renew(j *job, cursor []byte) { o.t.keep(j, cursor) }

// Settle implements [core.OpsEngine].
func (o *ops) Settle(l *pawl.Lease, j *job, s *pawl.Settlement) error {
	before, totals := len(o.t.events), o.t.totals
	if err := o.t.end(s, pawl.Failure{}); err != nil || !o.t.app {
		return err
	}
	o.q.acked.add(&acked{lease: l, seq: int64(j.Seq), events: slices.Clone(o.t.events[before:]), totals: o.t.totals.Since(totals)})
	return nil
}

// keep extends a lease, resets the crashes of its job, and stores the cursor if it is not nil. So the
// job is no longer a repeat suspect.
func (t *txn) keep(j *job, cursor []byte) {
	if h := t.q.held[j.ID]; h != nil && h.token == j.token {
		t.extend(j.ID, h)
		t.after = append(t.after, func() {
			c := *h.job
			if c.Crashes = 0; cursor != nil {
				c.Cursor = cursor
			}
			h.job = &c
			delete(t.q.repeats, j.ID)
		})
	}
	if j.Crashes == 0 && cursor == nil {
		return
	}
	if cursor != nil {
		j.Cursor, t.saved[j.ID] = cursor, cursor
	}
	j.Crashes = 0
	t.sound[j.ID] = true
	t.exec(`UPDATE pawl_job SET lane = ?, record = ? WHERE seq = ?`, j.lane(), recordOf(j), int64(j.Seq))
	t.stir() // for the repeat suspects that wait for this job
}
