package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/core"
)

// upkeepRaces is how often upkeep may meet a race before calls continue without it.
const upkeepRaces = 10

// run carries out calls in one transaction, and answers them. When a transaction fails because of one of
// the calls, run splits them up, so that no call fails because of another.
func (q *Queue) run(calls []*call) {
	until := time.Now().Add(q.opts.Timeout)
	for try := 0; ; try++ {
		idle := len(calls) == 0
		if calls = core.Withdraw(calls); len(calls) == 0 && !idle {
			return
		}
		ctx, cancel := context.WithDeadline(context.Background(), until)
		t, err := q.attempt(ctx, calls)
		cancel()
		switch {
		case err == nil:
			t.conclude()
			return
		case errors.Is(err, pawl.ErrUnknownOutcome):
			q.doubt(t, err)
			return
		case errors.Is(err, errLost):
			q.loseLeases()
		case isOfMutation(err):
			if calls = withoutUndone(calls, err); len(calls) == 0 {
				return
			}
		case q.conn == nil || q.conn.IsClosed():
			if errors.Is(err, context.DeadlineExceeded) && t.began() && len(calls) > 1 {
				q.halve(calls)
				return
			}
			if q.intake.Refuses() != nil || !q.pause(try, until) {
				q.postpone(calls, fmt.Errorf("%w: %w", ErrUnavailable, err))
				return
			}
			if try == 0 {
				q.opts.Logger.Warn("connection to the server lost", "error", err.Error())
			}
		case isRace(err) && (try < upkeepRaces || t.stage != stageUpkeep) || isLocked(err) && !t.began():
			if !q.pause(try, until) {
				q.postpone(calls, fmt.Errorf("%w: %w", ErrUnavailable, err))
				return
			}
		case isReadOnly(err):
			q.disconnect() // another server of the connection string may be the primary by now
			fallthrough
		default:
			if !q.fail(t, calls, err) {
				return
			}
		}
	}
}

// doubt answers the calls of a transaction with an unknown outcome, and the fetches that waited for its
// leases.
func (q *Queue) doubt(t *txn, err error) {
	for _, fn := range t.results {
		fn() // so that the jobs can be looked up
	}
	for id, token := range t.granted {
		q.doubtful[doubt{id, token}] = true
	}
	core.Answer(t.calls, err)
	q.waiting = slices.DeleteFunc(q.waiting, func(f *fetch) bool {
		if slices.Contains(t.leasing, f) {
			f.Answer(err)
			return true
		}
		f.Reopen()
		return false
	})
}

// fail handles a transaction that cannot succeed unchanged. It reports whether to try the calls again.
func (q *Queue) fail(t *txn, calls []*call, err error) (again bool) {
	upkeep := t != nil && t.stage == stageUpkeep
	if upkeep {
		q.resume = time.Now().Add(retrySleep)
	}
	switch {
	case upkeep && !hasFetch(calls) && len(calls) > 0:
		return true // this time without upkeep
	case len(calls) > 1 && isLocked(err):
		q.part(calls)
	case len(calls) > 1:
		q.halve(calls)
	case len(calls) == 1 && isLocked(err) && time.Now().Before(calls[0].until):
		q.postponeLocked(calls[0])
	case isLocked(err):
		q.postpone(calls, fmt.Errorf("%w: %w", ErrUnavailable, err))
	case len(calls) == 1:
		calls[0].Answer(explain(err))
	default:
		q.postpone(calls, explain(err))
	}
	return false
}

// halve carries out each half of the calls by itself.
func (q *Queue) halve(calls []*call) {
	half := len(calls) / 2
	q.run(calls[:half:half])
	q.run(calls[half:])
}

// pause sleeps before the next try. It reports whether there is time for one.
func (q *Queue) pause(try int, until time.Time) bool {
	left := time.Until(until)
	if left <= 0 {
		return false
	}
	limit := time.Millisecond << min(try, 9)
	time.Sleep(min(limit/2+rand.N(limit), left))
	return true
}

// postpone answers calls with an error, and makes the scheduler try upkeep again later.
func (q *Queue) postpone(calls []*call, err error) {
	core.Answer(calls, err)
	if len(calls) == 0 {
		q.opts.Logger.Warn("periodic work failed", "error", err.Error())
	}
	q.resume = time.Now().Add(retrySleep)
}
