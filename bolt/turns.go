package bolt

// turns decides whose turn it is among queues, and between first attempts and retries within a
// queue. It belongs to the scheduler and persists across fetches, whichever queues they name.
//
// Among queues it is start-time fair queuing (Goyal, Vin and Cheng, 1996). A turn of a queue
// starts when the queue's previous turn finished, or now if that is later. The greater the
// weight, the shorter the turn. The turn that starts first is next. With equal weights this is
// round robin. A queue gains nothing from being idle.
//
// A turn counts once the fetch that took it has received its jobs. If the fetch fails, its
// turns are undone.
type turns struct {
	queues map[queueNumber]*turn
	now    uint64 // the start of the last turn
	served uint64 // turns so far
	taken  []taken
}

// taken is the state before a turn.
type taken struct {
	turn *turn
	was  turn
	now  uint64
}

type turn struct {
	finish uint64
	served uint64  // the number of its last turn
	credit float64 // fraction of a turn owed to retries, below 1
}

// wholeTurn is the length of a turn of a queue of weight 1. The times of turns are reset before
// they overflow.
const (
	wholeTurn = 1 << 32
	lastTurn  = 1 << 62
)

func (ts *turns) of(n queueNumber) *turn {
	q, ok := ts.queues[n]
	if !ok {
		q = new(turn)
		ts.queues[n] = q
	}
	return q
}

func (ts *turns) start(q *turn) uint64 { return max(ts.now, q.finish) }

// next returns the index of the source whose turn it is. Among sources that start at the same
// time it picks the one served least recently.
func (ts *turns) next(sources []*source) (next int) {
	for i, s := range sources {
		other := sources[next].turn
		a, b := ts.start(s.turn), ts.start(other)
		if a < b || a == b && s.turn.served < other.served {
			next = i
		}
	}
	return next
}

// took records that a source had its turn, and the remaining credit of its retries.
func (ts *turns) took(s *source, credit float64) {
	q := s.turn
	ts.taken = append(ts.taken, taken{q, *q, ts.now})
	ts.served++
	ts.now = ts.start(q)
	q.finish, q.served, q.credit = ts.now+wholeTurn/uint64(s.weight), ts.served, credit
}

// undo undoes all unconfirmed turns but the first n.
func (ts *turns) undo(n int) {
	for i := len(ts.taken) - 1; i >= n; i-- {
		*ts.taken[i].turn, ts.now = ts.taken[i].was, ts.taken[i].now
	}
	ts.taken = ts.taken[:n]
}

// keep confirms the turns.
func (ts *turns) keep() {
	ts.taken = ts.taken[:0]
	if ts.now < lastTurn {
		return
	}
	for _, q := range ts.queues {
		q.finish -= min(q.finish, ts.now)
	}
	ts.now = 0
}

// retry decides whether the next job of a source, which has been peeked at, is a retry. It also
// returns the credit after that job. Share is the proportion of retries while there are jobs of
// both sorts, or 0 for their common order.
func (ts *turns) retry(s *source, share float64) (retry bool, credit float64) {
	credit = s.turn.credit
	switch {
	case s.first == nil || s.again == nil:
		return s.again != nil, credit
	case share == 0:
		return s.again.before(s.first), credit
	}
	const rounding = 1e-9
	if credit += share; credit < 1-rounding {
		return false, credit
	}
	return true, credit - 1
}
