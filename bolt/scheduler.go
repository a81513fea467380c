package bolt

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
)

// How much of its own work the scheduler does in one commit, so that callers who
// wait for the same commit do not wait long.
const (
	promotePortion = 500
	reapPortion    = 500
	recoverPortion = 5000
	expirePortion  = 500
	settlePortion  = 500 // jobs that a fetch comes to and that cannot be leased
)

// longestSleep is how long the scheduler sleeps at most while jobs wait for a time
// of day: a clock that was set meanwhile is noticed after it.
const longestSleep = time.Minute

// shortestSleep is how long it sleeps when it woke up for a time of day that has not come
// yet: a clock that stands would keep it busy.
const shortestSleep = time.Millisecond

// troubledSleep is how long the scheduler sleeps when it could not do all that is
// due: a damaged row stays due for ever, and a full disk stays full for a while.
const troubledSleep = time.Second

// idleYields is how often the scheduler gives way in a row without a call that comes. When
// that took too long, it does not for leastShun times as long; twice as many times with each
// try in a row that takes too long, up to mostShun. So where others compute all the time it
// costs a hundredth of it, and one turn of the garbage collector does not cost the groups of
// the next hundred commits. It is left for maxShun at most.
const (
	idleYields = 8
	leastShun  = 4
	mostShun   = 100
	maxShun    = 10 * time.Second
)

// maxTold bounds the room that is kept for events.
const maxTold = 1024

// maxSeen bounds the damaged rows that are logged.
const maxSeen = 1000

// scheduler is the only writer of the file. Its goroutine runs from Open to Close.
type scheduler struct {
	db       *bbolt.DB
	shared   bool // with an app that has transactions of its own
	intake   *intake
	leases   *leaseTable
	log      pawl.Logger
	now      func() time.Time // the wall clock
	crashCap int              // how many crashes are too many, 0 for none
	observer *observer
	guard    *guard
	commitTx func(*bbolt.Tx) error // (*bbolt.Tx).Commit, unless a test makes it fail

	stop    chan struct{} // closed to end the goroutine
	stopped chan struct{} // closed by the goroutine at its end
	fatal   error         // what ended it before that, set before stopped is closed

	lent atomic.Pointer[bbolt.Tx] // the transaction that a function of Update has

	// What follows belongs to the goroutine.
	heard    int64           // calls that had come when the last group was taken
	lately   int64           // how many of them since the group before
	lasted   time.Duration   // how long the last transaction took
	shunned  time.Time       // until when the scheduler does not give way
	shun     time.Duration   // for how many times as long as it took last; 0 when that was short
	fetches  []*fetchCall    // wait for jobs, in the order of their coming
	durable  time.Time       // when the last transaction was, on monotonic time
	due      time.Time       // when the next delayed job is due, or something expires; zero for never
	backlog  bool            // more was due or expired than one commit took
	troubled bool            // not all that is due or expired could be moved
	strays   []byte          // from where on jobs are aside that nothing else may bring back; nil for none
	turns    turns           // of the queues
	numbers  numberCache     // of the queues that fetches name
	lookups  int             // rows that were looked up so far
	seen     map[string]bool // damage that was logged already
	told     []pawl.Event    // room for the events of the next transaction
}

// errGoexit is the end of a queue whose goroutine a function of the app's has ended, as a
// failing test does that runs in it.
var errGoexit = errors.New("a mutation has called runtime.Goexit; have it return an error")

// run carries out what callers left, until the queue closes or a commit fails for
// good. Then everybody who still waits is told why.
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
		s.gather()
		s.leases.heard = time.Now()
		group, s.fetches, more = s.intake.take(group[:0], s.fetches)
		for _, n := range s.intake.takeNotes() {
			s.leases.takeNote(n, s.leases.heard)
			s.wakeFor(n.changed)
		}
		if err := s.turn(group); err != nil {
			s.poison(group, err)
			break
		}
		clear(group)
	}
	s.dismiss()
	ended = true
}

// gather lets those who were answered come with their next calls, which is what makes
// groups large: it gives way for as long as that brings calls, up to as many as came
// lately. It waits for no time and for nobody who does not run.
//
// Where others compute, giving way lasts until it is one's turn again. When it took longer
// than a transaction does, it is not worth it, and is left for a while.
func (s *scheduler) gather() {
	came, began := s.intake.came.Load(), time.Now()
	enough := came + s.lately
	for idle := 0; idle < idleYields && came < enough && began.After(s.shunned); idle++ {
		runtime.Gosched()
		if took := time.Since(began); took > s.lasted {
			s.shun = min(max(leastShun, 2*s.shun), mostShun)
			s.shunned = began.Add(min(s.shun*took, maxShun))
			break
		}
		s.shun = 0
		if now := s.intake.came.Load(); now > came {
			came, idle = now, 0
		}
	}
	came = s.intake.came.Load()
	s.heard, s.lately = came, came-s.heard
}

func (s *scheduler) closing() bool {
	select {
	case <-s.stop:
		return true
	default:
		return false
	}
}

// dismiss answers everybody who is left, once nobody can come any more.
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

// sleep waits for a caller, the next due job or the next expiry. It answers false
// when the queue closes.
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
		if wait, _ := s.untilNext(0); wait <= 0 || s.troubled {
			return true // otherwise it only looked at the clock
		}
	}
}

// untilNext is how long there is nothing to do; ok is false when nothing will ever be. It is
// 0, or at least as long as given where the wall clock says so.
func (s *scheduler) untilNext(least time.Duration) (wait time.Duration, ok bool) {
	if s.troubled {
		return troubledSleep, true
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

// chores is what the scheduler does unasked: expire, promote, reap, serve.
func (s *scheduler) chores(t *txn) {
	all := t.expireDue(expirePortion)
	moved := t.promoteDue(promotePortion)
	reaped := s.leases.reap(t, reapPortion)
	s.backlog = !all || moved == promotePortion || reaped == reapPortion
	t.searchStrays(s.strays, promotePortion)
	s.backlog = s.backlog || t.unsearched != nil
	s.troubled = len(t.damage) > 0
	s.wake(t)
	room := settlePortion
	for _, f := range s.fetches {
		s.serve(t, f, &room)
	}
	s.due = t.nextDue()
}

// settings is what the next transaction is to know. Whether somebody listens may change.
func (s *scheduler) settings() settings {
	return settings{maxCrashes: s.crashCap, listening: s.observer.listening()}
}

// report tells what a durable transaction did.
func (s *scheduler) report(t *txn) {
	s.observer.tell(t.events)
	clear(t.events)
	if s.told = t.events[:0]; cap(s.told) > maxTold {
		s.told = nil
	}
	for _, err := range t.damage {
		if len(s.seen) < maxSeen && !s.seen[err.Error()] {
			s.seen[err.Error()] = true
			s.log.Error("a damaged row is passed over", "error", err)
		}
	}
}

// poison ends all work for good. The failed commit may or may not be on the disk, unless the
// error says that nothing was written, and what memory shows of the file may differ from what
// the disk has.
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
