package beanstalkd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/transport"
)

// Settle implements [pawl.Queue].
func (q *Queue) Settle(ctx context.Context, settlements ...pawl.Settlement) error {
	if err := driver.CheckSettle(settlements); err != nil {
		return err
	}
	if err := driver.SupportsSettle(abilities, settlements); err != nil {
		return err
	}
	if err := q.gate.Begin(ctx); err != nil {
		return err
	}
	defer q.gate.End()
	return q.settle(settlements)
}

// ending is a settlement under way.
type ending struct {
	*pawl.Settlement
	grant  *grant
	job    *pawl.Envelope // as it becomes
	body   []byte         // of the copy; nil if the job keeps its body
	answer string         // to the command that ends the lease, or else to the touch
	placed placed
	err    error
	event  pawl.Event
}

// settle ends leases. Each counts by itself.
func (q *Queue) settle(settlements []pawl.Settlement) error {
	errs, now := make([]error, len(settlements)), time.Now()
	byConn, all := make(map[*conn][]*ending), make([]*ending, len(settlements))
	for i := range settlements {
		n := &ending{Settlement: &settlements[i]}
		if n.grant = q.release(n.Lease); n.grant == nil {
			n.err = pawl.ErrLeaseLost
		} else if n.err = n.prepare(now, q.maxJob); n.err == nil {
			byConn[n.grant.conn] = append(byConn[n.grant.conn], n)
		}
		all[i] = n
	}
	for c, some := range byConn {
		q.settleOn(c, some)
	}
	for _, n := range all {
		if n.grant != nil {
			q.finish(n.grant.conn)
		}
	}
	for i, n := range all {
		if n.err == nil {
			q.reporter.Emit(n.event)
			continue
		}
		errs[i] = fmt.Errorf("job %s: %w", n.Lease.ID, n.err)
	}
	return driver.SettleErrors(settlements, errs)
}

// release takes a grant from its holder, nil if the lease is lost. The connection is busy until
// finish.
func (q *Queue) release(l *pawl.Lease) *grant {
	q.mu.Lock()
	defer q.mu.Unlock()
	g := q.held[l.Token]
	if g == nil || g.id != l.ID || g.conn.broken() != nil {
		return nil
	}
	q.forget(g)
	g.conn.busy++
	return g
}

// forget ends a grant. The caller holds mu.
func (q *Queue) forget(g *grant) {
	g.timer.Stop()
	delete(q.held, g.token)
	delete(g.conn.grants, g.number)
}

// finish notes the end of a call that made a connection busy.
func (q *Queue) finish(c *conn) {
	q.mu.Lock()
	defer q.mu.Unlock()
	c.busy--
}

// prepare decides what becomes of the job, and makes the body of the copy if it needs one.
func (n *ending) prepare(now time.Time, limit int) error {
	e, history, err := transport.ParseBody(n.grant.body)
	if err != nil {
		return err
	}
	n.grant.revive(e)
	end := transport.End(n.Settlement, e, history, now)
	if n.job, n.event = end.Job, end.Event; end.Changed {
		n.body = transport.AppendBody(end.Job, end.History, limit)
	}
	n.job.Payload = nil
	return nil
}

// settleOn ends leases of one connection. A copy is stored before its job is deleted, so a failure
// between the two doubles the job and does not lose it. Before that, a touch proves that the lease
// still holds.
func (q *Queue) settleOn(c *conn, all []*ending) {
	if !q.step(c, all, func(n *ending) request {
		pri := serverPriority(n.job.Priority)
		switch {
		case n.body != nil:
			return command(&n.answer, "touch %d", n.grant.number)
		case n.Outcome == pawl.OutcomeAck:
			return command(&n.answer, "delete %d", n.grant.number)
		case n.Outcome == pawl.OutcomeSnooze:
			return command(&n.answer, "release %d %d %d", n.grant.number, pri, seconds(n.Delay))
		}
		return command(&n.answer, "release %d %d 0", n.grant.number, pri)
	}) {
		return
	}
	var copies, dead []*ending
	for _, n := range all {
		switch {
		case n.answer == "NOT_FOUND":
			n.err = pawl.ErrLeaseLost
		case n.answer != "TOUCHED" && n.answer != "DELETED" && n.answer != "RELEASED":
			n.err = fmt.Errorf("the server answered %q", n.answer) // BURIED: it has no memory for a release
		case n.body != nil:
			copies = append(copies, n)
		}
	}
	if !q.step(c, copies, func(n *ending) request {
		delay := seconds(n.Delay)
		if n.Outcome == pawl.OutcomeAbandon {
			delay = maxSeconds // nobody takes it before it is buried
		}
		return c.put(&n.placed, q.tube(n.job.Queue, n.job.Kind), serverPriority(n.job.Priority), delay, n.grant.ttr, n.body)
	}) {
		return
	}
	var placed []*ending
	for _, n := range copies {
		if n.err = n.placed.refused; n.err != nil {
			q.restore(n.grant)
			continue
		}
		placed = append(placed, n)
		if n.Outcome == pawl.OutcomeAbandon {
			dead = append(dead, n)
		}
	}
	if !q.step(c, dead, func(n *ending) request {
		return lookUp(new(found), "reserve-job %d", n.placed.number)
	}, placed...) || !q.step(c, dead, func(n *ending) request {
		return command(&n.answer, "bury %d %d", n.placed.number, serverPriority(n.job.Priority))
	}, placed...) {
		return
	}
	for _, n := range dead {
		if n.answer != "BURIED" { // the copy is delayed for 136 years, and dies when it comes
			q.opts.Logger.Error("cannot bury a dead job; it stays delayed", "id", n.job.ID, "number", n.placed.number, "answer", n.answer)
		}
	}
	q.step(c, placed, func(n *ending) request { return command(&n.answer, "delete %d", n.grant.number) })
}

// step sends a request for each ending. If the connection breaks, it notes that with each and with
// the others that have not ended, and returns false.
func (q *Queue) step(c *conn, some []*ending, of func(n *ending) request, others ...*ending) bool {
	requests := make([]request, len(some))
	for i, n := range some {
		requests[i] = of(n)
	}
	sent, err := c.exchange(0, requests...)
	if err == nil {
		return true
	}
	for _, n := range append(others, some...) {
		switch {
		case errors.Is(err, pawl.ErrClosed):
			n.err = pawl.ErrClosed
		case !sent && n.answer == "":
			n.err = pawl.ErrLeaseLost // it ended with the connection
		default:
			n.err = q.unknown(true, err)
		}
	}
	return false
}

// restore gives a grant back to its holder.
func (q *Queue) restore(g *grant) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.gate.Closed() && g.conn.grants[g.number] == nil {
		q.held[g.token], g.conn.grants[g.number] = g, g
		g.timer.Reset(time.Until(g.until))
	}
}

// Extend implements [pawl.Queue], by touch.
func (q *Queue) Extend(ctx context.Context, leases ...*pawl.Lease) (lost []*pawl.Lease, err error) {
	if err := q.gate.Begin(ctx); err != nil {
		return nil, err
	}
	defer q.gate.End()
	type touched struct {
		*grant
		lease  *pawl.Lease
		answer string
	}
	byConn := make(map[*conn][]*touched)
	q.mu.Lock()
	for _, l := range leases {
		if g := q.held[l.Token]; g == nil || g.id != l.ID || g.conn.broken() != nil {
			lost = append(lost, l)
		} else {
			g.conn.busy++
			byConn[g.conn] = append(byConn[g.conn], &touched{grant: g, lease: l})
		}
	}
	q.mu.Unlock()
	for c, some := range byConn {
		requests := make([]request, len(some))
		for i, one := range some {
			requests[i] = command(&one.answer, "touch %d", one.number)
		}
		began := time.Now()
		_, err := c.exchange(0, requests...)
		for _, one := range some {
			if !q.extend(one.grant, err == nil && one.answer == "TOUCHED", began) {
				lost = append(lost, one.lease)
			}
		}
	}
	return lost, nil
}

// extend ends the extension of a lease, which the server has touched or not. It reports whether the
// lease still holds.
func (q *Queue) extend(g *grant, touched bool, began time.Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	g.conn.busy--
	if q.held[g.token] != g {
		return false
	}
	if !touched {
		q.forget(g)
		return false
	}
	g.until = began.Add(g.length())
	g.timer.Reset(time.Until(g.until))
	return true
}
