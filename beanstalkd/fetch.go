package beanstalkd

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

const (
	maxReserved = 64               // jobs of one pipeline
	maxWait     = 10 * time.Second // of one reserve
	lookAgain   = time.Second      // between looks at what the server does not tell
)

// Fetch implements [pawl.Queue].
func (q *Queue) Fetch(ctx context.Context, r pawl.Request) ([]*pawl.Lease, error) {
	if err := driver.SupportsRequest(q.Abilities(), r); err != nil {
		return nil, fmt.Errorf("beanstalkd: %w", err)
	}
	r, err := driver.CheckRequest(r)
	if err != nil {
		return nil, err
	}
	for {
		if err := q.ready(ctx); err != nil {
			return nil, err
		}
		tubes, err := q.wanted(ctx, &r)
		if err != nil {
			return nil, err
		}
		leases, err := q.take(ctx, &r, tubes)
		if len(leases) > 0 || err != nil {
			return leases, err
		}
		wait := maxWait
		if r.Kinds == nil {
			wait = lookAgain // for new tubes
		}
		switch r.Wait {
		case pawl.WaitNot:
			return nil, pawl.ErrEmpty
		case pawl.WaitDrained, pawl.WaitFinished:
			busy, err := q.busy(ctx, tubes, r.Wait)
			if err != nil {
				return nil, err
			}
			if !busy {
				return nil, pawl.ErrEmpty
			}
			wait = lookAgain
		}
		if leases, err = q.await(ctx, tubes, wait); len(leases) > 0 || err != nil {
			return leases, err
		}
	}
}

// source is a queue of a request, and its tubes.
type source struct {
	queue  string
	weight float64
	tubes  []string
}

// wanted returns the tubes that a request asks for.
func (q *Queue) wanted(ctx context.Context, r *pawl.Request) (sources []source, err error) {
	for _, name := range r.Queues {
		if slices.ContainsFunc(sources, func(s source) bool { return s.queue == name }) {
			continue
		}
		s := source{queue: name, weight: float64(driver.Weight(r, name))}
		if r.Kinds == nil {
			if s.tubes, err = q.tubes(ctx, name); err != nil {
				return nil, err
			}
		}
		for _, kind := range r.Kinds {
			if tube := q.tube(name, kind); len(tube) <= maxTube { // no other has jobs
				s.tubes = append(s.tubes, tube)
			}
		}
		sources = append(sources, s)
	}
	return sources, nil
}

// busy reports whether some jobs are yet to come.
func (q *Queue) busy(ctx context.Context, sources []source, wait pawl.Wait) (bool, error) {
	for _, s := range sources {
		counts, err := q.count(ctx, s.tubes)
		if err != nil {
			return false, err
		}
		for _, c := range counts {
			if c.Ready+c.Leased > 0 || wait == pawl.WaitFinished && c.Delayed > 0 {
				return true, nil
			}
		}
	}
	return false, nil
}

// take leases jobs that are ready. The queues take turns by their weights.
func (q *Queue) take(ctx context.Context, r *pawl.Request, sources []source) (leases []*pawl.Lease, err error) {
	c, err := q.borrow(ctx, false)
	if err != nil {
		return nil, err
	}
	defer func() { q.giveBack(c) }()
	for len(leases) < r.Max && len(sources) > 0 {
		i, n := q.turn(sources, r.Max-len(leases))
		s := sources[i]
		got, dry, err := q.reserve(c, s.tubes, min(n, maxReserved), 0)
		q.serve(s, len(got))
		leases = append(leases, got...)
		switch broken := c.broken(); {
		case broken != nil: // and its leases have ended
			return nil, q.unavailable(broken)
		case err != nil && len(leases) > 0:
			return leases, nil // the next call has the error, if it lasts
		case err != nil:
			return nil, err
		case dry:
			sources = slices.Delete(slices.Clone(sources), i, i+1)
		}
	}
	return leases, nil
}

// turns say which queue is next: the one whose next turn begins first in virtual time, in which a
// turn takes 1 by the weight. A queue that had no job begins at the present.
type turns struct {
	now    float64 // the beginning of the last turn
	served uint64  // turns so far
	queues map[string]turn
}

// turn is the last turn of a queue.
type turn struct {
	end float64 // in virtual time
	at  uint64  // among the turns of all queues
}

// turn returns which source is next, and how many jobs it may give.
func (q *Queue) turn(sources []source, most int) (next, n int) {
	if len(sources) == 1 {
		return 0, most
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	begin, after, at := math.Inf(1), math.Inf(1), uint64(0)
	for i, s := range sources {
		last := q.turns.queues[s.queue]
		begins := max(last.end, q.turns.now)
		if begins < begin || begins == begin && last.at < at {
			next, begin, after, at = i, begins, begin, last.at
		} else {
			after = min(after, begins)
		}
	}
	return next, max(1, min(most, int((after-begin)*sources[next].weight)))
}

// serve notes that a queue gave jobs.
func (q *Queue) serve(s source, n int) {
	if n == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	t := &q.turns
	begins := max(t.queues[s.queue].end, t.now)
	t.served++
	t.now = begins + float64(n-1)/s.weight
	t.queues[s.queue] = turn{begins + float64(n)/s.weight, t.served}
}

// await waits for a job of any source.
func (q *Queue) await(ctx context.Context, sources []source, wait time.Duration) ([]*pawl.Lease, error) {
	var tubes []string
	for _, s := range sources {
		tubes = append(tubes, s.tubes...)
	}
	if len(tubes) == 0 { // no such tube yet
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		case <-q.done:
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
		e, _, err := parseBody(slices.Clone(f.body))
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
	q.emit(events...)
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
	if q.closed {
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
	if q.closed || q.held[g.token] != g || time.Until(g.until) > 0 {
		q.mu.Unlock()
		return
	}
	q.calls.Add(1)
	defer q.calls.Done()
	q.forget(g)
	g.conn.busy++
	defer q.finish(g.conn)
	q.mu.Unlock()
	e, _, err := parseBody(g.body)
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
	q.opts.Logger.Warn("lease expired", "id", e.ID, "kind", e.Kind, "queue", e.Queue)
	q.emit(pawl.Event{Type: pawl.EventReaped, At: time.Now(), Job: e})
}

// revive begins the life of a dead job that was kicked anew.
func (g *grant) revive(e *pawl.Envelope) {
	if g.revived {
		e.Death, e.Attempts, e.BackoffSince = nil, 0, time.Time{}
	}
}
