package sqlite

import (
	"errors"
	"fmt"
	"slices"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/core"
)

// scheduler is the state that only the goroutine of the scheduler uses. A transaction changes it after its
// commit. Only the turns change earlier, and a transaction that fails restores them.
type scheduler struct {
	conn    *own
	version int64 // version of the data: it changes when another connection commits

	held    map[pawl.ID]*held
	running map[string]pawl.ID // leased jobs by their effects
	repeats map[pawl.ID]bool   // leased jobs that crashed twice or more
	lines   *lines             // lines as committed; nil if another connection may have changed them
	turns   driver.Turns
	waiting []*fetch // in the order of their arrival
	stirred bool     // something may have changed for the fetches that wait

	noneAwaits bool // no job waits for another

	now      time.Time // wall-clock time of the last transaction
	due      time.Time // when something falls due; zero if a transaction has to look
	resume   time.Time // until when no upkeep runs, since it failed; on monotonic time
	nextLook time.Time // when to look for what the app has committed, on monotonic time
	still    bool      // the wall clock stood still since the last alarm
}

// held is a lease.
type held struct {
	job     *job // the job when it was leased, without its payload
	token   int64
	signal  *driver.Cancellation
	expires time.Time // on monotonic time
}

func (s *scheduler) init() {
	s.held, s.turns = make(map[pawl.ID]*held), driver.NewTurns()
	s.running, s.repeats = make(map[string]pawl.ID), make(map[pawl.ID]bool)
	s.nextLook = time.Now()
}

// schedule carries out calls and due work until the queue is closed.
func (q *Queue) schedule() {
	defer close(q.done)
	for {
		alarm := time.NewTimer(q.untilNext())
		rang := false
		select {
		case <-q.intake.Signal:
		case <-alarm.C:
			rang = true
		}
		alarm.Stop()
		calls, ended, closed := q.intake.Take()
		q.waiting = core.Dismiss(q.waiting, ended)
		before := q.now
		if len(calls) > 0 || rang && q.isDue() {
			q.run(calls)
		}
		q.still = rang && !q.now.After(before)
		if err := q.intake.Poisoned(); err != nil {
			q.endFetches(err)
		}
		if closed {
			break
		}
	}
	q.endFetches(pawl.ErrClosed)
	q.disconnect()
}

// endFetches answers the fetches that wait with an error.
func (q *Queue) endFetches(err error) {
	for _, f := range q.waiting {
		f.Answer(err)
	}
	q.waiting = nil
}

const (
	stillSleep   = 10 * time.Millisecond // shortest sleep while the wall clock stands still
	longestSleep = time.Minute           // within this time, the scheduler notices that a clock was set
	retrySleep   = time.Second           // pause until due work that failed is tried again
)

// untilNext returns how long the scheduler may sleep if no call comes.
func (q *Queue) untilNext() time.Duration {
	if q.intake.Poisoned() != nil {
		return longestSleep
	}
	wait := q.due.Sub(q.wall())
	if q.still {
		wait = max(wait, stillSleep)
	}
	for _, h := range q.held {
		wait = min(wait, time.Until(h.expires))
	}
	if q.opts.Poll != NoPoll {
		wait = min(wait, time.Until(q.nextLook))
	}
	return min(max(wait, time.Until(q.resume)), longestSleep)
}

// isDue reports whether there is something to do without a call.
func (q *Queue) isDue() bool {
	now := time.Now()
	if q.resume.After(now) || q.intake.Refuses() != nil {
		return false
	}
	if q.opts.Poll != NoPoll && !now.Before(q.nextLook) {
		q.nextLook = now.Add(q.opts.Poll)
		if version, err := q.dataVersion(); err != nil || version != q.version {
			return true
		}
	}
	if !q.due.After(q.wall()) {
		return true
	}
	for _, h := range q.held {
		if !h.expires.After(now) {
			return true
		}
	}
	return false
}

// dataVersion returns a number that changes when another connection commits.
func (q *Queue) dataVersion() (version int64, err error) {
	err = q.conn.query("PRAGMA data_version", one(&version))
	return version, err
}

// wall returns the time of the wall clock, without its monotonic part.
func (q *Queue) wall() time.Time { return q.opts.Now().Round(0) }

// run carries out calls in one transaction, and answers them. When a transaction fails because of one of the
// calls, run splits them up, so that no call fails because of another.
func (q *Queue) run(calls []*call) {
	for {
		idle := len(calls) == 0
		if calls = core.Withdraw(calls); len(calls) == 0 && !idle {
			return
		}
		t, err := q.attempt(calls)
		if err == nil {
			t.conclude()
			return
		}
		var unknown *commitError
		upkeep := t != nil && t.upkeep
		if upkeep {
			q.resume = time.Now().Add(retrySleep)
		}
		switch {
		case errors.As(err, &unknown):
			for _, fn := range t.results {
				fn() // so that the jobs can be looked up
			}
			core.Answer(t.calls, unknown)
			return
		case errors.Is(err, pawl.ErrPoisoned):
			core.Answer(calls, err)
			return
		case len(calls) == 0:
			q.resume = time.Now().Add(retrySleep)
			q.opts.Logger.Warn("periodic work failed", "error", err.Error())
			return
		case upkeep && !hasFetch(calls): // again, without upkeep
		case t == nil || len(calls) == 1: // without the write lock, every call would fail
			core.Answer(calls, explain(err))
			return
		default:
			half := len(calls) / 2
			q.run(calls[:half:half])
			q.run(calls[half:])
			return
		}
	}
}

// attempt tries to carry out calls in one transaction. A nil error means that the transaction is committed.
// attempt returns no transaction if it could not begin one.
func (q *Queue) attempt(calls []*call) (*txn, error) {
	wait := time.NewTimer(q.opts.Timeout)
	defer wait.Stop()
	select {
	case q.writing <- struct{}{}:
	case <-wait.C:
		return nil, fmt.Errorf("%w: a call of Update", ErrBusy)
	}
	defer func() { <-q.writing }()
	if err := q.intake.Poisoned(); err != nil {
		return nil, err
	}
	if _, err := q.conn.exec("BEGIN IMMEDIATE"); err != nil {
		return nil, err
	}
	turns := q.turns
	if len(q.waiting) > 0 || hasFetch(calls) {
		turns = q.turns.Clone()
	}
	t := newTxn(q, q.conn)
	err := t.run(calls)
	if err == nil {
		_, err = q.conn.exec("COMMIT")
		err = q.committed(err)
	}
	if err != nil {
		_, _ = q.conn.exec("ROLLBACK") // unless SQLite did it
		q.turns, q.due, q.stirred = turns, time.Time{}, true
		if errors.Is(err, pawl.ErrUnknownOutcome) { // no caller may withdraw a call that may have taken effect
			return t, err
		}
		for _, c := range t.calls {
			c.Reopen()
		}
		for _, f := range t.looking {
			f.Reopen()
		}
	}
	return t, err
}

// committed returns the error of a commit. If the commit failed, and SQLite did not refuse it, the queue refuses
// all later work: after a failed sync, it is unknown what a later sync makes durable. Only the goroutine that
// may write calls it.
func (q *Queue) committed(err error) error {
	if err == nil || isRefusal(err) {
		return err
	}
	q.opts.Logger.Error("queue is poisoned; close it and open it again", "error", err.Error())
	q.intake.Fail(fmt.Errorf("%w: a commit failed: %w", pawl.ErrPoisoned, err))
	return &commitError{err}
}

// isRefusal reports whether a failed commit certainly had no effect.
func isRefusal(err error) bool {
	c := code(err)
	return c == sqlite3.SQLITE_FULL || c == sqlite3.SQLITE_BUSY || c == sqlite3.SQLITE_CONSTRAINT
}

// commitError is the error of a commit with an unknown outcome: the write or the sync of the log failed.
type commitError struct{ cause error }

func (e *commitError) Error() string {
	return fmt.Sprintf("%v, and %v: close and open the queue: %v", pawl.ErrUnknownOutcome, pawl.ErrPoisoned, e.cause)
}

func (e *commitError) Unwrap() []error {
	return []error{pawl.ErrUnknownOutcome, pawl.ErrPoisoned, e.cause}
}

// hasFetch reports whether one of the calls is a fetch, which upkeep serves.
func hasFetch(calls []*call) bool {
	return slices.ContainsFunc(calls, func(c *call) bool { _, is := c.operation.(*fetch); return is })
}
