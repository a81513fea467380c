package beanstalkd

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/transport"
)

const maxReserved = 64 // jobs of one pipeline

// Fetch implements [pawl.Queue].
func (q *Queue) Fetch(ctx context.Context, r pawl.Request) ([]*pawl.Lease, error) {
	if err := driver.SupportsRequest(q.Abilities(), r); err != nil {
		return nil, fmt.Errorf("beanstalkd: %w", err)
	}
	r, err := driver.CheckRequest(r)
	if err != nil {
		return nil, err
	}
	f := transport.Fetching{Ready: q.gate.Ready, Sources: q.wanted, Take: q.take, Await: q.await, Busy: q.busy}
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
		return q.reserve(c, s.Lines, min(n, maxReserved), 0)
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
		case <-q.gate.Done():
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
	leases, _, err := q.reserve(c, tubes, 1, wait)
	if !stop() {
		c.fail(errEnded) // before anybody else borrows the connection
		return nil, nil  // Fetch returns the error of the context
	}
	return leases, err
}

// reserve leases up to n jobs of some tubes. It waits only for the first. Dry says that they had no more.
func (q *Queue) reserve(c *conn, tubes []string, n int, wait time.Duration) (leases []*pawl.Lease, dry bool, err error) {
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
	leases, err = q.deliver(c, answers, began, wait > 0)
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

// deliver makes leases of jobs that a reserve gave, and puts away what must not run. Leases start
// when the reserve began. If it waited, the server started them at some later time, so deliver touches
// the jobs: their leases start again.
func (q *Queue) deliver(c *conn, reserved []found, began time.Time, waited bool) (leases []*pawl.Lease, err error) {
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
	var back []request // jobs that are no leases
	var abandons []pawl.Settlement
	var events []pawl.Event
	now := time.Now()
	for i, f := range reserved {
		if waited && touched[i] != "TOUCHED" {
			continue // its lease has expired, so the server gives the job to another fetch
		}
		of := figures(answers[i].body)
		g := &grant{conn: c, number: f.number, body: f.body, ttr: uint32(max(1, figure(of, "ttr")))}
		e, _, err := transport.ParseBody(slices.Clone(f.body))
		if err != nil {
			q.opts.Logger.Error("a job cannot be read; it is buried", "number", f.number, "tube", of["tube"], "error", err)
			back = append(back, command(new(string), "bury %d 0", f.number))
			continue
		}
		if early := e.NotBefore.Sub(now); seconds(early) > 1 { // its delay is longer than the server's longest, or clocks differ
			back = append(back, command(new(string), "release %d %d %d", f.number, serverPriority(e.Priority), seconds(early)))
			continue
		}
		g.id, g.revived = e.ID, e.Death != nil && figure(of, "kicks") > 0
		g.revive(e)
		e.Seq = f.number
		e.Crashes = max(0, figure(of, "reserves")-1-figure(of, "releases")-figure(of, "buries"))
		length := g.length()
		l := &pawl.Lease{Envelope: e, Token: q.hold(g, began.Add(length)), Length: length, Expires: began.Add(length)}
		switch {
		case e.Death != nil: // its abandon was cut short, and it was not kicked
			abandons = append(abandons, l.Abandon(e.Death.Reason, nil))
			continue
		case q.opts.MaxCrashes != NoMaxCrashes && e.Crashes >= q.opts.MaxCrashes:
			abandons = append(abandons, l.Abandon(pawl.ReasonPoison, fmt.Errorf("its lease ended %d times without a settlement", e.Crashes)))
			continue
		}
		leases = append(leases, l)
		own := *e
		own.State, own.LeasedSince, own.Payload = pawl.Leased, now, nil
		fetched := pawl.Event{Type: pawl.EventFetched, At: now, Job: &own}
		if !e.BackoffSince.IsZero() {
			fetched.Backoff = now.Sub(e.BackoffSince)
		}
		events = append(events, fetched)
	}
	if len(back) > 0 {
		if _, err := c.exchange(0, back...); err != nil {
			return nil, q.unavailable(err)
		}
	}
	if len(abandons) > 0 {
		if err := q.settle(abandons); err != nil {
			q.opts.Logger.Error("cannot put a job away; it comes again", "error", err)
		}
	}
	q.reporter.Emit(events...)
	return leases, nil
}

// hold gives out a token. An older grant of the same job on this connection has ended.
func (q *Queue) hold(g *grant, until time.Time) uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.token++
	g.token = q.token
	if old := g.conn.grants[g.number]; old != nil {
		q.forget(old)
	}
	g.until = until
	g.timer = time.AfterFunc(time.Until(until), func() { q.expire(g) })
	g.conn.grants[g.number] = g
	if q.gate.Closed() {
		g.timer.Stop()
	} else {
		q.held[g.token] = g
	}
	return g.token
}

// expire releases a job whose lease has expired: version 1.12 of the server may forget to do so as
// long as the connection lasts.
func (q *Queue) expire(g *grant) {
	q.mu.Lock()
	if q.held[g.token] != g || time.Until(g.until) > 0 || q.gate.Begin(context.Background()) != nil {
		q.mu.Unlock()
		return
	}
	defer q.gate.End()
	q.forget(g)
	g.conn.busy++
	defer q.finish(g.conn)
	q.mu.Unlock()
	e, _, err := transport.ParseBody(g.body)
	if err != nil {
		return // it was read before
	}
	var answer string
	_, err = g.conn.exchange(0, command(&answer, "release %d %d 0", g.number, serverPriority(e.Priority)))
	if err != nil || answer != "RELEASED" {
		return // the server has released it
	}
	g.revive(e)
	e.State, e.Payload, e.Seq = pawl.Ready, nil, g.number
	q.reporter.Emit(pawl.Event{Type: pawl.EventReaped, At: time.Now(), Job: e})
}

// revive begins the life of a dead job that was kicked anew.
func (g *grant) revive(e *pawl.Envelope) {
	if g.revived {
		e.Death, e.Attempts, e.BackoffSince = nil, 0, time.Time{}
	}
}
