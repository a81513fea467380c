package core

import (
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Ops is the part of [driver.Ops] that the engines share: the operations on jobs that one mutation names. Each
// method checks an operation and adds it as a part. The engine carries out the parts after the check of the
// mutation.
type Ops[J Job] struct {
	Moves  *Moves[J]
	Engine OpsEngine[J]

	Parts   []func() error
	Durable []func() // what follows once the mutation is durable
	named   driver.Named
}

// OpsEngine is what [Ops] needs from an engine besides its moves.
type OpsEngine[J Job] interface {
	// CheckNew refuses new jobs that the engine can never accept, and reads what their admission needs.
	CheckNew(jobs []*pawl.Envelope) error

	// Look reads what the decision about a change needs.
	Look(c *pawl.Change, id pawl.ID) error

	// Leased returns the job of a lease, or an error if the lease is lost.
	Leased(l *pawl.Lease) (J, error)

	// Renew extends the lease of a job, resets its crashes, and stores its cursor unless the cursor is nil.
	Renew(j J, cursor []byte)

	// Settle ends the lease of a job.
	Settle(l *pawl.Lease, j J, s *pawl.Settlement) error
}

// Now implements [driver.Ops].
func (o *Ops[J]) Now() time.Time { return o.Moves.Now }

// Enqueue implements [driver.Ops].
func (o *Ops[J]) Enqueue(jobs ...*pawl.Envelope) ([]pawl.Enqueued, error) {
	if len(jobs) == 0 {
		return nil, nil
	}
	if err := o.Engine.CheckNew(jobs); err != nil {
		return nil, err
	}
	batch, err := o.Moves.Admit(jobs)
	if err != nil {
		return nil, err
	}
	var ids []pawl.ID
	var keys []string
	for _, n := range batch {
		ids, keys = append(ids, n.ID), append(keys, takes(&n.Envelope)...)
	}
	err = o.add(ids, keys, func() error {
		o.Moves.StoreAll(batch)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return Results(batch), nil
}

// Hold implements [driver.Ops].
func (o *Ops[J]) Hold(l *pawl.Lease) error { return o.Save(l, nil) }

// Save implements [driver.Ops]. Without a cursor it is Hold.
func (o *Ops[J]) Save(l *pawl.Lease, cursor []byte) error {
	j, err := o.Engine.Leased(l)
	if err != nil {
		return err
	}
	return o.add([]pawl.ID{l.ID}, nil, func() error {
		o.Engine.Renew(j, cursor)
		return nil
	})
}

// Ack implements [driver.Ops].
func (o *Ops[J]) Ack(l *pawl.Lease) error { return o.end(l, l.Ack()) }

// Snooze implements [driver.Ops].
func (o *Ops[J]) Snooze(l *pawl.Lease, until time.Time) error {
	return o.end(l, l.Snooze(until.Sub(o.Moves.Now)))
}

// end adds an operation that settles a lease. Once it is durable, the holder neither settles nor
// extends the lease.
func (o *Ops[J]) end(l *pawl.Lease, s pawl.Settlement) error {
	j, err := o.Engine.Leased(l)
	if err != nil {
		return err
	}
	err = o.add([]pawl.ID{l.ID}, nil, func() error { return o.Engine.Settle(l, j, &s) })
	if err == nil {
		o.Durable = append(o.Durable, func() { driver.MarkSettled(l) })
	}
	return err
}

// RunNow implements [driver.Ops].
func (o *Ops[J]) RunNow(id pawl.ID) error { return o.change(pawl.VerbRunNow, id) }

// Retry implements [driver.Ops].
func (o *Ops[J]) Retry(id pawl.ID) error { return o.change(pawl.VerbRetry, id) }

func (o *Ops[J]) change(verb pawl.Verb, id pawl.ID) error {
	c := &pawl.Change{Verb: verb}
	if err := o.Engine.Look(c, id); err != nil {
		return err
	}
	j, err := o.Moves.Decide(c, id, nil)
	if err != nil {
		return err
	}
	var keys []string
	if verb == pawl.VerbRetry {
		keys = takes(j.Base())
	}
	return o.add([]pawl.ID{id}, keys, func() error {
		o.Moves.Change(c, j)
		return nil
	})
}

// takes returns the name of the unique key that a job takes, if it has one.
func takes(e *pawl.Envelope) []string {
	if e.UniqueKey == "" {
		return nil
	}
	return []string{UniqueName(e)}
}

// add adds an operation, with the jobs and the unique keys that it names.
func (o *Ops[J]) add(jobs []pawl.ID, keys []string, part func() error) error {
	err := o.named.Add(jobs, keys)
	if err == nil {
		o.Parts = append(o.Parts, part)
	}
	return err
}
