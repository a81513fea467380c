package memory

import (
	"cmp"
	"slices"

	"github.com/gopawl/pawl/driver"
)

// Which job a fetch gets next: the queues take turns, and in its turn a queue gives its first job, or its first retry
// if the fetch has a retry share.

// fullTurn is the length of a turn of weight 1, in virtual time.
const fullTurn = 1 << 32

// lastTurn is when virtual time starts again at 0.
const lastTurn = 1 << 62

// shareSlack is how far rounding may leave a sum of retry shares below 1.
const shareSlack = 1e-9

// next takes the turn of the queue whose turn starts first, among those that have a
// job, and returns the job to lease. Idle says whether the job starts at once, in a
// free slot. If not, next passes over jobs that crashed. It passes over a job that
// crashed twice or more while another such job is leased.
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

// start returns when the next turn of a queue starts, in the virtual time of
// start-time fair queuing: the time is the start of the last turn, a turn is shorter
// the more weight its queue has, and a queue that had no job for a while comes in
// now, without the turns that it missed.
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
	for _, l := range q.lines { // before the time overflows, it starts again at 0
		l.finish -= min(l.finish, q.virtual)
	}
	q.virtual = 0
}

// pick chooses the job that a queue gives in its turn, nil if it has none. The retry
// share counts while there are first attempts as well; 0 means the common order. The
// fraction that a turn leaves over is kept for the next.
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

// first returns the first ready job of a queue that a fetch asks for and that may be leased. It passes over a job that
// waits for another, whose key is at its limit, or whose effect a leased job has. It ends a job whose effect is done,
// without an attempt.
func (q *Queue) first(l *line, f *fetch, may func(*job) bool) *job {
	if l.paused || q.full(l) {
		return nil
	}
	for i := 0; i < len(l.ready.jobs); {
		switch j := l.ready.jobs[i]; {
		case !driver.Wants(&f.Request, j.Kind) || j.waits() || q.room(l, j) == 0:
			i++
		case q.isDone(j):
			q.skip(j) // the next job moves up
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
