package memory

import (
	"context"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/core"
)

// Mutate carries out a mutation as one transition. The queue ignores the size, and a mutation does
// not have to declare its rows; see [driver.Declared].
//
// Mutate returns the error of Check or Apply, unwrapped, and [pawl.ErrNotAccepted] if ctx has ended.
func (q *Queue) Mutate(ctx context.Context, m driver.Mutation, _ int) error {
	return q.do(ctx, func() error {
		rs := q.snapshot()
		o := &ops{Reader: rs, q: q}
		if err := core.Careful(func() error { return m.Check(o) }); err != nil {
			return err
		}
		// Apply sees only rows. The operations on jobs, which Check found possible, come after it,
		// so that nothing has to be undone if it fails.
		if err := core.Careful(func() error { return m.Apply(rs) }); err != nil {
			return err
		}
		q.tables = rs.tables // before the operations, which may count members of groups
		for _, part := range o.parts {
			part()
		}
		for _, fn := range rs.onCommit {
			fn()
		}
		return nil
	})
}

// Now returns the time by the queue's clock.
func (q *Queue) Now() time.Time { return q.opts.Now() }

// Done returns a channel that is closed when the queue is.
func (q *Queue) Done() <-chan struct{} { return q.done }

// ops implements [driver.Ops]. Each of its methods checks an operation and notes it as a part.
type ops struct {
	driver.Reader
	q     *Queue
	parts []func() // the operations, none of which can fail
	named driver.Named
}

// Now implements [driver.Ops].
func (o *ops) Now() time.Time { return o.q.moves.Now }

// State implements [driver.Ops].
func (o *ops) State(id pawl.ID) (pawl.State, error) {
	if j := o.q.jobs[id]; j != nil {
		return j.State, nil
	}
	return "", nil
}

// Job implements [driver.Ops].
func (o *ops) Job(id pawl.ID) (*pawl.Envelope, error) {
	j, err := o.q.get(id)
	if err != nil {
		return nil, err
	}
	e := j.copy()
	e.History = nil
	return e, nil
}

// Enqueue implements [driver.Ops].
func (o *ops) Enqueue(jobs ...*pawl.Envelope) ([]pawl.Enqueued, error) {
	if len(jobs) == 0 {
		return nil, nil
	}
	if _, err := driver.CheckBatch(jobs, o.q.opts.MaxPayload); err != nil {
		return nil, err
	}
	batch, err := o.q.moves.Admit(jobs)
	if err != nil {
		return nil, err
	}
	ids, keys := core.Names(batch)
	if err := o.add(ids, keys, func() { o.q.moves.StoreAll(batch) }); err != nil {
		return nil, err
	}
	return core.Results(batch), nil
}

// Hold implements [driver.Ops].
func (o *ops) Hold(l *pawl.Lease) error { return o.Save(l, nil) }

// Save implements [driver.Ops]. Without a cursor it is Hold.
func (o *ops) Save(l *pawl.Lease, cursor []byte) error {
	j, err := o.q.held(l)
	if err != nil {
		return err
	}
	return o.add([]pawl.ID{l.ID}, nil, func() {
		j.Crashes = 0
		if cursor != nil {
			j.Cursor = cursor
		}
		o.q.extend(j)
	})
}

// Ack implements [driver.Ops].
func (o *ops) Ack(l *pawl.Lease) error { return o.end(l, l.Ack()) }

// Snooze implements [driver.Ops].
func (o *ops) Snooze(l *pawl.Lease, until time.Time) error {
	return o.end(l, l.Snooze(until.Sub(o.q.moves.Now)))
}

// end adds an operation that settles a lease. After it, the holder neither settles nor extends the
// lease.
func (o *ops) end(l *pawl.Lease, s pawl.Settlement) error {
	j, err := o.q.held(l)
	if err != nil {
		return err
	}
	return o.add([]pawl.ID{l.ID}, nil, func() {
		o.q.moves.End(j, &s, pawl.Failure{})
		driver.MarkSettled(l)
	})
}

// RunNow implements [driver.Ops].
func (o *ops) RunNow(id pawl.ID) error { return o.change(pawl.VerbRunNow, id) }

// Retry implements [driver.Ops].
func (o *ops) Retry(id pawl.ID) error { return o.change(pawl.VerbRetry, id) }

func (o *ops) change(verb pawl.Verb, id pawl.ID) error {
	c := &pawl.Change{Verb: verb}
	j, err := o.q.moves.Decide(c, id, nil)
	if err != nil {
		return err
	}
	var keys []string
	if verb == pawl.VerbRetry {
		keys = core.Takes(&j.Envelope)
	}
	return o.add([]pawl.ID{id}, keys, func() { o.q.moves.Change(c, j) })
}

// add adds an operation, with the jobs and the unique keys that it names.
func (o *ops) add(jobs []pawl.ID, keys []string, part func()) error {
	err := o.named.Add(jobs, keys)
	if err == nil {
		o.parts = append(o.parts, part)
	}
	return err
}
