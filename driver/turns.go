package driver

import "maps"

// Turns decides whose turn it is among queues, and between first attempts and retries within a
// queue. It is start-time fair queuing (Goyal, Vin and Cheng, 1996): a turn of a queue starts when its
// last one finished, or now if that is later. The greater the weight, the shorter the turn. The
// turn that starts first is next.
//
// Each process has turns of its own. Each is fair by itself, and so is their sum. An exact
// interleaving of queues exists only within one process.
type Turns struct {
	queues map[string]turn
	now    uint64 // the start of the last turn
	served uint64 // turns so far
}

type turn struct {
	finish uint64  // of its last turn
	served uint64  // the number of its last turn
	credit float64 // the fraction of a retry that its share has left over
}

const (
	wholeTurn = 1 << 32 // the length of a turn of weight 1
	lastTurn  = 1 << 62 // when the time of turns begins anew
	rounding  = 1e-9    // how far a sum of retry shares may fall short of 1
)

// NewTurns returns turns that nobody has had yet.
func NewTurns() Turns { return Turns{queues: make(map[string]turn)} }

// Clone returns a copy of the turns.
func (ts *Turns) Clone() Turns {
	c := *ts
	c.queues = maps.Clone(ts.queues)
	return c
}

func (ts *Turns) start(q turn) uint64 { return max(ts.now, q.finish) }

// Before reports whether the turn of a queue comes before that of another.
func (ts *Turns) Before(a, b string) bool {
	x, y := ts.queues[a], ts.queues[b]
	if ts.start(x) != ts.start(y) {
		return ts.start(x) < ts.start(y)
	}
	return x.served < y.served
}

// Take notes that a queue had its turn, and its credit.
func (ts *Turns) Take(queue string, weight int, credit float64) {
	q := ts.queues[queue]
	ts.served++
	ts.now = ts.start(q)
	ts.queues[queue] = turn{ts.now + wholeTurn/uint64(weight), ts.served, credit}
	if ts.now < lastTurn {
		return
	}
	for name, q := range ts.queues {
		q.finish -= min(q.finish, ts.now)
		ts.queues[name] = q
	}
	ts.now = 0
}

// Credit returns the fraction of a retry that the share of a queue has left over.
func (ts *Turns) Credit(queue string) float64 { return ts.queues[queue].credit }

// Retry decides whether the next job is a retry, for a queue that has both retries and first attempts.
// It also returns the credit after that job, for Take.
func (ts *Turns) Retry(queue string, share float64) (retry bool, credit float64) {
	if credit = ts.queues[queue].credit + share; credit < 1-rounding {
		return false, credit
	}
	return true, credit - 1
}
