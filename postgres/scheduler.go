package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// scheduler is what the goroutine of the scheduler has to itself. A transaction changes it once
// it is committed, except for the turns, which a transaction that fails puts back.
type scheduler struct {
	conn    *pgx.Conn // nil while there is none
	process int64     // the row of this process
	commits int64     // the number of its last transaction

	held      map[pawl.ID]*held
	claims    map[int64]int // by token, how many jobs of a fetch are still leased
	turns     turns
	unclaimed []int64  // claims whose last job has ended, for the next transaction
	waiting   []*fetch // in the order of their coming
	stirred   bool     // something may have changed for the fetches that wait

	now       time.Time     // of the last transaction
	due       time.Time     // when something falls due; zero if a transaction has to look
	polled    time.Time     // when the scheduler last looked for changes of other processes
	skew      time.Duration // of the clock of the server
	still     bool          // the wall clock stood still since the last alarm
	reapOwner string        // the owner whose other processes have ended, for the next transaction
}

// held is a lease of this process.
type held struct {
	token   int64
	signal  *driver.Cancellation
	expires time.Time // on monotonic time
}

func newScheduler(q *Queue) scheduler {
	return scheduler{held: make(map[pawl.ID]*held), claims: make(map[int64]int), turns: newTurns()}
}

// schedule carries out calls, and what falls due, until the queue is closed.
func (q *Queue) schedule() {
	defer close(q.done)
	for {
		alarm := time.NewTimer(q.untilNext())
		rang := false
		select {
		case <-q.intake.signal:
		case <-alarm.C:
			rang = true
		}
		alarm.Stop()
		calls, ended, closed := q.intake.take()
		q.dismiss(ended)
		before := q.now
		if len(calls) > 0 || rang && q.isDue() {
			q.run(calls)
		}
		q.still = rang && !q.now.After(before)
		if closed {
			break
		}
	}
	for _, f := range q.waiting {
		f.answer(pawl.ErrClosed)
	}
	q.disconnect()
}

const (
	stillSleep   = 10 * time.Millisecond // the least sleep while the wall clock stands still
	longestSleep = time.Minute           // after which a clock that was set is noticed
	retrySleep   = time.Second           // until what fell due, and failed, is tried again
)

// untilNext returns how long the scheduler may sleep when nobody calls.
func (q *Queue) untilNext() time.Duration {
	wait := q.due.Sub(q.wall())
	if q.still {
		wait = max(wait, stillSleep)
	}
	for _, h := range q.held {
		wait = min(wait, time.Until(h.expires))
	}
	if q.opts.Poll != NoPoll {
		wait = min(wait, time.Until(q.polled.Add(q.opts.Poll)))
	}
	return min(wait, longestSleep)
}

// isDue reports whether there is something to do without a call.
func (q *Queue) isDue() bool {
	if !q.due.After(q.wall()) || q.pollIsDue() {
		return true
	}
	now := time.Now()
	for _, h := range q.held {
		if !h.expires.After(now) {
			return true
		}
	}
	return false
}

func (q *Queue) pollIsDue() bool {
	return q.opts.Poll != NoPoll && time.Since(q.polled) >= q.opts.Poll
}

// wall returns the time of the wall clock as far as this process knows it.
func (q *Queue) wall() time.Time {
	if q.opts.Now != nil {
		return q.opts.Now().Round(0)
	}
	return time.Now().Add(q.skew).Round(0)
}

// run carries out calls in one transaction, and answers them. When a transaction fails for one of
// the calls, it splits them up, so that no caller pays for another.
func (q *Queue) run(calls []*call) {
	until := time.Now().Add(q.opts.Timeout)
	for try := 0; ; try++ {
		calls = withdraw(calls)
		ctx, cancel := context.WithTimeout(context.Background(), q.opts.Timeout)
		t, err := q.attempt(ctx, calls)
		cancel()
		switch {
		case err == nil:
			t.conclude(calls)
			return
		case errors.Is(err, pawl.ErrUnknownOutcome):
			for _, fn := range t.results {
				fn() // so that the jobs can be looked up
			}
			answer(calls, err)
			return
		case errors.Is(err, errLost):
			q.loseLeases()
			continue
		case isRace(err) && try < 10:
			continue
		case q.conn == nil || q.conn.IsClosed():
			if !time.Now().Before(until) || q.intake.isClosed() {
				q.postpone(calls, fmt.Errorf("%w: %w", ErrUnavailable, err))
				return
			}
			if try == 0 {
				q.opts.Logger.Warn("connection to the server lost", "error", err.Error())
			}
			q.disconnect()
			time.Sleep(min(10*time.Millisecond<<min(try, 6), time.Until(until)))
		case len(calls) > 1:
			q.run(calls[:len(calls)/2])
			q.run(calls[len(calls)/2:])
			return
		default:
			q.postpone(calls, explain(err))
			return
		}
	}
}

// postpone answers calls with an error, and has the scheduler try what falls due again later.
func (q *Queue) postpone(calls []*call, err error) {
	answer(calls, err)
	if len(calls) == 0 {
		q.opts.Logger.Warn("periodic work failed", "error", err.Error())
	}
	q.due, q.polled = q.wall().Add(retrySleep), time.Now()
}

func answer(calls []*call, err error) {
	for _, c := range calls {
		c.answer(err)
	}
}

// withdraw answers the calls whose context has ended, and returns the others.
func withdraw(calls []*call) []*call {
	return slices.DeleteFunc(calls, func(c *call) bool {
		if c.ctx.Err() == nil {
			return false
		}
		c.answer(driver.NotAccepted(c.ctx))
		return true
	})
}

// attempt tries to carry out calls in one transaction.
func (q *Queue) attempt(ctx context.Context, calls []*call) (*txn, error) {
	if err := q.connect(ctx); err != nil {
		return nil, err
	}
	if q.process == 0 {
		if err := q.register(ctx); err != nil {
			return nil, err
		}
	}
	tx, err := q.conn.Begin(ctx)
	if err != nil {
		return nil, err
	}
	turns := q.turns.clone()
	t := newTxn(q, ctx, tx)
	committed, err := t.commit(calls)
	if !committed {
		q.turns, q.due, q.stirred = turns, time.Time{}, true
		return t, err
	}
	q.commits = t.number
	return t, nil
}

// commit carries out calls and commits the transaction. Where committed is true, err is nil or the
// error of a connection that broke afterwards.
func (t *txn) commit(calls []*call) (committed bool, err error) {
	if err := t.run(calls); err != nil {
		if !t.q.conn.IsClosed() {
			err = errors.Join(err, t.tx.Rollback(t.ctx))
		}
		return false, err
	}
	if err := t.tx.Commit(t.ctx); err != nil {
		return t.q.resolve(err, t.number)
	}
	return true, nil
}

// resolve finds out what became of a commit whose answer was lost. The row of the process is locked
// until the transaction has ended, whichever way, and has its number if it was committed.
func (q *Queue) resolve(err error, number int64) (committed bool, cause error) {
	if !q.conn.IsClosed() {
		return false, err // the server refused the commit
	}
	ctx, cancel := context.WithTimeout(context.Background(), q.opts.Timeout)
	defer cancel()
	for try := 0; ; try++ {
		q.disconnect()
		found := int64(-1)
		look := q.connect(ctx)
		if look == nil {
			look = q.conn.QueryRow(ctx, q.sql(sqlCommits), q.process).Scan(&found)
		}
		switch {
		case look == nil:
			q.opts.Logger.Warn("connection lost during a commit", "committed", found == number, "error", err.Error())
			return found == number, fmt.Errorf("%w: %w", errRace, err)
		case errors.Is(look, pgx.ErrNoRows) || ctx.Err() != nil:
			return false, fmt.Errorf("%w: %w", pawl.ErrUnknownOutcome, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Millisecond << min(try, 6)):
		}
	}
}

// loseLeases forgets the leases of this process, which another process took back.
func (q *Queue) loseLeases() {
	if n := len(q.held); n > 0 {
		q.opts.Logger.Warn("another process took the leases of this one back", "leases", n)
	}
	clear(q.held)
	clear(q.claims)
	q.process = 0
}
