package memory

import (
	"cmp"
	"slices"

	"github.com/gopawl/pawl/driver"
)

// Which job a fetch gets next: the queues take turns, and in its turn a queue gives
// its first job, or the first retry where those have a share of their own.

// fullTurn is the length of a turn of weight 1, in virtual time.
const fullTurn = 1 << 32

// lastTurn is when virtual time begins anew.
const lastTurn = 1 << 62

// shareSlack is what a sum of retry shares may fall short of 1 by rounding.
const shareSlack = 1e-9

// next is the job to lease next, of which the queue has had its turn: the one whose
// turn starts first, of those that have a job. Idle says whether a slot is free for it,
// in which it starts at once. Without one a job that crashed is passed over; and one
// that crashed twice or more is passed over while another of that sort is leased.
func (q *Queue) next(lines []*line, f *fetch, idle bool) *job {
	repeat := func() bool {
		return slices.ContainsFunc(q.leased.jobs, func(j *job) bool { return j.Crashes >= 2 })
	}
	may := func(j *job) bool {
		return j.Crashes == 0 || idle && (j.Crashes == 1 || !repeat())
	}
	slices.SortStableFunc(lines, func(a, b *line) int {
		return cmp.Or(cmp.Compare(q.start(a), q.start(b)), cmp.Compare(a.turn, b.turn))
	})
	for _, l := range lines {
		if j := q.pick(l, f, may); j != nil {
			q.turn(l, driver.Weight(&f.Request, l.name))
			return j
		}
	}
	return nil
}

// start is when the next turn of a queue starts, in virtual time. That is the time of
// the fair queuing which is named after it: it stands at the start of the last turn,
// a turn is the shorter the more weight its queue has, and a queue that had no job
// for a while comes in now, without the turns that it missed.
func (q *Queue) start(l *line) uint64 { return max(l.finish, q.virtual) }

// turn gives a queue its turn.
func (q *Queue) turn(l *line, weight int) {
	q.turns++
	l.turn = q.turns
	q.virtual = q.start(l)
	l.finish = q.virtual + fullTurn/uint64(weight)
	if q.virtual < lastTurn {
		return
	}
	for _, l := range q.lines { // before the time wraps it begins anew
		l.finish -= min(l.finish, q.virtual)
	}
	q.virtual = 0
}

// pick chooses the job that a queue gives in its turn, nil when it has none. The retry
// share counts while there are first runs as well; 0 stands for the common order.
// What a turn leaves of it is kept for the next.
func (q *Queue) pick(l *line, f *fetch, may func(*job) bool) *job {
	if f.RetryShare == 0 {
		return q.first(l, f, may)
	}
	retry := q.first(l, f, func(j *job) bool { return j.Attempts > 0 && may(j) })
	fresh := q.first(l, f, func(j *job) bool { return j.Attempts == 0 && may(j) })
	if retry == nil || fresh == nil {
		return cmp.Or(retry, fresh)
	}
	if l.credit += f.RetryShare; l.credit >= 1-shareSlack {
		l.credit--
		return retry
	}
	return fresh
}

// first is the first ready job of a queue that a fetch asks for and that may be leased. A job that
// waits for another, or whose key is at its limit, is passed over. A job that it comes to whose effect is done is ended without a
// run; one whose effect another job is about to have is passed over.
func (q *Queue) first(l *line, f *fetch, may func(*job) bool) *job {
	if l.paused || q.full(l) {
		return nil
	}
	for i := 0; i < len(l.ready.jobs); {
		switch j := l.ready.jobs[i]; {
		case !driver.Wants(&f.Request, j.Kind) || j.waits() || q.room(l, j) == 0:
			i++
		case q.isDone(j):
			q.skip(j) // and the next job moves up
			if l.inOrder(j) {
				i = 0 // the next job of its key may be one that was passed over
			}
		case may(j) && !q.isRunning(j):
			return j
		default:
			i++
		}
	}
	return nil
}
