package beanstalkd

import (
	"context"
	"errors"
	"fmt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/transport"
)

// Settle implements [pawl.Queue].
func (q *Queue) Settle(ctx context.Context, settlements ...pawl.Settlement) error {
	if err := driver.SupportsSettle(abilities, settlements); err != nil {
		return fmt.Errorf("beanstalkd: %w", err)
	}
	return q.leases.Settle(ctx, settlements...)
}

// Extend implements [pawl.Queue], by touch.
func (q *Queue) Extend(ctx context.Context, leases ...*pawl.Lease) (lost []*pawl.Lease, err error) {
	return q.leases.Extend(ctx, leases...)
}

// ending is a settlement under way.
type ending struct {
	*transport.Settling[*reservation]
	*reservation
	answer string // to the command that ends the lease, or else to the touch
	placed placed
}

// finish ends leases.
func (q *Queue) finish(_ context.Context, all []*transport.Settling[*reservation]) {
	byConn := make(map[*conn][]*ending)
	for _, n := range all {
		r := n.Grant.Message
		byConn[r.conn] = append(byConn[r.conn], &ending{Settling: n, reservation: r})
	}
	for c, some := range byConn {
		q.settleOn(c, some)
	}
}

// settleOn ends leases of one connection. A copy is stored before its job is deleted, so a failure
// between the two doubles the job and does not lose it. Before that, a touch proves that the lease
// still holds.
func (q *Queue) settleOn(c *conn, all []*ending) {
	if !q.step(c, all, func(n *ending) request {
		pri := serverPriority(n.Job.Priority)
		switch {
		case n.Changed:
			return command(&n.answer, "touch %d", n.number)
		case n.Outcome == pawl.OutcomeAck:
			return command(&n.answer, "delete %d", n.number)
		case n.Outcome == pawl.OutcomeSnooze:
			return command(&n.answer, "release %d %d %d", n.number, pri, seconds(n.Delay))
		}
		return command(&n.answer, "release %d %d 0", n.number, pri)
	}) {
		return
	}
	var copies, dead []*ending
	for _, n := range all {
		switch {
		case n.answer == "NOT_FOUND":
			n.Err = pawl.ErrLeaseLost
		case n.answer != "TOUCHED" && n.answer != "DELETED" && n.answer != "RELEASED":
			n.Err = fmt.Errorf("the server answered %q", n.answer) // BURIED: it has no memory for a release
		case n.Changed:
			copies = append(copies, n)
		}
	}
	if !q.step(c, copies, func(n *ending) request {
		delay := seconds(n.Delay)
		if n.Outcome == pawl.OutcomeAbandon {
			delay = maxSeconds // nobody takes it before it is buried
		}
		return c.put(&n.placed, q.tube(n.Job.Queue, n.Job.Kind), serverPriority(n.Job.Priority), delay, n.ttr, n.Body)
	}) {
		return
	}
	var placed []*ending
	for _, n := range copies {
		if n.Err = n.placed.refused; n.Err != nil {
			n.Kept = true
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
		return command(&n.answer, "bury %d %d", n.placed.number, serverPriority(n.Job.Priority))
	}, placed...) {
		return
	}
	for _, n := range dead {
		if n.answer != "BURIED" { // the copy is delayed for 136 years, and dies when it comes
			q.opts.Logger.Error("cannot bury a dead job; it stays delayed", "id", n.Job.ID, "number", n.placed.number, "answer", n.answer)
		}
	}
	q.step(c, placed, func(n *ending) request { return command(&n.answer, "delete %d", n.number) })
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
			n.Err = pawl.ErrClosed
		case !sent && n.answer == "":
			n.Err = pawl.ErrLeaseLost // it ended with the connection
		default:
			n.Err = q.unknown(true, err)
		}
	}
	return false
}

// renew renews leases by touch. They end with their connection, so each is renewed or lost.
func (q *Queue) renew(_ context.Context, some []*transport.Grant[*reservation]) []error {
	errs, answers := make([]error, len(some)), make([]string, len(some))
	byConn := make(map[*conn][]request)
	q.mu.Lock()
	for i, g := range some {
		r := g.Message
		if r.conn.reserved[r.number] != r {
			continue // it is over, and a fetch may wait on the connection
		}
		if byConn[r.conn] == nil {
			r.conn.busy++
		}
		byConn[r.conn] = append(byConn[r.conn], command(&answers[i], "touch %d", r.number))
	}
	q.mu.Unlock()
	for c, requests := range byConn {
		_, _ = c.exchange(0, requests...)
		q.mu.Lock()
		c.busy--
		q.mu.Unlock()
	}
	for i, answer := range answers {
		if answer != "TOUCHED" || some[i].Message.conn.broken() != nil {
			errs[i] = pawl.ErrLeaseLost
		}
	}
	return errs
}
