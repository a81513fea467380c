package pawl

import "time"

// Limits bound how many jobs of a queue run at a time, and how many start in a period, over all
// workers and processes. A zero field sets no limit. An engine that has limits takes them in its
// options, by the name of the queue, and declares [LimitKeys].
//
// A leased job counts as running, so jobs that a worker fetched ahead count too. Delayed jobs do
// not count: a job that waits for its retry, or that snoozes, leaves its place to others.
//
// A job that a limit keeps from running is blocked. Its State is still [Ready], and it keeps its
// place in the order of its queue. Limits change no other order.
type Limits struct {
	Running       int  // jobs of the queue at a time
	RunningPerKey int  // jobs of the queue with the same [Key] at a time; it does not limit jobs without a key
	Rate          Rate // starts of jobs of the queue
	RatePerKey    Rate // starts of jobs of the queue with the same [Key]; it does not limit jobs without a key
}

// Rate limits how often jobs start. The zero Rate sets no limit.
//
// In no period of length Per are there more than Starts starts, wherever the period begins: the
// start at its beginning counts, the one at its end does not. The grant of a lease is a start,
// also of a retry, after a crash, and of a job that a worker fetches ahead.
//
// Burst jobs may start at once after a pause, and then one each Per/(Starts-Burst+1). So a burst
// costs sustained rate: with 100 starts a minute and a burst of 1, a job may start every 0.6 s, and
// with a burst of 20 every 0.74 s.
//
// The method is the generic cell rate algorithm (ITU-T I.371, annex A), which keeps one time for
// each limit. With T = Per/(Starts-Burst+1) and the tolerance (Burst-1)*T, starts in a period of
// length Per can use up at most Per + Burst*T = (Starts+1)*T, not reaching it, so they are at most
// Starts.
type Rate struct {
	Starts int           // at most this many in any period of length Per
	Per    time.Duration // from 1 ms to 366 days
	Burst  int           // how many may start at once; 0 means 1
}

// PerKey reports whether any of the limits is one for each key.
func (l Limits) PerKey() bool { return l.RunningPerKey > 0 || l.RatePerKey.Starts > 0 }

// Validate checks the limits of a queue. Its error is an [*InvalidError].
func (l Limits) Validate() error {
	for _, limit := range [...]struct {
		field string
		value int
	}{{"Running", l.Running}, {"RunningPerKey", l.RunningPerKey}} {
		if limit.value < 0 || limit.value > MaxRunning {
			return invalid(limit.field, "%d is not between 1 and %d; leave it out for no limit", limit.value, MaxRunning)
		}
	}
	if err := l.Rate.validate("Rate"); err != nil {
		return err
	}
	return l.RatePerKey.validate("RatePerKey")
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
	case int64(r.Burst) > int64(maxRefill/r.Per)*int64(r.Starts-r.Burst+1):
		return invalid(field, "Burst %d of %d starts per %v is used up for more than %v; choose a smaller one", r.Burst, r.Starts, r.Per, maxRefill)
	}
	return nil
}

// Bounds of limits.
const (
	MaxRunning = 1_000_000 // jobs that run at a time
	MaxStarts  = 1_000_000 // starts of a rate
	MinPer     = time.Millisecond
	MaxPer     = 366 * 24 * time.Hour

	maxRefill = 10 * MaxPer // the longest time in which a burst refills
)
