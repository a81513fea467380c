package redis

import (
	"context"
	"fmt"
	"slices"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Settle implements [pawl.Queue].
func (q *Queue) Settle(ctx context.Context, settlements ...pawl.Settlement) error {
	if err := driver.CheckSettle(settlements); err != nil {
		return err
	}
	if err := driver.SupportsSettle(abilities, settlements); err != nil {
		return err
	}
	op := &settle{settlements: settlements, list: make([]wireSettlement, len(settlements)), errs: make([]error, len(settlements))}
	bytes := 0
	for i := range settlements {
		s := &settlements[i]
		f := driver.FailureOf(s.Cause)
		op.list[i] = wireSettlement{
			ID: string(s.Lease.ID[:]), Token: tokenText(s.Lease.Token), Outcome: s.Outcome, Reason: s.Reason,
			Error: f.Error, Stack: f.Stack, Free: s.Outcome == pawl.OutcomeAbandon && !driver.CountsAttempt(s.Reason),
			Ran: !s.Lease.Started.IsZero(),
		}
		bytes += len(f.Error) + len(f.Stack)
	}
	if err := q.submit(ctx, op, len(settlements), bytes); err != nil {
		return err
	}
	return driver.SettleErrors(settlements, op.errs)
}

// settle is a call of Settle.
type settle struct {
	settlements []pawl.Settlement // nil for a settlement by the queue itself
	list        []wireSettlement
	errs        []error
}

type wireSettlement struct {
	ID      string       `msgpack:"id"`
	Token   string       `msgpack:"tk"`
	Outcome pawl.Outcome `msgpack:"o"`
	Reason  pawl.Reason  `msgpack:"r,omitempty"`
	At      string       `msgpack:"at,omitempty"`
	Error   string       `msgpack:"e,omitempty"`
	Stack   string       `msgpack:"s,omitempty"`
	Free    bool         `msgpack:"nc,omitempty"`  // it counts no attempt
	Ran     bool         `msgpack:"ran,omitempty"` // the attempt began
}

type wireSettle struct {
	Verb string           `msgpack:"v"`
	List []wireSettlement `msgpack:"s"`
}

func (op *settle) request(g *group) any {
	for i := range op.settlements {
		s := &op.settlements[i]
		if s.Outcome == pawl.OutcomeNack || s.Outcome == pawl.OutcomeSnooze {
			op.list[i].At = timeText(g.now.Add(max(s.Delay, 0)))
		}
	}
	if op.settlements == nil || slices.ContainsFunc(op.settlements, func(s pawl.Settlement) bool { return s.Outcome != pawl.OutcomeAck }) {
		return wireSettle{"settle", op.list}
	}
	leases := make([]byte, 0, len(op.list)*(len(pawl.ID{})+8))
	for i := range op.list {
		leases = append(append(leases, op.list[i].ID...), op.list[i].Token...)
	}
	return wireAck{"ack", string(leases)}
}

// wireAck is the form of a call with only acks.
type wireAck struct {
	Verb   string `msgpack:"v"`
	Leases string `msgpack:"l"` // the ID and the token of each lease
}

// note keeps what the events of this call of the group report about the attempts.
func (op *settle) note(g *group, number int) {
	for i := range op.settlements {
		s := &op.settlements[i]
		e := pawl.Event{Job: s.Lease.Envelope, Took: driver.Took(s.Lease), TimedOut: s.Lease.TimedOut, Delay: max(s.Delay, 0)}
		if s.Outcome == pawl.OutcomeNack || s.Outcome == pawl.OutcomeAbandon {
			e.Cause = op.list[i].Error
		}
		g.runs[[2]int{number, i + 1}] = e
	}
}

func (op *settle) result(g *group, b msgpack.RawMessage) error {
	var r struct {
		Lost []int `msgpack:"lost"`
	}
	if err := msgpack.Unmarshal(b, &r); err != nil {
		return err
	}
	for i := range op.list {
		held.Delete(heldKey{idOf(op.list[i].ID), op.list[i].Token})
	}
	if op.settlements == nil {
		return nil
	}
	for _, n := range r.Lost {
		op.errs[n-1] = fmt.Errorf("job %s: %w", op.settlements[n-1].Lease.ID, pawl.ErrLeaseLost)
	}
	return nil
}

// Extend implements [pawl.Queue].
func (q *Queue) Extend(ctx context.Context, leases ...*pawl.Lease) (lost []*pawl.Lease, err error) {
	op := &extend{leases: leases}
	err = q.submit(ctx, op, len(leases), 0)
	return op.lost, err
}

// extend is a call of Extend.
type extend struct {
	leases []*pawl.Lease
	lost   []*pawl.Lease
}

type wireExtend struct {
	Verb   string      `msgpack:"v"`
	Leases []wireLease `msgpack:"l"`
	Ends   string      `msgpack:"ex"`
}

type wireLease struct {
	ID    string `msgpack:"id"`
	Token string `msgpack:"tk"`
}

func (op *extend) request(g *group) any {
	w := wireExtend{Verb: "extend", Leases: make([]wireLease, len(op.leases)), Ends: timeText(g.mono.Add(g.q.opts.Lease))}
	for i, l := range op.leases {
		w.Leases[i] = wireLease{string(l.ID[:]), tokenText(l.Token)}
	}
	return w
}

func (op *extend) result(g *group, b msgpack.RawMessage) error {
	var r struct {
		Lost      []int `msgpack:"lost"`
		Cancelled []int `msgpack:"x"`
	}
	if err := msgpack.Unmarshal(b, &r); err != nil {
		return err
	}
	key := func(n int) heldKey {
		l := op.leases[n-1]
		return heldKey{l.ID, tokenText(l.Token)}
	}
	for _, n := range r.Lost {
		op.lost = append(op.lost, op.leases[n-1])
		held.Delete(key(n))
	}
	for _, n := range r.Cancelled {
		g.q.fire(string(op.leases[n-1].ID[:]), key(n).token)
	}
	return nil
}

// Reap implements [pawl.Queue].
func (q *Queue) Reap(ctx context.Context) (int, error) {
	op := new(reap)
	for {
		before := op.n
		if err := q.submit(ctx, op, 1, 0); err != nil {
			return op.n, err
		}
		if op.n-before < mostDue/2 { // no expired leases are left
			return op.n, nil
		}
	}
}

// reap is a call of Reap.
type reap struct{ n int }

func (*reap) request(*group) any { return verb{"reap"} }

func (op *reap) result(_ *group, b msgpack.RawMessage) error {
	var r struct {
		N int `msgpack:"n"`
	}
	err := msgpack.Unmarshal(b, &r)
	op.n += r.N
	return err
}
