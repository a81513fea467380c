package sqlite

import (
	"context"
	"database/sql/driver"
	"runtime"
	"sync/atomic"

	"modernc.org/sqlite"

	"github.com/gopawl/pawl"
)

// Ask returns the last column of the rows of a statement on the connection of the scheduler.
func (q *Queue) Ask(ctx context.Context, statement string) ([]driver.Value, error) {
	op := &ask{statement: statement}
	err := q.submit(ctx, op)
	return op.values, err
}

type ask struct {
	statement string
	values    []driver.Value
}

func (op *ask) apply(t *txn) error {
	t.query(op.statement, func(v []driver.Value) error {
		op.values = append(op.values, v[len(v)-1])
		return nil
	})
	return nil
}

// HotStatements are what each job costs.
var HotStatements = []string{sqlPeek, sqlClaim, sqlJobByID, sqlJobBySeq, sqlHolder, sqlPromote, sqlExpired, sqlRetained,
	sqlAwaitedByID, sqlWaits, sqlMeet, sqlNeeded}

// SQLLibrary names the SQLite library of a connection.
const SQLLibrary = sqlLibrary

// CountCommits returns a function that counts the commits of the scheduler that changed rows of other
// packages.
func (q *Queue) CountCommits() func() int {
	var n atomic.Int64
	changed := false
	hooks := q.conn.dc.(sqlite.HookRegisterer)
	hooks.RegisterPreUpdateHook(func(d sqlite.SQLitePreUpdateData) { changed = changed || d.TableName == "pawl_kv" })
	hooks.RegisterCommitHook(func() int32 {
		if changed {
			n.Add(1)
		}
		changed = false
		return 0
	})
	return func() int { return int(n.Load()) }
}

// Crash ends the queue as a crash does, on the goroutine of the scheduler: the transaction that is under way
// is undone, and no other follows.
func (q *Queue) Crash() {
	_, _ = q.conn.exec("ROLLBACK") // there is none after the commit
	q.intake.Fail(pawl.ErrPoisoned)
	go func() { _ = q.Close() }()
}

// FailCommit has the commit of a transaction of the scheduler fail, as a failed sync does. It calls meanwhile
// within that transaction.
func (q *Queue) FailCommit(ctx context.Context, meanwhile func()) error {
	return q.submit(ctx, failCommit(meanwhile))
}

type failCommit func()

func (fn failCommit) apply(t *txn) error {
	fn()
	t.exec("COMMIT") // so that there is no transaction for the next COMMIT
	return nil
}

// BeginClose is Close until it waits.
func (q *Queue) BeginClose() { q.intake.Close() }

// SleepsLongest reports whether the scheduler of a closed queue saw nothing to do.
func (q *Queue) SleepsLongest() bool {
	<-q.done
	return q.untilNext() == longestSleep
}

// AwaitFetch returns once a fetch waits.
func (q *Queue) AwaitFetch(ctx context.Context) error {
	for waiting := false; !waiting; {
		if err := q.submit(ctx, inspect(func() { waiting = len(q.waiting) > 0 })); err != nil {
			return err
		}
	}
	return nil
}

type inspect func()

func (fn inspect) apply(*txn) error {
	fn()
	return nil
}

// Leave has the scheduler take an operation that changes nothing, and returns a channel for the answer.
func (q *Queue) Leave() <-chan error {
	c := newCall(context.Background(), tick{})
	answer := make(chan error, 1)
	err := q.intake.Put(c)
	for err == nil && q.intake.Len() > 0 {
		runtime.Gosched()
	}
	go func() {
		if err == nil {
			<-c.Done
			err = c.Err
		}
		answer <- err
	}()
	return answer
}
