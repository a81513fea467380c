package postgres

import (
	"runtime"
	"time"
)

// grouping is what the scheduler remembers about how its groups formed.
type grouping struct {
	lastGroup  int       // how many calls the last group had
	yieldAfter time.Time // no yields until then, on monotonic time
	inVain     int       // how many waits in a row brought too few calls, at most mostInVain
	skips      int       // how many groups to take without a wait
}

const (
	idleYields = 4                      // how many times in a row the scheduler yields without a new call
	slowYield  = time.Millisecond       // more than a transaction is worth
	groupWait  = 400 * time.Microsecond // a transaction takes one to two milliseconds
	mostInVain = 6
)

// group lets callers that were just answered submit their next calls, so that these share a transaction with
// the calls that arrived in the meantime. Otherwise half of the callers would wait for the transaction of
// the other half.
func (q *Queue) group() {
	most := q.intake.Len() + q.lastGroup
	q.yield(most)
	q.wait(most)
}

// yield lets other goroutines run as long as that brings calls, up to a number. If a yield takes too long,
// the machine is busy, and no yields follow for ten times that long.
func (q *Queue) yield(most int) {
	began, n := time.Now(), q.intake.Len()
	for idle := 0; idle < idleYields && n < most && began.After(q.yieldAfter); idle++ {
		runtime.Gosched()
		if took := time.Since(began); took > slowYield {
			q.yieldAfter = began.Add(10 * took)
		}
		if now := q.intake.Len(); now > n {
			n, idle = now, -1
		}
	}
}

// wait waits for a number of calls, but not longer than groupWait: callers may read something before they
// call again. A lone caller never waits for others. After waits that brought few calls, wait skips more and
// more groups.
func (q *Queue) wait(most int) {
	n := q.intake.Len()
	switch {
	case n == 0 || n >= most || q.lastGroup < 2:
		return
	case q.opts.Now != nil: // the queue uses another clock
		return
	case q.skips > 0:
		q.skips--
		return
	}
	timer := time.NewTimer(groupWait)
	defer timer.Stop()
	now := n
	for waits := true; waits && now < most; now = q.intake.Len() {
		select {
		case <-q.intake.Signal:
		case <-timer.C:
			waits = false
		}
	}
	if q.inVain = min(q.inVain+1, mostInVain); 3*(now-n) >= n {
		q.inVain = 0
	}
	q.skips = 1<<q.inVain - 1
}
