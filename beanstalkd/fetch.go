package beanstalkd

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/transport"
)

const maxReserved = 64 // jobs of one pipeline

// Fetch implements [pawl.Queue].
func (q *Queue) Fetch(ctx context.Context, r pawl.Request) ([]*pawl.Lease, error) {
	f := transport.Fetching{
		Name: "beanstalkd", Abilities: q.Abilities(), Ready: q.leases.Ready, Sources: q.wanted, Take: q.take, Await: q.await, Busy: q.busy,
	}
	return f.Fetch(ctx, r)
}

// wanted returns the tubes that a request asks for.
func (q *Queue) wanted(ctx context.Context, r *pawl.Request) ([]transport.Source, error) {
	return transport.Sources(r, func(queue, kind string) string {
		tube := q.tube(queue, kind)
		if len(tube) > maxTube {
			return "" // it has no jobs
		}
		return tube
	}, func(queue string) ([]string, error) { return q.tubes(ctx, queue) })
}

// busy reports whether some jobs are yet to come.
func (q *Queue) busy(ctx context.Context, sources []transport.Source, delayed bool) (bool, error) {
	counts, err := q.count(ctx, transport.AllLines(sources))
	return slices.ContainsFunc(counts, func(c pawl.Counts) bool {
		return c.Ready+c.Leased > 0 || delayed && c.Delayed > 0
	}), err
}

// take leases jobs that are ready. The queues take turns by their weights.
func (q *Queue) take(ctx context.Context, most int, sources []transport.Source) ([]*pawl.Lease, error) {
	c, err := q.borrow(ctx, false)
	if err != nil {
		return nil, err
	}
	defer func() { q.giveBack(c) }()
	leases, err := q.turns.Take(most, sources, func(s transport.Source, n int) ([]*pawl.Lease, bool, error) {
		return q.reserve(ctx, c, s.Lines, min(n, maxReserved), 0)
	})
	if broken := c.broken(); broken != nil { // and its leases have ended
		return nil, q.unavailable(broken)
	}
	return leases, err
}

// await waits for a job of any source.
func (q *Queue) await(ctx context.Context, wait time.Duration, _ int, sources []transport.Source) ([]*pawl.Lease, error) {
	tubes := transport.AllLines(sources)
	if len(tubes) == 0 { // no such tube yet
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		case <-q.leases.Done():
		}
		return nil, nil
	}
	c, err := q.borrow(ctx, true)
	if err != nil {
		return nil, err
	}
	defer func() { q.giveBack(c) }()
	// The protocol cannot end a reserve. The server takes back what it gave to a connection that ends.
	stop := context.AfterFunc(ctx, func() { c.fail(errEnded) })
	leases, _, err := q.reserve(ctx, c, tubes, 1, wait)
	if !stop() {
		c.fail(errEnded) // before anybody else borrows the connection
		return nil, nil  // Fetch returns the error of the context
	}
	return leases, err
}

// reserve leases up to n jobs of some tubes. It waits only for the first. Dry says that they had no more.
func (q *Queue) reserve(ctx context.Context, c *conn, tubes []string, n int, wait time.Duration) (leases []*pawl.Lease, dry bool, err error) {
	if len(tubes) == 0 {
		return nil, true, nil
	}
	requests := c.watch(tubes)
	answers := make([]found, n)
	began := time.Now()
	for i := range answers {
		requests = append(requests, lookUp(&answers[i], "reserve-with-timeout %d", seconds(wait)))
	}
	if _, err := c.exchange(wait, requests...); err != nil {
		return nil, false, q.unavailable(err)
	}
	if i := slices.IndexFunc(answers, func(f found) bool { return f.answer != "RESERVED" }); i >= 0 {
		if a := answers[i].answer; a != "TIMED_OUT" && a != "DEADLINE_SOON" {
			return nil, false, q.unavailable(fmt.Errorf("it answered %q to a reserve", a))
		}
		dry = true
	}
	answers = slices.DeleteFunc(answers, func(f found) bool { return f.answer != "RESERVED" })
	leases, err = q.deliver(ctx, c, answers, began, wait > 0)
	return leases, dry, err
}

// watch returns the requests after which the connection watches these tubes alone.
func (c *conn) watch(tubes []string) (requests []request) {
	want := make(map[string]bool, len(tubes))
	for _, tube := range tubes {
		if want[tube] = true; !c.watched[tube] {
			requests = append(requests, command(new(string), "watch %s", tube))
		}
	}
	for tube := range c.watched { // after those, since the server wants one at least
		if !want[tube] {
			requests = append(requests, command(new(string), "ignore %s", tube))
		}
	}
	c.watched = want
	return requests
}

// reservation is a job that a connection has reserved.
type reservation struct {
	conn   *conn
	number uint64 // of the job on the server
	ttr    uint32 // in seconds, with the margin
	tube   string
}

// deliver makes leases of jobs that a reserve gave. Leases start when the reserve began. If it waited, the
// server started them at some later time, so deliver touches the jobs: their leases start again.
func (q *Queue) deliver(ctx context.Context, c *conn, reserved []found, began time.Time, waited bool) ([]*pawl.Lease, error) {
	if len(reserved) == 0 {
		return nil, nil
	}
	answers, touched := make([]found, len(reserved)), make([]string, len(reserved))
	var requests []request
	if waited {
		began = time.Now()
	}
	for i, f := range reserved {
		if waited {
			requests = append(requests, command(&touched[i], "touch %d", f.number))
		}
		requests = append(requests, lookUp(&answers[i], "stats-job %d", f.number))
	}
	if _, err := c.exchange(0, requests...); err != nil {
		return nil, q.unavailable(err) // and the server has taken them back
	}
	var deliveries []transport.Delivery[*reservation]
	for i, f := range reserved {
		if waited && touched[i] != "TOUCHED" {
			continue // its lease has expired, so the server gives the job to another fetch
		}
		of := figures(answers[i].body)
		r := &reservation{conn: c, number: f.number, ttr: uint32(max(1, figure(of, "ttr"))), tube: of["tube"]}
		deliveries = append(deliveries, transport.Delivery[*reservation]{
			Message: r, Body: f.body, Seq: f.number, Revived: figure(of, "kicks") > 0,
			Crashes: max(0, figure(of, "reserves")-1-figure(of, "releases")-figure(of, "buries")),
			Length:  max(time.Second, time.Duration(r.ttr)*time.Second-margin),
		})
	}
	q.mu.Lock()
	for _, d := range deliveries {
		c.reserved[d.Message.number] = d.Message
	}
	q.mu.Unlock()
	return q.leases.Deliver(ctx, began, deliveries), nil
}

// early releases a job whose delay is longer than the server's longest, or whose server has another clock.
func (q *Queue) early(r *reservation, e *pawl.Envelope) bool {
	delay := seconds(time.Until(e.NotBefore))
	if delay <= 1 {
		return false
	}
	_, _ = r.conn.exchange(0, command(new(string), "release %d %d %d", r.number, serverPriority(e.Priority), delay))
	return true
}

// discard buries a job that cannot be read.
func (q *Queue) discard(r *reservation, err error) {
	q.opts.Logger.Error("a job cannot be read; it is buried", "number", r.number, "tube", r.tube, "error", err)
	_, _ = r.conn.exchange(0, command(new(string), "bury %d 0", r.number))
}

// expired releases a job whose lease has expired: version 1.12 of the server may forget to do so as
// long as the connection lasts. It fails if the server has released the job.
func (q *Queue) expired(g *transport.Grant[*reservation], e *pawl.Envelope) bool {
	r := g.Message
	if !q.holds(r) {
		return false
	}
	var answer string
	_, err := r.conn.exchange(0, command(&answer, "release %d %d 0", r.number, serverPriority(e.Priority)))
	return err == nil && answer == "RELEASED"
}

// holds reports whether the connection has not reserved the job anew.
func (q *Queue) holds(r *reservation) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return r.conn.reserved[r.number] == r
}

// over forgets a reservation, after which a fetch that waits may have its connection.
func (q *Queue) over(r *reservation) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if r.conn.reserved[r.number] == r {
		delete(r.conn.reserved, r.number)
	}
}
