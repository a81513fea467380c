package bolt

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt/internal/dbfile"
	"github.com/gopawl/pawl/driver"
)

// Limits on the scheduler's own work in one commit, so that callers of the same commit do not wait long.
const (
	promotePortion = 500
	reapPortion    = 500
	recoverPortion = 5000
	expirePortion  = 500
	settlePortion  = 500 // jobs that a fetch meets and cannot lease
)

// longestSleep is the longest sleep while jobs wait for a time of the wall clock. So the scheduler notices within that
// time that the clock was set.
const longestSleep = time.Minute

// shortestSleep is the sleep after the scheduler woke up before the wall-clock time that it waited for. Without it, a
// clock that stands still would keep the scheduler busy.
const shortestSleep = time.Millisecond

// degradedSleep is the sleep after the scheduler could not do all due work. A damaged row stays due forever, and a full
// disk stays full for a while.
const degradedSleep = time.Second

// idleYields is how many times in a row the scheduler yields without getting a new call. If the yields take too
// long, it stops yielding for leastBackoff times that long. The factor doubles with each consecutive slow try,
// up to mostBackoff. So on a busy machine yielding takes a hundredth of the time, and one cycle of the garbage
// collector does not affect the groups of the next hundred commits. The pause lasts at most maxBackoff.
const (
	idleYields   = 8
	leastBackoff = 4
	mostBackoff  = 100
	mostWorth    = 8 // transactions
	maxBackoff   = 10 * time.Second
)

// maxSpare is the largest capacity of memory that is kept for the next transaction.
const maxSpare = maxGroup

// scheduler is the only writer of the file. Its goroutine runs from Open to Close.
type scheduler struct {
	db       *bbolt.DB
	shared   bool // with an app that has its own transactions
	intake   *intake
	leases   *leaseTable
	log      pawl.Logger
	now      func() time.Time // the wall clock
	crashCap int              // the limit of crashes, 0 for none
	observer *observer
	meter    *driver.Meter
	guard    *dbfile.Guard
	seq      *atomic.Uint64        // the last assigned enqueue sequence
	bound    bound                 // bound on the bytes in use
	awaits   atomic.Bool           // some job may wait for another
	byKey    keyLeases             // owned by the current write transaction
	commitTx func(*bbolt.Tx) error // (*bbolt.Tx).Commit, except in tests that make it fail

	stop    chan struct{} // closed to stop the goroutine
	stopped chan struct{} // closed by the goroutine when it ends
	fatal   error         // why it ended early; set before stopped is closed

	last   lastCommit
	damage damageLog

	updateTx atomic.Pointer[bbolt.Tx] // the transaction used by a function of Update

	// The fields below belong to the goroutine.
	arrived      int64                // calls that had arrived when the last group was taken
	lastBatch    int64                // how many of them arrived since the previous group
	lasted       time.Duration        // duration of the last transaction
	yieldAfter   time.Time            // no yields until then
	yieldBackoff time.Duration        // the length of that pause, as a multiple of the slow yields; 0 if the last yields were fast
	fetches      []*fetchCall         // fetches that wait for jobs, in order of arrival
	durable      time.Time            // when the last transaction became durable, on monotonic time
	due          time.Time            // when the next delayed job is due or something expires; zero for never
	resting      map[queueNumber]rest // queues whose rate keeps fetches waiting
	backlog      bool                 // more was due or expired than fit in one commit
	degraded     bool                 // something that is due or expired could not be moved
	leftBlocked  []byte               // where the search continues for blocked jobs that nothing else may unblock; nil for none
	turns        turns                // turns among the queues
	numbers      numberCache          // numbers of the queues that fetches name
	lookups      int                  // rows searched for so far
	spare        spare                // memory for the next transaction
	keyRows      keyCache
}

// spare is memory that one transaction leaves to the next, so that a busy queue does not allocate for each job.
type spare struct {
	events  []pawl.Event
	ended   []holding
	granted []*grant
	passed  [][]byte // of a selection
	jobs    int      // how many jobs the last fetch got; the capacity for the next fetch
}

// emptied returns an empty slice that reuses the memory of s, unless that is large.
func emptied[T any](s []T) []T {
	if cap(s) > maxSpare {
		return nil
	}
	clear(s)
	return s[:0]
}

// errGoexit ends a queue whose goroutine was ended by a function of the app, such as a failing
// test in it.
var errGoexit = errors.New("a mutation has called runtime.Goexit; have it return an error")

// run carries out operations until the queue closes or a commit fails for good. Then it returns
// the reason to every waiting caller.
func (s *scheduler) run() {
	defer close(s.stopped)
	timer := time.NewTimer(0)
	defer timer.Stop()
	var group []*call
	ended := false
	defer func() {
		if !ended {
			s.poison(group, errGoexit)
			s.dismiss()
		}
	}()
	for more := true; more || s.backlog || s.sleep(timer); {
		if s.closing() {
			break
		}
		s.yieldForBatch()
		s.leases.noted = time.Now()
		group, s.fetches, more = s.intake.take(group[:0], s.fetches)
		for _, n := range s.intake.takeNotes() {
			s.leases.takeNote(n, s.leases.noted)
			s.wakeFor(n.changed)
			if n.leftBlocked {
				s.leftBlocked = allBlocked
			}
		}
		if err := s.turn(group); err != nil {
			s.poison(group, err)
			break
		}
		clear(group)
	}
	s.storeLast()
	s.dismiss()
	ended = true
}

// yieldForBatch lets callers that were just answered submit their next calls, so that groups
// become large. It yields as long as that brings new calls, up to the number of recent calls. It
// never sleeps, and never waits for a caller that is not running.
//
// On a busy machine a yield lasts until the goroutine's next time slice. If that takes longer
// than it is worth, the yield backoff stops yielding for a while.
func (s *scheduler) yieldForBatch() {
	came, began := s.intake.came.Load(), time.Now()
	first, waiting := came, came-s.arrived
	enough := came + s.lastBatch
	for idle := 0; idle < idleYields && came < enough && began.After(s.yieldAfter); idle++ {
		runtime.Gosched()
		if now := s.intake.came.Load(); now > came {
			came, idle = now, 0
		}
		if took := time.Since(began); took > s.worth(came-first, waiting) {
			s.yieldBackoff = min(max(leastBackoff, 2*s.yieldBackoff), mostBackoff)
			s.yieldAfter = began.Add(min(s.yieldBackoff*took, maxBackoff))
			break
		}
		s.yieldBackoff = 0
	}
	came = s.intake.came.Load()
	s.arrived, s.lastBatch = came, came-s.arrived
}

// worth returns how long yielding may take, given how many calls it brought and how many wait for it: as long as a
// transaction, or up to mostWorth times as long if it brought more calls than wait. Each new call saves a transaction,
// and each waiting call loses the time.
func (s *scheduler) worth(brought, waiting int64) time.Duration {
	return s.lasted * time.Duration(min(max(1, brought/max(1, waiting)), mostWorth))
}

func (s *scheduler) closing() bool {
	select {
	case <-s.stop:
		return true
	default:
		return false
	}
}

// dismiss answers every remaining caller, once no new caller can arrive.
func (s *scheduler) dismiss() {
	reason := s.intake.reason()
	var group []*call
	for more := true; more; {
		group, s.fetches, more = s.intake.take(group[:0], s.fetches)
		for _, c := range group {
			c.answer(reason)
		}
	}
	for _, f := range s.fetches {
		if f.accept() {
			f.answer(reason)
		}
	}
}

// sleep waits for a caller, the next due job or the next expiry. It returns false when the
// queue closes.
func (s *scheduler) sleep(timer *time.Timer) bool {
	for least := time.Duration(0); ; least = shortestSleep {
		if wait, ok := s.untilNext(least); ok {
			timer.Reset(wait)
		} else {
			timer.Stop()
		}
		select {
		case <-s.stop:
			return false
		case <-s.intake.bell:
			return true
		case <-timer.C:
		}
		if wait, _ := s.untilNext(0); wait <= 0 || s.degraded {
			return true // otherwise it only checked the clock
		}
	}
}

// untilNext returns how long the scheduler has nothing to do. If nothing will ever be due, ok is false. For a
// wall-clock time, the result is 0 or at least the given minimum.
func (s *scheduler) untilNext(least time.Duration) (wait time.Duration, ok bool) {
	if s.degraded {
		return degradedSleep, true
	}
	if !s.due.IsZero() {
		if wait, ok = min(s.due.Sub(s.now()), longestSleep), true; wait > 0 {
			wait = max(wait, least)
		}
	}
	if expires, held := s.leases.next(); held {
		if d := time.Until(expires); !ok || d < wait {
			wait, ok = d, true
		}
	}
	return max(wait, 0), ok
}

// maintain does the scheduler's maintenance: expire, promote, reap, serve.
func (s *scheduler) maintain(t *txn) {
	s.endRests(t)
	all := t.expireDue(expirePortion)
	moved := t.promoteDue(promotePortion)
	for _, renewed := range s.intake.takeRenewals() {
		s.leases.takeNote(note{renewed: renewed}, time.Now())
	}
	reaped := s.leases.reap(t, reapPortion)
	s.backlog = !all || moved == promotePortion || reaped == reapPortion
	t.searchLeftBlocked(s.leftBlocked, promotePortion)
	s.backlog = s.backlog || t.unsearched != nil
	t.finishEnds() // so that fetches find the callbacks and the released jobs
	s.degraded = len(t.damage) > 0
	s.wake(t)
	room := settlePortion
	for _, f := range s.fetches {
		s.serve(t, f, &room)
	}
	t.finishEnds() // releases the jobs that waited for jobs that a fetch skipped
	t.setWakes()
	s.due = s.beginRests(t, t.nextDue())
}

// settings returns the settings of the next transaction. The set of listeners may change
// between transactions.
func (s *scheduler) settings() settings {
	return settings{maxCrashes: s.crashCap, listening: s.observer.Listened(), seq: s.seq, bound: &s.bound, awaits: &s.awaits, keyLeases: &s.byKey}
}

// report emits the events of a durable transaction.
func (s *scheduler) report(t *txn) {
	s.observer.Count(t.counted.Totals)
	s.meter.Add(t.now, &t.counted, len(t.granted) > 0)
	s.observer.Emit(t.events...)
	s.observer.ended(t)
	s.spare.events, s.spare.ended, s.spare.granted = emptied(t.events), emptied(t.ended), emptied(t.granted)
	s.damage.report(s.log, t.damage)
}

// poison ends all work for good. Unless the error says that nothing was written, the failed
// commit may or may not be on the disk, and the mapped file may differ from the disk.
func (s *scheduler) poison(group []*call, err error) {
	s.fatal = err
	s.log.Error("the queue stops: going on could damage the file", "error", err)
	s.intake.refuse(fmt.Errorf("%w: %w", pawl.ErrPoisoned, err))
	unknown := fmt.Errorf("%w: %w: %w", pawl.ErrUnknownOutcome, pawl.ErrPoisoned, err)
	if errors.As(err, new(unwritten)) {
		unknown = fmt.Errorf("%w: %w", pawl.ErrPoisoned, err)
	}
	for _, c := range group {
		select {
		case <-c.done:
		default:
			c.answer(unknown)
		}
	}
	s.failFetches(unknown)
}
