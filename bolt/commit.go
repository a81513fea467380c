package bolt

import (
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"sync"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt/internal/dbfile"
)

// undone is the error of a transaction that changed nothing. The queue can continue.
type undone struct{ error }

func (u undone) Unwrap() error { return u.error }

// unwritten is the error of a transaction that changed nothing. The queue cannot continue.
type unwritten struct{ error }

func (u unwritten) Unwrap() error { return u.error }

// lastCommit is when the last commit ended, and its error.
type lastCommit struct {
	mu  sync.Mutex
	at  time.Time // zero before the first
	err error
}

func (l *lastCommit) set(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at, l.err = time.Now(), err
}

func (l *lastCommit) get() (at time.Time, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.at, l.err
}

// maxRefusals is how many calls of a group the disk may refuse. After that, no call of at least
// the size of the smallest refused call is tried. A rollback is expensive: bbolt walks the
// whole file.
const maxRefusals = 8

// turn runs an app's transaction or a pass. The error is fatal.
func (s *scheduler) turn(group []*call) error {
	if len(group) == 1 {
		if u, ok := group[0].op.(*update); ok {
			return s.update(group[0], u)
		}
	}
	return s.pass(group)
}

// pass runs a group of calls and the maintenance in one commit. The error is fatal.
func (s *scheduler) pass(group []*call) error {
	before := s.degraded
	err := s.commit(group, true)
	var refused undone
	if !errors.As(err, &refused) {
		return err
	}
	return s.passApart(group, refused, before)
}

// passApart retries a pass that failed as one transaction. It runs each call and the
// maintenance in a separate transaction, so that the only calls that fail are too large for
// the disk or touch a damaged row. Before says whether the queue was degraded already.
func (s *scheduler) passApart(group []*call, refused undone, before bool) error {
	refusals, tooLarge := 0, math.MaxInt // size of the smallest refused call
	var full error                       // error of the disk
	for _, c := range group {
		if refusals >= maxRefusals && c.bytes >= tooLarge {
			c.answer(full)
			continue
		}
		if err := s.commit([]*call{c}, false); errors.As(err, &refused) {
			if c.bytes > 0 && errors.Is(err, ErrDisk) {
				refusals, tooLarge, full = refusals+1, min(tooLarge, c.bytes), refused.error
			}
			c.answer(refused.error)
		} else if err != nil {
			return err
		}
	}
	err := s.commit(nil, true)
	if errors.As(err, &refused) {
		s.degraded, s.backlog = true, false
		s.failHasty(refused.error)
		if !before {
			s.log.Error("cannot promote or lease jobs; trying again", "error", refused.error)
		}
	} else if err != nil {
		return err
	}
	// Nobody can withdraw an accepted fetch, so it must not wait for a job that arrives later.
	s.failFetches(refused.error)
	return nil
}

// commit runs a group in one transaction, with the maintenance if requested, and answers the
// callers once the transaction is durable. If commit returns an error, it has answered no
// caller.
func (s *scheduler) commit(group []*call, maintain bool) error {
	err := s.transact(func(t *txn) error {
		for _, c := range group {
			if c.err = c.op.check(t); c.err == nil {
				c.op.apply(t)
			}
		}
		if maintain && t.err == nil { // a transaction that will be undone serves no fetch
			s.maintain(t)
		}
		if maintain {
			return s.storeCounts(t)
		}
		return nil
	})
	s.meter.Stored(err == nil)
	if err != nil {
		return err
	}
	for _, c := range group {
		c.answer(c.err)
	}
	if maintain { // otherwise the fetches are in the state that a failed transaction left
		s.answerFetches()
	}
	return nil
}

// transact runs fn in a write transaction. If it returns nil, the changes are durable and their
// events are emitted. It does not write a transaction without changes. An error other than
// undone is fatal.
func (s *scheduler) transact(fn func(*txn) error) error {
	began := time.Now()
	t, err := s.write(fn)
	s.endLooks(err == nil)
	if err != nil {
		s.keyRows.forget()
		s.turns.undo(0)
		s.numbers.forget()
		return err
	}
	s.lookups += t.lookups()
	if s.wakeFor(t.late) { // for jobs that moved while fetches were served
		s.backlog = true
	}
	s.durable = time.Now()
	if t.changed {
		s.lasted = s.durable.Sub(began)
	}
	s.turns.keep()
	s.keyRows.keep(t)
	if t.searched {
		s.leftBlocked = t.unsearched
	}
	if t.leftBlocked {
		s.leftBlocked = allBlocked
	}
	s.leases.update(t, s.durable)
	s.report(t)
	return nil
}

// write runs the transaction itself.
func (s *scheduler) write(fn func(*txn) error) (t *txn, err error) {
	var tx *bbolt.Tx
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = s.guard.Damaged(p)
		}
		if err != nil && tx != nil {
			dbfile.Rollback(tx)
		}
	}()
	if tx, err = s.guard.Begin(s.begin); err != nil {
		return nil, unwritten{fmt.Errorf("begin transaction: %w", err)}
	}
	if !s.shared {
		dbfile.GrowBy(tx)
	}
	if t, err = begin(tx, s.now(), s.settings()); err != nil {
		return nil, undone{err}
	}
	s.keyRows.give(t, tx.ID())
	t.events, t.ended, t.granted = s.spare.events, s.spare.ended, s.spare.granted
	err = errGoexit // the result if fn never returns
	if err = fn(t); errors.As(err, new(dbfile.Faulted)) {
		return nil, unwritten{err}
	} else if err != nil {
		return nil, undone{err}
	}
	t.finishEnds()
	if len(s.fetches) > 0 {
		t.late = t.takeNews()
	}
	if err := t.finish(); err != nil {
		if errors.Is(err, berrors.ErrIncompatibleValue) || errors.Is(err, berrors.ErrKeyTooLarge) {
			err = fmt.Errorf("%w: a row cannot be written: %w", pawl.ErrCorrupt, err)
		}
		return nil, undone{fmt.Errorf("write transaction: %w", err)}
	}
	if t.changed {
		err = s.commitGuarded(tx)
		s.last.set(err)
	} else {
		err = tx.Rollback()
	}
	switch {
	case dbfile.RefusedByDisk(err):
		return nil, undone{fmt.Errorf("%w: commit: %w", ErrDisk, err)}
	case err != nil:
		return nil, fmt.Errorf("commit: %w", err)
	}
	return t, nil
}

// commitGuarded commits and then requires that the path still leads to the file. Data stored
// elsewhere is lost with the process.
func (s *scheduler) commitGuarded(tx *bbolt.Tx) error {
	transaction := tx.ID()
	if err := dbfile.CommitMarked(tx, s.commitTx); err != nil {
		return err
	}
	s.guard.Committed(transaction)
	return s.guard.Place()
}

// begin waits for the app's transaction to end, if the database is shared.
func (s *scheduler) begin() (*bbolt.Tx, error) {
	if s.shared {
		impatient := time.AfterFunc(slowAfter, func() {
			s.log.Warn("the queue waits for a transaction of the app's; "+plainCall, "since", slowAfter)
		})
		defer impatient.Stop()
	}
	return s.db.Begin(true)
}
