package pawl

import (
	"fmt"
	"math"
	"time"
)

// Limits bound how many jobs of a queue run at a time, and how many start in a period, over all workers and processes.
// They also bound how many wait. A field that is zero sets no limit. An engine that has limits takes them in its
// options, by the name of the queue, and declares [LimitKeys].
//
// A leased job counts as running, so jobs that a worker fetched ahead count too. Delayed jobs do not count: a job that
// waits for its retry, or that snoozes, makes room for others.
//
// A job that a limit of its key keeps from running is blocked. Its State is still [Ready], and it keeps its place in the order of
// its queue. Limits change nothing else about the order.
type Limits struct {
	Running       int  // jobs of the queue at a time
	RunningPerKey int  // jobs of the queue with the same [Key] at a time; it does not limit jobs without a key
	Rate          Rate // starts of jobs of the queue
	RatePerKey    Rate // starts of jobs of the queue with the same [Key]; it does not limit jobs without a key

	// Pool limits how many jobs of several queues run at a time. An engine that has it declares [SharedPools].
	Pool Pool

	// InOrder runs the jobs of a key one after another, in order. It does not order jobs without a
	// key. RunningPerKey is then 0 or 1. An engine that has it declares [OrderedKeys].
	InOrder KeyOrder

	// Fair lets the keys of the queue take turns, so that a key with many jobs does not delay those of
	// another. An engine that has it declares [FairKeys].
	//
	// A key whose jobs have the [Weight] 3 has three turns while one with jobs of weight 1 has one.
	//
	// Jobs without a key take turns together, as if they had one key. Priority comes before turns: keys
	// take turns among the jobs of one priority. A job gets its turn when it becomes ready. It keeps it
	// when it is released or its process crashes, and gets a new one for a retry. The jobs of a key keep
	// their order. Jobs that are ready when Fair is declared, or no longer declared, run before those that
	// become ready later.
	Fair bool

	// MaxWaiting and MaxWaitingPerKey bound how many jobs of the queue, or of the queue with the same [Key],
	// wait: ready jobs, blocked ones included, and delayed jobs, such as those that wait for their retry. A
	// call of Enqueue that would leave more waiting returns [ErrQueueFull] and stores nothing. Jobs that are
	// in the queue already are never refused: they may exceed the bound as they are retried, moved, or
	// restored, and so may the jobs that schedules, groups, and workflows enqueue. Each is at most
	// 2147483647. An engine that has the bounds declares [BoundedQueues].
	MaxWaiting       int
	MaxWaitingPerKey int // it does not bound jobs without a key
}

// Pool is a limit that several queues share: those whose Pool has the same Name. The zero Pool sets no limit.
//
// A job of a queue starts only while fewer than Running jobs of all queues of the pool run. If the queues have the
// same number, that many of their jobs run at a time. A queue with a lower number leaves the rest of the pool to the
// others: with 10 beside one with 16, it starts no job while 10 or more jobs of both run.
//
// Queues of a pool take turns for it. If a fetch names several of them, these are the turns of the fetch. Fetches that
// wait for room in the pool get it in turn, whichever of the queues they name. A queue belongs to one pool at most, and
// its other limits still apply.
type Pool struct {
	Name    string // 1 to MaxPoolName bytes
	Running int    // this queue starts a job only while fewer jobs of all queues of the pool run
}

// KeyOrder says whether the jobs of a [Key] run in order.
//
// In order means that one job of a key is under way at a time, from its first lease until it is
// acked, dead, or deleted. The others wait, in the order in which they became due, whatever their
// priority. A job keeps its place through retries, snoozes, releases, crashes, and restarts. A key
// orders all kinds of its queue. A job whose kind no worker handles holds up the jobs behind it.
type KeyOrder uint8

// The orders of the jobs of a key.
const (
	OrderNone     KeyOrder = iota // not in order: others run while a job waits for its retry
	OrderContinue                 // in order; after a dead job the next one runs
	OrderHold                     // in order; a job that becomes dead after a lease holds its key until it is retried, deleted, or [VerbReleaseKey] releases the key
)

// String returns the name of the order.
func (o KeyOrder) String() string {
	switch o {
	case OrderNone:
		return "none"
	case OrderContinue:
		return "continue"
	case OrderHold:
		return "hold"
	}
	return fmt.Sprintf("KeyOrder(%d)", uint8(o))
}

// Rate limits how often jobs start. The zero Rate sets no limit.
//
// No period of length Per has more than Starts starts, wherever it begins. A start at its beginning
// counts, and one at its end does not. Each grant of a lease is a start: also for a retry, after a crash,
// and for a job that a worker fetches ahead. A start of a job with a [Cost] counts as that many starts.
//
// Burst jobs may start at once after a pause, and then one every Per/(Starts-Burst+1). So a burst
// lowers the sustained rate: with 100 starts a minute and a burst of 1, a job may start every 0.6
// s, and with a burst of 20 every 0.74 s.
//
// A job starts as soon as a job of cost 1 could, and its whole cost then delays the next ones. So a rate
// keeps the order of jobs, and small jobs do not delay a large one. MaxCost lowers the sustained rate as
// a burst does: one start takes Per/(Starts-Burst-MaxCost+2).
//
// The method is the generic cell rate algorithm (ITU-T I.371, annex A), which keeps one time for
// each limit. With T = Per/(Starts-Burst-MaxCost+2) and the tolerance (Burst-1)*T, starts in a period of
// length Per can use up at most Per + (Burst-1+MaxCost)*T = (Starts+1)*T, not reaching it, so they are at
// most Starts.
type Rate struct {
	Starts  int           // at most this many in any period of length Per
	Per     time.Duration // from 1 ms to 366 days
	Burst   int           // how many may start at once; 0 means 1
	MaxCost int           // the highest [Cost] of a job; 0 means 1
}

// PerKey reports whether any limit or bound is for each key, or the keys take turns.
func (l Limits) PerKey() bool {
	return l.RunningPerKey > 0 || l.RatePerKey.Starts > 0 || l.InOrder != OrderNone || l.Fair || l.MaxWaitingPerKey > 0
}

// Validate checks the limits of a queue. Its error is an [*InvalidError].
func (l Limits) Validate() error {
	for _, limit := range [...]struct {
		field       string
		value, most int
	}{
		{"Running", l.Running, MaxRunning}, {"RunningPerKey", l.RunningPerKey, MaxRunning},
		{"MaxWaiting", l.MaxWaiting, math.MaxInt32}, {"MaxWaitingPerKey", l.MaxWaitingPerKey, math.MaxInt32},
	} {
		if limit.value < 0 || limit.value > limit.most {
			return invalid(limit.field, "%d is not between 1 and %d; leave it out for no limit", limit.value, limit.most)
		}
	}
	if err := l.Pool.validate(); err != nil {
		return err
	}
	switch {
	case l.InOrder > OrderHold:
		return invalid("InOrder", "%d is none of OrderNone, OrderContinue, and OrderHold", l.InOrder)
	case l.InOrder != OrderNone && l.RunningPerKey > 1:
		return invalid("InOrder", "RunningPerKey is %d, and one job of a key runs at a time in order; leave RunningPerKey out", l.RunningPerKey)
	}
	if err := l.Rate.validate("Rate"); err != nil {
		return err
	}
	return l.RatePerKey.validate("RatePerKey")
}

func (p Pool) validate() error {
	switch {
	case p == Pool{}:
		return nil
	case p.Name == "":
		return invalid("Pool", "Running is %d, and the pool has no name; give it one, or leave the pool out", p.Running)
	case len(p.Name) > MaxPoolName:
		return invalid("Pool", "the name has %d bytes, and at most %d are allowed", len(p.Name), MaxPoolName)
	case p.Running < 1 || p.Running > MaxRunning:
		return invalid("Pool", "Running %d of pool %q is not between 1 and %d; leave the pool out for no limit", p.Running, p.Name, MaxRunning)
	}
	return checkName("pool", p.Name)
}

func (r Rate) validate(field string) error {
	switch {
	case r == Rate{}:
		return nil
	case r.Starts < 1 || r.Starts > MaxStarts:
		return invalid(field, "Starts %d is not between 1 and %d; leave the rate out for no limit", r.Starts, MaxStarts)
	case r.Per < MinPer || r.Per > MaxPer:
		return invalid(field, "Per %v is not between %v and %v", r.Per, MinPer, MaxPer)
	case r.Burst < 0:
		return invalid(field, "Burst %d is negative; leave it out for 1", r.Burst)
	case r.Burst > r.Starts:
		return invalid(field, "Burst %d is more than Starts %d", r.Burst, r.Starts)
	case r.MaxCost < 0 || r.MaxCost > MaxCost:
		return invalid(field, "MaxCost %d is not between 1 and %d; leave it out for 1", r.MaxCost, MaxCost)
	case r.Starts-max(1, r.Burst)-max(1, r.MaxCost)+1 < 0:
		return invalid(field, "MaxCost %d and Burst %d leave none of %d starts; their sum is at most Starts + 1", r.MaxCost, max(1, r.Burst), r.Starts)
	case int64(r.Burst)+int64(r.MaxCost) > int64(maxRefill/r.Per)*int64(r.Starts-max(1, r.Burst)-max(1, r.MaxCost)+2):
		return invalid(field, "Burst %d of %d starts per %v is used up for more than %v; choose a smaller one", r.Burst, r.Starts, r.Per, maxRefill)
	}
	return nil
}

// Bounds of limits.
const (
	MaxRunning = 1_000_000 // jobs that run at a time
	MaxStarts  = 1_000_000 // starts of a [Rate] in one period
	MaxCost    = 1000      // the highest [Cost] of a job
	MaxTurns   = 10        // the highest [Weight] of a job
	MinPer     = time.Millisecond
	MaxPer     = 366 * 24 * time.Hour

	MaxPoolName = 128 // bytes of the name of a [Pool]

	maxRefill = 10 * MaxPer // the longest time in which a burst refills
)
