package bolt

// turns says whose turn it is among queues and between the two sorts of jobs of one.
// It belongs to the scheduler and lasts over fetches, whichever queues they name.
//
// Among queues it is start-time fair queuing (Goyal, Vin and Cheng, 1996): each turn
// of a queue starts when its last one finished, or now if that is later, and lasts
// the shorter the greater the weight; the turn that starts first is next. With equal
// weights that is round robin. What was idle gains nothing by it.
//
// A turn counts once the fetch that took it has its jobs for good: what was taken is
// undone when that comes to nothing.
type turns struct {
	queues map[queueNumber]*turn
	now    uint64 // the start of the last turn
	served uint64 // turns so far
	taken  []taken
}

// taken is how things stood before a turn.
type taken struct {
	turn *turn
	was  turn
	now  uint64
}

type turn struct {
	finish uint64
	served uint64  // which turn its last one was
	credit float64 // what retries have to come, below 1
}

// wholeTurn is how long a turn of a queue of weight 1 lasts. Before the time of turns
// wraps it begins anew.
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

// next is the index of the source whose turn it is: of those that start at the same
// time the one that was served the longest ago.
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

// took notes that a source had its turn, and what is left of its retries' credit.
func (ts *turns) took(s *source, credit float64) {
	q := s.turn
	ts.taken = append(ts.taken, taken{q, *q, ts.now})
	ts.served++
	ts.now = ts.start(q)
	q.finish, q.served, q.credit = ts.now+wholeTurn/uint64(s.weight), ts.served, credit
}

// undo takes back all turns but the first n that are not for good yet.
func (ts *turns) undo(n int) {
	for i := len(ts.taken) - 1; i >= n; i-- {
		*ts.taken[i].turn, ts.now = ts.taken[i].was, ts.taken[i].now
	}
	ts.taken = ts.taken[:n]
}

// keep makes the turns good.
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

// retry decides whether the next job of a source that has been peeked at is a retry,
// and what its credit is then. Share is the part of retries while there are jobs of both
// sorts, 0 for their common order.
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
