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
		o.Ops = core.Ops[*job]{Moves: &q.moves, Engine: o}
		if err := core.Careful(func() error { return m.Check(o) }); err != nil {
			return err
		}
		// Apply sees only rows. The operations on jobs, which Check found possible, come after it,
		// so that nothing has to be undone if it fails.
		if err := core.Careful(func() error { return m.Apply(rs) }); err != nil {
			return err
		}
		q.tables = rs.tables // before the operations, which may count members of groups
		for _, part := range o.Parts {
			_ = part() // none fails
		}
		for _, fn := range o.Durable {
			fn()
		}
		for _, fn := range rs.onCommit {
			fn()
		}
		return nil
	})
}

// Now returns the time by the queue's clock.
func (q *Queue) Now() time.Time { return q.opts.Now() }

// Done returns a channel that is closed when the queue is closed.
func (q *Queue) Done() <-chan struct{} { return q.done }

// ops implements [driver.Ops].
type ops struct {
	driver.Reader
	core.Ops[*job]
	q *Queue
}

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

// CheckNew implements [core.OpsEngine].
func (o *ops) CheckNew(jobs []*pawl.Envelope) error {
	_, err := driver.CheckBatch(jobs, o.q.opts.MaxPayload)
	return err
}

// Look implements [core.OpsEngine]. All jobs are in memory.
func (o *ops) Look(*pawl.Change, pawl.ID) error { return nil }

// Leased implements [core.OpsEngine].
func (o *ops) Leased(l *pawl.Lease) (*job, error) { return o.q.held(l) }

// Renew implements [core.OpsEngine].
func (o *ops) Renew(j *job, cursor []byte) {
	j.Crashes = 0
	if cursor != nil {
		j.Cursor = cursor
	}
	o.q.extend(j)
}

// Settle implements [core.OpsEngine].
func (o *ops) Settle(_ *pawl.Lease, j *job, s *pawl.Settlement) error {
	o.q.moves.End(j, s, pawl.Failure{})
	return nil
}
