package worker

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// maxUnsettled is how many finished jobs may wait to be settled. At that number, no
// further handler starts. After a crash, that many jobs, and one more for each slot, may
// run again.
const maxUnsettled = 2 * maxAhead

// putOff is how long a job is snoozed that arrives and must not start. If its last
// handler in this worker has not returned, because it is stuck or lost its lease, the
// snooze keeps the job from running twice at the same time. If the job was cancelled
// or is past its deadline, the queue makes it dead when it is snoozed. Then it waits
// only if the queue's clock lags behind the worker's.
const putOff = 10 * time.Second

// returnGrace is how long an arriving job waits for its last handler to return, if that
// handler has settled the job itself.
const returnGrace = time.Second

// releaseGrace is how long a stop waits for the queue to take the last settles.
const releaseGrace = 1500 * time.Millisecond

// session is one life of a worker, from its start to its return.
type session struct {
	w            *Worker
	feeding      context.Context // after it ends, no handler starts
	handling     context.Context // context of every handler; ends with ErrStopping
	stopHandling context.CancelCauseFunc
	settling     context.Context // context of every settle
	stopSettling context.CancelFunc

	open     sync.WaitGroup // one for each attempt that is not settled, and one during an ack
	notes    *driver.Notes  // notes of its attempts
	noteless atomic.Bool    // the last store of notes failed
	changed  chan struct{}  // capacity 1: the demand may have changed
	leased   chan struct{}  // closed with the first lease

	mu            sync.Mutex
	kinds         []string              // the kinds that it fetches: kinds whose gates are open
	shut          bool                  // no kind is open; a request without kinds would ask for all kinds
	endServing    func()                // reports to the queue that it no longer serves the kinds; nil after that
	length        time.Duration         // length of a lease; known once there was one
	held          map[*attempt]struct{} // all attempts that are not settled
	waiting       []*attempt            // attempts fetched ahead, in the order in which they start
	behind        []*attempt            // waiting attempts that also wait for the last handler of their job to return
	aheadBytes    int                   // bytes of the payloads of the waiting attempts
	finished      pile                  // attempts to settle in the next call
	spare         pile                  // memory for the next pile; refers to no job
	batching      bool                  // a goroutine settles finished attempts
	taken         int                   // slots: handlers that have not returned, stuck ones included
	unsettled     int                   // handlers that have returned and whose jobs are not settled
	pace          pace
	moved         time.Time          // when a job came or started last
	giveBackTimer *time.Timer        // gives the waiting attempts back
	patient       bool               // the timer runs
	doubtTimer    *time.Timer        // calls endInDoubt
	nextDoubt     time.Time          // when doubtTimer fires; zero for never
	asked         int                // idle slots named in the current fetch
	endFetch      context.CancelFunc // ends the current fetch; nil without one
}

func newSession(ctx context.Context, w *Worker) *session {
	s := &session{
		w:       w,
		feeding: ctx,
		notes:   driver.NewNotes(w.queue),
		changed: make(chan struct{}, 1),
		leased:  make(chan struct{}),
		held:    make(map[*attempt]struct{}),
	}
	s.chooseKinds()
	s.endServing = func() {}
	ctx = context.WithoutCancel(ctx) // keeps the values of ctx
	s.giveBackTimer = time.AfterFunc(time.Hour, s.giveBack)
	s.giveBackTimer.Stop()
	s.doubtTimer = time.AfterFunc(time.Hour, s.endInDoubt)
	s.doubtTimer.Stop()
	s.handling, s.stopHandling = context.WithCancelCause(ctx)
	s.settling, s.stopSettling = context.WithCancel(ctx)
	return s
}

// work calls feed, which fetches leases until it returns. Then work waits until all
// leases are settled. If feed fails or ctx ends, work follows the steps of a stop.
func (s *session) work(ctx context.Context, feed func() error) error {
	beating, stopBeating := context.WithCancel(s.settling)
	var heart sync.WaitGroup
	heart.Go(func() { s.beat(beating) })
	heart.Go(func() { s.storeNotes(beating) })

	err := feed()
	if err != nil {
		s.releaseWaiting()
	}
	settled := make(chan struct{})
	go func() { s.open.Wait(); close(settled) }()
	if err == nil {
		select {
		case <-settled:
		case <-ctx.Done():
			err = ctx.Err()
			s.releaseWaiting()
		}
	}
	if err != nil {
		s.stop(settled)
	}
	stopBeating()
	heart.Wait()
	s.giveBackTimer.Stop()
	s.doubtTimer.Stop()
	s.stopHandling(ErrStopping)
	s.stopSettling()
	return err
}

// stop gives running handlers Options.Drain to finish, then ends their contexts and
// gives them Options.StopGrace, then releases the jobs that are left.
func (s *session) stop(settled <-chan struct{}) {
	began, unfinished := time.Now(), 0
	if jobs := len(s.all()); jobs > 0 {
		s.w.opts.Logger.Info("drain begun", "jobs", jobs, "limit", s.w.opts.Drain)
		defer func() {
			s.w.opts.Logger.Info("drain ended", "took", time.Since(began), "unfinished", unfinished)
		}()
	}
	if wait(settled, s.w.opts.Drain) {
		return
	}
	unfinished = len(s.all())
	s.stopHandling(ErrStopping)
	if wait(settled, s.w.opts.StopGrace) {
		return
	}
	for _, a := range s.all() {
		if _, ok := s.w.running.giveUp(a); ok {
			if !driver.Settled(a.Lease) {
				s.w.opts.Logger.Warn("handler did not return in time; its job is released",
					"id", a.ID, "kind", a.Kind, "attempt", a.Attempt())
			}
			go s.conclude(a, a.Release())
		}
	}
	if !wait(settled, releaseGrace) {
		s.stopSettling()
		<-settled
	}
}

func wait(done <-chan struct{}, limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

// all returns the attempts that are not settled.
func (s *session) all() []*attempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*attempt, 0, len(s.held))
	for a := range s.held {
		all = append(all, a)
	}
	return all
}

// decide returns the decision about a result, and logs a failure. Ended is the cause with
// which the handler's context ended, if it did.
func (s *session) decide(a *attempt, err, ended error) pawl.Settlement {
	if err != nil {
		err = because(err, ended)
	}
	cancelled := a.Cancelled.Fired() // then the queue makes the job dead
	interrupted := (errors.Is(ended, ErrStopping) || errors.Is(ended, ErrLeaseInDoubt)) && !cancelled
	d := decide(a.Envelope, err, interrupted, s.w.policyOf(a), rand.Float64())
	failed := d.Outcome == pawl.OutcomeNack || d.Outcome == pawl.OutcomeAbandon
	d.Lease = a.settlingLease(failed && errors.Is(ended, ErrTimeout))
	if d.Outcome == pawl.OutcomeNack && !cancelled && logsWarnings(s.w.opts.Logger) {
		args := []any{"id", a.ID, "kind", a.Kind,
			"attempt", a.Attempt(), "of", a.MaxRetries + 1, "retry_in", d.Delay, "error", d.Cause}
		if stack := driver.FailureOf(d.Cause).Stack; stack != "" {
			args = append(args, "stack", stack)
		}
		s.w.opts.Logger.Warn("attempt failed", args...)
	}
	return d
}

// logsWarnings reports whether a logger may write a warning. An hclog.Logger knows.
func logsWarnings(l pawl.Logger) bool {
	level, ok := l.(interface{ IsWarn() bool })
	return !ok || level.IsWarn()
}
