package memory

import (
	"context"
	"maps"
	"math"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// The limits of a queue. A job that a limit blocks stays in its list, and a fetch passes it over.

// pacer counts the starts of one rate.
type pacer struct {
	driver.Pace
	tats map[string]time.Time // by key; "" for the rate of a queue
}

func newPacer(r pawl.Rate) pacer { return pacer{driver.PaceOf(r), make(map[string]time.Time)} }

// left returns how many jobs of a key may start now.
func (p *pacer) left(key string, now time.Time) int {
	if !p.Limits() {
		return math.MaxInt
	}
	if last := p.Last(now); p.tats[key].After(last) {
		p.tats[key] = last // the clock was set back
	}
	return p.Left(p.tats[key], now)
}

// start counts a start of a job with a cost.
func (p *pacer) start(key string, now time.Time, cost int) {
	if !p.Limits() {
		return
	}
	p.tats[key] = p.Start(p.tats[key], now, cost)
	if n := len(p.tats); n >= 1000 && n&(n-1) == 0 {
		maps.DeleteFunc(p.tats, func(_ string, tat time.Time) bool { return !tat.After(now) })
	}
}

// Limits implements [core.Txn].
func (t txn) Limits(queue string) pawl.Limits { return t.limitsOf(queue) }

// countKey adds n to the count of leased or of waiting jobs of a job's key.
func (l *line) countKey(j *job, n int) {
	of := l.leased
	if driver.IsWaiting(j.State) {
		of = l.waiting
	} else if j.State != pawl.Leased {
		return
	}
	if j.Key == "" {
		return
	}
	if of[j.Key] += n; of[j.Key] == 0 {
		delete(of, j.Key)
	}
}

// limitsOf returns the limits in force of a queue.
func (q *Queue) limitsOf(queue string) pawl.Limits {
	if l := q.find(queue); l != nil {
		return l.limits
	}
	return q.opts.Limits[queue]
}

// declared returns the limits that the program declares, for a queue whose limits an operator has set.
func (q *Queue) declared(l *line) *pawl.Limits {
	if !l.set {
		return nil
	}
	limits := q.opts.Limits[l.name]
	return &limits
}

// SetLimits replaces the limits that the options declare for a queue, as an operator does, until SetLimits with nil.
// They also apply to jobs that are already in the queue. A queue may have limits before its first job.
//
// SetLimits returns an [*pawl.InvalidError] for limits that are not valid, and for limits whose InOrder or Fair differs
// from the options.
func (q *Queue) SetLimits(ctx context.Context, queue string, limits *pawl.Limits) error {
	if err := driver.CheckQueue(queue); err != nil {
		return err
	}
	declared := q.opts.Limits[queue]
	if limits == nil {
		limits = &declared
	} else if err := driver.CheckOverride(declared, *limits); err != nil {
		return err
	}
	set := limits != &declared
	return q.do(ctx, func() error {
		if l := q.find(queue); l != nil || set {
			l = q.line(queue)
			l.limits, l.set, l.pace.Pace, l.keyPace.Pace = *limits, set, driver.PaceOf(limits.Rate), driver.PaceOf(limits.RatePerKey)
			if !limits.PerKey() { // nothing would end their rests
				maps.DeleteFunc(l.rests, func(key string, _ time.Time) bool { return key != "" })
			}
		}
		return nil
	})
}

// backlog returns how many jobs of a queue wait, or of one of its keys.
func (q *Queue) backlog(queue, key string) int {
	l := q.find(queue)
	switch {
	case l == nil:
		return 0
	case key != "":
		return l.waiting[key]
	}
	return l.counts.Ready + l.counts.Delayed
}

// start counts a start of a job for the rates of its queue, and for the turns of its keys.
func (l *line) start(j *job, now time.Time) {
	l.pace.start("", now, j.Cost)
	if j.Key != "" {
		l.keyPace.start(j.Key, now, j.Cost)
	}
	l.startFair(j, now)
}

// full reports whether a queue rests, or is at a limit of its own.
func (q *Queue) full(l *line) bool {
	return l.rests[""].After(q.moves.Now) || l.limits.Running > 0 && l.counts.Leased >= l.limits.Running || q.poolFull(l.limits.Pool) || l.pace.left("", q.moves.Now) == 0
}

// poolFull reports whether a pool has no room for a queue with this Running.
func (q *Queue) poolFull(p pawl.Pool) bool { return p.Running > 0 && q.pooled(p) >= p.Running }

// pooled returns how many jobs of the queues of a pool are leased.
func (q *Queue) pooled(p pawl.Pool) (leased int) {
	for _, l := range q.lines {
		if l.limits.Pool.Name == p.Name {
			leased += l.counts.Leased
		}
	}
	return leased
}

// room returns how many more jobs with the key of a job may be leased.
func (q *Queue) room(l *line, j *job) int {
	if j.Key == "" {
		return math.MaxInt
	}
	if l.rests[j.Key].After(q.moves.Now) {
		return 0
	}
	room := l.keyPace.left(j.Key, q.moves.Now)
	if l.inOrder(j) {
		return min(room, l.roomInOrder(j))
	}
	if l.limits.RunningPerKey > 0 {
		room = min(room, max(0, l.limits.RunningPerKey-l.leased[j.Key]))
	}
	return room
}

// unblocked returns the ready jobs of a queue that wait for no other job, whose key has room, and whose effect no
// leased job has.
func (q *Queue) unblocked(l *line) (jobs []*job) {
	before := make(map[string]int)
	for _, j := range l.ready.jobs {
		if j.waits() || q.isRunning(j) || before[j.Key] >= q.room(l, j) {
			continue
		}
		before[j.Key]++
		jobs = append(jobs, j)
	}
	return jobs
}

// countsOf counts the jobs of a queue.
func (q *Queue) countsOf(l *line) pawl.Counts {
	c := l.counts
	c.Blocked = c.Ready - len(q.unblocked(l))
	for _, j := range l.order.holders {
		if j.State == pawl.Dead {
			c.Held++
		}
	}
	return c
}

// rest lets the queue of a leased job, or its key, rest as a settlement says.
func (q *Queue) rest(j *job, s *pawl.Settlement) {
	key, rests := "", j.line.rests
	if s.Rest == pawl.ThisKey {
		key = j.Key
	}
	if until := q.moves.Now.Add(max(s.Delay, 0)); until.After(rests[key]) {
		rests[key] = until
	}
	maps.DeleteFunc(rests, func(_ string, until time.Time) bool { return !until.After(q.moves.Now) })
}

// EndRest ends the rest of a key that [pawl.Throttle] began. It does nothing if the key does not rest. [Queue.Resume]
// ends the rest of a queue.
func (q *Queue) EndRest(ctx context.Context, queue, key string) error {
	if err := driver.CheckRested(queue, key); err != nil {
		return err
	}
	return q.do(ctx, func() error {
		if l := q.find(queue); l != nil {
			delete(l.rests, key)
		}
		return nil
	})
}

// eachRest calls fn with the times at which a rate, or the end of a rest, lets one more job start. A fetch may wait for
// these times.
func (q *Queue) eachRest(fn func(time.Time)) {
	if len(q.waiting) == 0 {
		return
	}
	for _, l := range q.lines {
		if l.counts.Ready == 0 {
			continue
		}
		for _, until := range l.rests {
			if until.After(q.moves.Now) {
				fn(until)
			}
		}
		for _, p := range []*pacer{&l.pace, &l.keyPace} {
			for _, tat := range p.tats {
				if p.Left(tat, q.moves.Now) == 0 {
					fn(p.When(tat, 1))
				}
			}
		}
	}
}
