package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/core"
)

// Mutate carries out a mutation as part of a group commit and returns when it is durable. A failed
// mutation is undone without the others of the group. The mutation does not have to declare its rows;
// see [driver.Declared].
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
	if err := core.Careful(func() error { return op.mutation.Check(o) }); err != nil {
		t.fail(t.rows.err)
		return err
	}
	undo := t.savepoint()
	for _, part := range o.parts {
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
	t.after = append(t.after, o.durable...)
	t.after = append(t.after, t.rows.onCommit...)
	t.rows.onCommit = nil
	return nil
}

// savepoint begins a part of the transaction that may fail by itself. Undo takes back what the part
// did, and ends it.
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
	t       *txn
	q       *Queue
	parts   []func() error
	named   driver.Named
	durable []func()
}

// Now implements [driver.Ops].
func (o *ops) Now() time.Time { return o.t.Now }

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

// Enqueue implements [driver.Ops].
func (o *ops) Enqueue(jobs ...*pawl.Envelope) ([]pawl.Enqueued, error) {
	if len(jobs) == 0 {
		return nil, nil
	}
	if err := driver.SupportsJobs(abilities, jobs...); err != nil {
		return nil, err
	}
	if _, err := driver.CheckBatch(jobs, o.q.opts.MaxPayload); err != nil {
		return nil, err
	}
	batch, err := o.t.Admit(jobs)
	if err != nil {
		return nil, err
	}
	ids, keys := core.Names(batch)
	err = o.add(ids, keys, func() error {
		o.t.StoreAll(batch)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return core.Results(batch), nil
}

// Hold implements [driver.Ops].
func (o *ops) Hold(l *pawl.Lease) error { return o.Save(l, nil) }

// Save implements [driver.Ops]. Without a cursor it is Hold.
func (o *ops) Save(l *pawl.Lease, cursor []byte) error {
	j, err := o.t.leased(l)
	if err != nil {
		return err
	}
	return o.add([]pawl.ID{l.ID}, nil, func() error {
		o.t.keep(j, cursor)
		return nil
	})
}

// keep extends a lease, forgets the crashes of its job, and stores its cursor if it is not nil. A
// repeat suspect is none any more.
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
	t.stir() // for the repeat suspects that wait for this one
}

// Ack implements [driver.Ops].
func (o *ops) Ack(l *pawl.Lease) error { return o.end(l, l.Ack()) }

// Snooze implements [driver.Ops].
func (o *ops) Snooze(l *pawl.Lease, until time.Time) error {
	return o.end(l, l.Snooze(until.Sub(o.t.Now)))
}

// end adds an operation that settles a lease. Once it is durable, the holder neither settles nor
// extends the lease.
func (o *ops) end(l *pawl.Lease, s pawl.Settlement) error {
	j, err := o.t.leased(l)
	if err != nil {
		return err
	}
	err = o.add([]pawl.ID{l.ID}, nil, func() error {
		before, totals := len(o.t.events), o.t.totals
		if err := o.t.end(&s, pawl.Failure{}); err != nil || !o.t.app {
			return err
		}
		o.q.acked.add(&acked{lease: l, seq: int64(j.Seq), events: slices.Clone(o.t.events[before:]), totals: o.t.totals.Since(totals)})
		return nil
	})
	if err == nil {
		o.durable = append(o.durable, func() { driver.MarkSettled(l) })
	}
	return err
}

// RunNow implements [driver.Ops].
func (o *ops) RunNow(id pawl.ID) error { return o.change(pawl.VerbRunNow, id) }

// Retry implements [driver.Ops].
func (o *ops) Retry(id pawl.ID) error { return o.change(pawl.VerbRetry, id) }

func (o *ops) change(verb pawl.Verb, id pawl.ID) error {
	op := &change{Change: pawl.Change{Verb: verb}, ids: []pawl.ID{id}}
	j, err := o.t.Decide(&op.Change, id, nil)
	if err != nil {
		return err
	}
	var keys []string
	if verb == pawl.VerbRetry {
		keys = core.Takes(&j.Envelope)
	}
	return o.add([]pawl.ID{id}, keys, func() error {
		o.t.Change(&op.Change, j)
		return nil
	})
}

// add adds an operation, with the jobs and the unique keys that it names.
func (o *ops) add(jobs []pawl.ID, keys []string, part func() error) error {
	err := o.named.Add(jobs, keys)
	if err == nil {
		o.parts = append(o.parts, part)
	}
	return err
}
