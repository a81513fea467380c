package redis

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/core"
)

// scheduler is the state that only the goroutine of the scheduler uses.
type scheduler struct {
	number  int64              // number of the last group
	turns   msgpack.RawMessage // turns of the queues; only the script reads them
	waiting []*call            // fetches, in the order of their arrival
	due     time.Time          // when something falls due by the wall clock; zero for never
	expiry  time.Time          // when a lease expires, by the clock of leases; zero for never
	looked  time.Time          // when the last group was carried out, on monotonic time
	wall    time.Time          // the wall clock at the last alarm or call
	still   bool               // it stood still until the last alarm
}

// group is a set of calls that one run of the script carries out.
type group struct {
	q      *Queue
	now    time.Time // the wall clock
	mono   time.Time // the clock of leases
	sent   time.Time // on monotonic time
	calls  []*call
	plain  []*call  // calls with only plain jobs
	full   bool     // the memory of the server is full, and no call stores jobs
	leased []string // the rows and records of the jobs that it leased, for the fetches in their order
	runs   map[[2]int]pawl.Event
}

// wireGroup is the argument of the script.
type wireGroup struct {
	Now    string             `msgpack:"now"`
	Mono   string             `msgpack:"mono"`
	ID     string             `msgpack:"id"` // of this process
	Number int64              `msgpack:"n"`
	Max    int                `msgpack:"mc"` // crashes
	Events bool               `msgpack:"ev"`
	Due    int                `msgpack:"due"`
	Head   int                `msgpack:"head"` // entries of a history
	Tail   int                `msgpack:"tail"`
	TTL    int64              `msgpack:"ttl"`
	Bell   bool               `msgpack:"bell"`
	Full   bool               `msgpack:"full,omitempty"`
	Turns  msgpack.RawMessage `msgpack:"t,omitempty"`
	Plain  []plainRun         `msgpack:"p,omitempty"`
	Ops    []any              `msgpack:"ops"`
}

// wireAnswer is what the script returns.
type wireAnswer struct {
	Results   []msgpack.RawMessage     `msgpack:"r"`
	Events    []wireEvent              `msgpack:"ev"`
	Counts    map[pawl.EventType]int64 `msgpack:"c"`
	Due       string                   `msgpack:"due"`
	Expiry    string                   `msgpack:"ex"`
	More      bool                     `msgpack:"more"`
	Turns     msgpack.RawMessage       `msgpack:"t"`
	Cancelled [][]string               `msgpack:"x"`
	Damaged   []string                 `msgpack:"bad"` // jobs whose rows cannot be read
}

const (
	mostDue    = 2000             // due jobs that one run of the script moves
	answerTTL  = 30 * time.Minute // how long the server keeps the last answer of a process
	stillSleep = 10 * time.Millisecond
	retrySleep = time.Second // pause until due work that failed is tried again
)

// schedule carries out calls and due work until the queue is closed.
func (q *Queue) schedule() {
	defer close(q.done)
	for {
		alarm := time.NewTimer(q.untilNext())
		rang := false
		select {
		case <-q.intake.Signal:
		case <-alarm.C:
			rang = true
		}
		alarm.Stop()
		q.settleDown()
		calls, notes, closed := q.intake.Take()
		if len(calls)+len(notes) > 0 || rang && q.isDue() {
			q.run(calls)
		} else {
			q.waiting = slices.DeleteFunc(q.waiting, func(c *call) bool { return c.IsWithdrawn() })
		}
		now := q.now()
		q.still, q.wall = rang && !now.After(q.wall), now
		if closed {
			break
		}
	}
	for _, c := range q.waiting {
		if c.Accept() {
			c.Answer(pawl.ErrClosed)
		}
	}
	q.waiting = nil
}

// untilNext returns how long the scheduler may sleep if no call comes.
func (q *Queue) untilNext() time.Duration {
	wait := mostSleep
	if !q.due.IsZero() {
		wait = min(wait, q.due.Sub(q.now()))
	}
	if q.still {
		wait = max(wait, stillSleep)
	}
	if !q.expiry.IsZero() {
		wait = min(wait, q.expiry.Sub(q.mono()))
	}
	if q.opts.Poll != NoPoll {
		wait = min(wait, time.Until(q.nextLook()))
	}
	return max(wait, 0)
}

// nextLook returns when to look for what other processes changed.
func (q *Queue) nextLook() time.Time {
	if len(q.waiting) > 0 {
		return q.looked.Add(q.opts.Poll)
	}
	return q.looked.Add(mostSleep)
}

// isDue reports whether there is something to do without a call.
func (q *Queue) isDue() bool {
	return !q.due.IsZero() && !q.due.After(q.now()) || !q.expiry.IsZero() && !q.expiry.After(q.mono()) ||
		q.opts.Poll != NoPoll && !q.nextLook().After(time.Now())
}

// run carries out calls and waiting fetches.
func (q *Queue) run(calls []*call) {
	for more := true; more; calls = nil {
		g := q.newGroup()
		for _, c := range slices.Concat(q.waiting, calls) {
			if c.Accept() {
				g.add(c)
			}
		}
		q.waiting = nil
		answer, err := g.carryOut()
		if isFull(err) {
			g = g.part(err)
			answer, err = g.carryOut()
		}
		q.looked = time.Now()
		if err != nil {
			q.due, q.expiry = g.now.Add(retrySleep), time.Time{}
			g.fail(err)
			return
		}
		q.due, q.expiry = timeOf(answer.Due), timeOf(answer.Expiry)
		g.conclude(answer)
		more = answer.More
	}
}

// newGroup returns a group of calls.
func (q *Queue) newGroup(calls ...*call) *group {
	g := &group{q: q, now: q.now(), mono: q.mono(), sent: time.Now(), runs: make(map[[2]int]pawl.Event)}
	for _, c := range calls {
		g.add(c)
	}
	return g
}

func (g *group) add(c *call) {
	if p, ok := c.operation.(*put); ok && p.plain {
		g.plain = append(g.plain, c)
	} else {
		g.calls = append(g.calls, c)
	}
}

// part answers the calls that store jobs of a group that the server refused because its memory is full, so that no
// other call fails because of them. It returns the group of the other calls. Plain jobs need memory. Jobs with a
// unique key may be stored already, so the script carries out each call with such jobs by itself.
func (g *group) part(refused error) *group {
	others := g.q.newGroup()
	others.full = true
	alone := len(g.plain)+len(g.calls) == 1
	core.Answer(g.plain, refused)
	for _, c := range g.calls {
		if !c.stores() {
			others.add(c)
			continue
		}
		one, err := g.q.newGroup(c), refused
		var answer *wireAnswer
		if !alone {
			answer, err = one.carryOut()
		}
		if err == nil {
			one.conclude(answer)
			continue
		}
		one.fail(err)
		alone = alone || !isFull(err) // do not wait for the server for each call
	}
	return others
}

// carryOut runs the script for the group.
func (g *group) carryOut() (*wireAnswer, error) {
	q := g.q
	q.number++
	request := wireGroup{
		Now: timeText(g.now), Mono: timeText(g.mono), ID: q.process, Number: q.number, Max: q.opts.MaxCrashes,
		Events: q.reporter.Listened(), Due: mostDue, Head: pawl.HistoryKeepHead, Tail: pawl.HistoryKeepTail,
		TTL: answerTTL.Milliseconds(), Bell: q.bell != nil, Full: g.full, Turns: q.turns, Ops: make([]any, 0, len(g.calls)),
	}
	for i, c := range g.calls {
		request.Ops = append(request.Ops, c.request(g))
		if s, ok := c.operation.(*settle); ok {
			s.note(g, i+1)
		}
	}
	args := []any{nil}
	for _, c := range g.plain {
		request.Plain, args = c.operation.(*put).pack(g, request.Plain, args)
	}
	var err error
	if args[0], err = msgpack.Marshal(request); err != nil {
		return nil, err
	}
	reply, err := q.eval(args)
	if err != nil {
		return nil, err
	}
	answer := new(wireAnswer)
	if err := msgpack.Unmarshal([]byte(reply[0]), answer); err != nil {
		return nil, fmt.Errorf("answer of the script: %w: %w", pawl.ErrCorrupt, err)
	}
	if len(answer.Results) != len(g.calls) {
		return nil, fmt.Errorf("answer of the script: %w: %d results of %d calls", pawl.ErrCorrupt, len(answer.Results), len(g.calls))
	}
	g.leased = reply[1:]
	return answer, nil
}

// errWait is the result of a fetch that waits.
var errWait = errors.New("wait")

// conclude reports the events of a group that was carried out, and answers its calls.
func (g *group) conclude(a *wireAnswer) {
	g.q.turns = a.Turns
	results := make([]error, len(g.calls))
	for i, c := range g.calls {
		results[i] = c.result(g, a.Results[i])
	}
	for _, pair := range a.Cancelled {
		if len(pair) == 2 {
			g.q.fire(pair[0], pair[1])
		}
	}
	var totals driver.Totals
	for kind, n := range a.Counts {
		totals.Count(kind, n)
	}
	g.q.reporter.Count(totals)
	for _, id := range a.Damaged {
		g.q.opts.Logger.Error("passed over a job whose row is damaged", "id", idOf(id).String())
	}
	for i := range a.Events {
		g.report(&a.Events[i])
	}
	for _, c := range g.plain {
		c.operation.(*put).presume()
		c.Answer(nil)
	}
	for i, c := range g.calls {
		if results[i] != errWait {
			c.Answer(results[i])
		} else if c.reopen() {
			g.q.waiting = append(g.q.waiting, c)
		}
	}
}

// fail answers the calls of a group that was not carried out, or whose outcome is unknown. Waiting fetches end, too,
// so that their workers report that the queue does not work.
func (g *group) fail(err error) {
	for _, c := range slices.Concat(g.plain, g.calls) {
		if p, ok := c.operation.(*put); ok && errors.Is(err, pawl.ErrUnknownOutcome) {
			p.presume()
		}
		c.Answer(err)
	}
}

// wireEvent is an event of the script.
type wireEvent struct {
	Type  pawl.EventType `msgpack:"t"`
	ID    string         `msgpack:"id"`
	Row   string         `msgpack:"m"`
	Cause string         `msgpack:"c"`
	Op    int            `msgpack:"op"` // the number of the call, and of the settlement in it
	Index int            `msgpack:"i"`
}

// report logs and emits an event.
func (g *group) report(w *wireEvent) {
	q := g.q
	e, settled := g.runs[[2]int{w.Op, w.Index}]
	job := new(pawl.Envelope)
	if settled {
		*job = *e.Job
	}
	m, err := parseRow(w.ID, w.Row)
	if err != nil {
		q.opts.Logger.Error("unreadable event", "error", err)
		return
	}
	m.fill(job, w.ID)
	job.Payload, job.History = nil, nil
	e.Type, e.At, e.Job = w.Type, g.now, job
	if w.Cause != "" {
		e.Cause = w.Cause
	}
	if w.Type == pawl.EventFetched && !job.BackoffSince.IsZero() {
		e.Backoff = g.now.Sub(job.BackoffSince)
	}
	if w.Type != pawl.EventRetried {
		e.Delay = 0
	}
	q.reporter.Emit(e)
}

// fire signals to the holder of a lease of this process that its job was cancelled.
func (q *Queue) fire(id, token string) {
	if signal, found := held.Load(heldKey{idOf(id), token}); found {
		signal.(*driver.Cancellation).Fire()
	}
}
