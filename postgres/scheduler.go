package postgres

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/core"
)

// scheduler is the state that only the goroutine of the scheduler uses. A transaction changes it after its
// commit. Only the turns change earlier, and a transaction that fails restores them.
type scheduler struct {
	conn     *pgx.Conn      // nil while there is none
	cleanups sync.WaitGroup // for closing connections
	process  int64          // the row of this process
	commits  int64          // how many commits it tried; each has its own number

	held      map[pawl.ID]*held
	claims    map[int64]int // by token, how many jobs of a fetch are still leased
	turns     driver.Turns
	marks     marks                      // nil unless a fetch has read many entries of the index of ready jobs
	entries   int64                      // entries of that index that the session has read, as last counted
	doubtful  map[doubt]bool             // leases that no caller received; they exist if their commit happened
	unclaimed []int64                    // claims whose last job has ended, for the next transaction
	waiting   []*fetch                   // in the order of their coming
	stirred   bool                       // something may have changed for the fetches that wait
	rest      time.Time                  // when a rate has room for one of these fetches; zero for never
	limited   map[string]bool            // queues that had limits when a fetch last looked
	beside    map[string]map[string]bool // by queue, the queues of its pool that had leases or waited when a fetch last looked
	noted     map[string]bool            // queues in whose rows a fetch noted that it waits for their pools
	swept     pawl.ID                    // the last job with notes that a store of notes has looked for

	grouping

	now, mono time.Time     // time of the last transaction, wall clock and monotonic
	trusted   time.Time     // after this monotonic time, the times of other processes match the wall clock
	due       time.Time     // when something falls due; zero if a transaction has to look
	deferred  []*call       // calls that wait for the lock of another session
	nextTry   time.Time     // when to try one of them again, on monotonic time
	brief     time.Duration // how long the next transaction waits for a lock; 0 means as long as usual
	partUntil time.Time     // until when calls are parted to find those that wait for a lock
	resume    time.Time     // until when no upkeep runs, since it failed; on monotonic time
	nextLook  time.Time     // when to look for what other processes changed, on monotonic time
	skew      time.Duration // difference to the clock of the server
	still     bool          // the wall clock stood still since the last alarm
	expire    dueMark       // behind which to look for jobs past their deadlines
	budget    int           // how many jobs due work may move in a transaction, for each kind of work
	remove    dueMark       // behind which to look for jobs past their retention
	reapAfter int64         // the token up to which the claims of processes that have ended were looked at
	reapOwner string        // the owner whose other processes have ended, for the next transaction
}

// held is a lease of this process.
type held struct {
	token   int64
	signal  *driver.Cancellation
	expires time.Time // on monotonic time
}

func (s *scheduler) init() {
	s.limited, s.beside, s.noted = make(map[string]bool), make(map[string]map[string]bool), make(map[string]bool)
	s.held, s.claims, s.doubtful = make(map[pawl.ID]*held), make(map[int64]int), make(map[doubt]bool)
	s.turns, s.reapAfter = driver.NewTurns(), math.MinInt64
	s.expire, s.remove, s.budget = noDueMark, noDueMark, portions*portion
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
		q.group()
		calls, ended, closed := q.intake.Take()
		q.lastGroup = len(calls)
		q.waiting = core.Dismiss(q.waiting, ended)
		news := q.catchUp()
		before := q.now
		some := len(calls) > 0
		if calls = q.holdBack(calls, false); len(calls) > 0 || !some && (news || rang && q.isDue()) {
			q.run(calls)
		}
		q.runDeferred()
		q.still = rang && !q.now.After(before)
		if closed && len(q.deferred) == 0 {
			break
		}
	}
	for _, f := range q.waiting {
		f.Answer(pawl.ErrClosed)
	}
	q.waiting = nil
	q.releaseLast()
	q.leave()
	q.disconnect()
	q.cleanups.Wait()
}

const (
	stillSleep   = 10 * time.Millisecond // shortest sleep while the wall clock stands still
	longestSleep = time.Minute           // within this time, the scheduler notices that a clock was set
	lockedSleep  = 50 * time.Millisecond // pause until due but locked work is tried again
	retrySleep   = time.Second           // pause until due work that failed is tried again
	never        = 100 * 365 * 24 * time.Hour
)

// untilNext returns how long the scheduler may sleep if no call comes.
func (q *Queue) untilNext() time.Duration {
	wait := earlier(q.rest, q.due).Sub(q.wall())
	if q.still {
		wait = max(wait, stillSleep)
	}
	for _, h := range q.held {
		wait = min(wait, time.Until(h.expires))
	}
	wait = max(min(wait, time.Until(q.nextLook)), time.Until(q.resume))
	if len(q.deferred) > 0 {
		wait = min(wait, time.Until(q.nextTry))
	}
	return min(wait, longestSleep)
}

// isDue reports whether there is something to do without a call.
func (q *Queue) isDue() bool {
	now := time.Now()
	if q.resume.After(now) {
		return false
	}
	if !earlier(q.rest, q.due).After(q.wall()) || q.lookIsDue() {
		return true
	}
	for _, h := range q.held {
		if !h.expires.After(now) {
			return true
		}
	}
	return false
}

func (q *Queue) lookIsDue() bool { return !time.Now().Before(q.nextLook) }

// wall returns this process's estimate of the wall clock.
func (q *Queue) wall() time.Time {
	if q.opts.Now != nil {
		return q.opts.Now().Round(0)
	}
	return time.Now().Add(q.skew).Round(0)
}

// attempt tries to carry out calls in one transaction. It returns the transaction if it has begun one.
func (q *Queue) attempt(ctx context.Context, calls []*call) (*txn, error) {
	if err := q.connect(ctx); err != nil {
		return nil, err
	}
	if q.process == 0 {
		if err := q.register(ctx); err != nil {
			return nil, err
		}
	}
	turns := q.turns
	if len(q.waiting) > 0 || hasFetch(calls) {
		turns = q.turns.Clone()
	}
	q.commits++
	t := newTxn(q, ctx, q.conn)
	committed, err := t.commit(calls)
	if !committed {
		q.turns, q.due, q.stirred = turns, time.Time{}, true
		if t.stage == stageUpkeep && errors.Is(err, context.DeadlineExceeded) {
			q.cutBudget()
		}
		if !errors.Is(err, pawl.ErrUnknownOutcome) {
			t.reopen()
		}
		return t, err
	}
	return t, nil
}

// commit carries out calls and commits the transaction. Where committed is true, err is nil or the
// error of a connection that broke afterwards.
func (t *txn) commit(calls []*call) (committed bool, err error) {
	err = t.run(calls)
	if err == nil && t.vain {
		return true, t.q.rollBack()
	}
	if err == nil && t.tx.decides {
		err = t.tx.send(t.ctx)
	}
	if err == nil {
		reached := false
		t.tx.then(func() { reached = true })
		t.tx.held.Queue("commit")
		err = t.tx.send(t.ctx)
		if err == nil {
			return true, nil
		}
		// An error without a code does not come from the server. A server that ends the connection sends a
		// code, and may have carried out the commit before that.
		if codeOf(err) == "" || reached && t.q.conn.IsClosed() {
			return t.q.resolve(err, t.number)
		}
	}
	return false, errors.Join(err, t.q.rollBack())
}

// rollBack ends a transaction that has failed, even if the time of its calls is up. Otherwise the next
// transaction would continue inside it, and commit its changes.
func (q *Queue) rollBack() error {
	if q.conn.IsClosed() || q.conn.PgConn().TxStatus() == 'I' {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	_, err := q.conn.Exec(ctx, "rollback")
	if err != nil {
		q.disconnect()
	}
	return err
}

// resolve finds out whether a commit happened whose answer was lost. The row of the process is locked
// until that transaction has ended. If the transaction was committed, the row has its number.
func (q *Queue) resolve(err error, number int64) (committed bool, cause error) {
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
	clear(q.doubtful)
	q.process = 0
}
