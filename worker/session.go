package worker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/gopawl/pawl"
)

// maxUnsettled is how many jobs may be finished and not settled before no further
// handler starts: that many, and one for each slot, may run again after a crash.
const maxUnsettled = 1024

// putOff is how long a job waits that comes again while its last handler here has
// not returned: it hung, or its lease was lost. A job never runs twice at a time by
// our own doing.
const putOff = 10 * time.Second

// session is one run of a worker, from its start to its return.
type session struct {
	w *Worker

	feeding      context.Context // when it ends no handler starts any more
	handling     context.Context // of every handler; ends with ErrStopping
	stopHandling context.CancelCauseFunc
	settling     context.Context // of every settle
	stopSettling context.CancelFunc

	open    sync.WaitGroup // one for each attempt that is not settled
	changed chan struct{}  // capacity 1: the demand may have changed
	leased  chan struct{}  // closed with the first lease

	mu        sync.Mutex
	length    time.Duration         // of the leases, once there was one
	held      map[*attempt]struct{} // all that are not settled
	waiting   []*attempt            // fetched ahead, in the order in which they start
	running   map[pawl.ID]struct{}  // jobs whose handler has not returned, stuck ones included
	stuck     int                   // of those, the ones whose job was settled without them
	unsettled int                   // handlers that have returned and whose job is not settled
	pace      pace
	patience  *time.Timer        // until waiting goes back; runs while it is not empty
	asked     int                // idle slots named in the fetch under way
	endFetch  context.CancelFunc // ends the fetch under way; nil without one
}

func newSession(ctx context.Context, w *Worker) *session {
	s := &session{
		w:       w,
		feeding: ctx,
		changed: make(chan struct{}, 1),
		leased:  make(chan struct{}),
		held:    make(map[*attempt]struct{}),
		running: make(map[pawl.ID]struct{}),
	}
	ctx = context.WithoutCancel(ctx) // keeps its values
	s.patience = time.AfterFunc(time.Hour, s.giveBack)
	s.patience.Stop()
	s.handling, s.stopHandling = context.WithCancelCause(ctx)
	s.settling, s.stopSettling = context.WithCancel(ctx)
	return s
}

// work lets feed bring leases until it returns, and then sees all of them settled:
// in peace when feed found no more, in the steps of a stop when it failed or ctx
// ends.
func (s *session) work(ctx context.Context, feed func() error) error {
	beating, stopBeating := context.WithCancel(s.settling)
	var heart sync.WaitGroup
	heart.Go(func() { s.beat(beating) })

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
	s.patience.Stop()
	s.stopHandling(ErrStopping)
	s.stopSettling()
	return err
}

// stop gives running handlers Options.Drain to finish, then ends their contexts and
// gives them Options.StopGrace, then releases the jobs that are left.
func (s *session) stop(settled <-chan struct{}) {
	if wait(settled, s.w.opts.Drain) {
		return
	}
	s.stopHandling(ErrStopping)
	if wait(settled, s.w.opts.StopGrace) {
		return
	}
	for _, a := range s.all() {
		if _, ok := s.disown(a); ok {
			s.w.opts.Logger.Warn("handler did not return in time; its job is released",
				"id", a.ID, "kind", a.Kind, "attempt", a.Attempt())
			go s.conclude(a, decision{verb: release})
		}
	}
	if !wait(settled, s.w.opts.StopGrace) {
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

// all are the attempts that are not settled.
func (s *session) all() []*attempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*attempt, 0, len(s.held))
	for a := range s.held {
		all = append(all, a)
	}
	return all
}

// fetchOne brings one job, if there is one.
func (s *session) fetchOne(ctx context.Context) error {
	leases, err := s.w.queue.Fetch(ctx, pawl.Request{Queues: s.w.opts.Queues, Max: 1, Wait: pawl.WaitNot})
	if err != nil {
		return err
	}
	s.deliver(leases)
	return nil
}

// fetchUntil brings jobs as there is demand. It returns nil when the queues are as
// empty as until asks, ctx's error, or that of a queue that is beyond use.
func (s *session) fetchUntil(ctx context.Context, until pawl.Wait) error {
	patience := pawl.DefaultStrategy()
	for failed := 0; ; {
		r, fetching, err := s.demand(ctx)
		if err != nil {
			return err
		}
		r.Wait = until
		leases, err := s.w.queue.Fetch(fetching, r)
		s.fetchEnded()
		switch {
		case err == nil:
			failed = 0
			s.deliver(leases)
		case errors.Is(err, pawl.ErrEmpty):
			return nil
		case over(err):
			return fmt.Errorf("fetch jobs: %w", err)
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, pawl.ErrNotAccepted): // the demand changed
		default:
			failed++
			pause := patience.Before(failed+1, rand.Float64())
			s.w.opts.Logger.Error("cannot fetch jobs; trying again", "in", pause, "error", err)
			select {
			case <-time.After(pause):
			case <-ctx.Done():
			}
		}
	}
}

// demand waits until jobs are wanted and says how many.
func (s *session) demand(ctx context.Context) (pawl.Request, context.Context, error) {
	for ctx.Err() == nil {
		s.mu.Lock()
		idle := s.idle()
		ahead := s.pace.ahead(s.w.opts.Concurrency)
		want := min(idle+ahead-len(s.waiting), maxUnsettled-s.unsettled)
		if want > 0 && (idle > 0 || len(s.waiting) <= ahead/2) {
			fetching, end := context.WithCancel(ctx)
			s.asked, s.endFetch = idle, end
			s.mu.Unlock()
			return pawl.Request{Queues: s.w.opts.Queues, Max: want, Ahead: max(0, want-idle)}, fetching, nil
		}
		s.mu.Unlock()
		select {
		case <-s.changed:
		case <-ctx.Done():
		}
	}
	return pawl.Request{}, nil, ctx.Err()
}

func (s *session) fetchEnded() {
	s.mu.Lock()
	s.endFetch()
	s.endFetch = nil
	s.mu.Unlock()
}

func (s *session) demandChanged() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// decide is the decision about a result, and the log line about a failure.
func (s *session) decide(a *attempt, err error, interrupted bool) decision {
	d := decide(a.Envelope, err, interrupted, s.w.policyOf(a), rand.Float64())
	if d.verb == nack {
		s.w.opts.Logger.Warn("attempt failed", "id", a.ID, "kind", a.Kind,
			"attempt", a.Attempt(), "of", a.MaxRetries+1, "retry_in", d.delay, "error", d.cause)
	}
	return d
}

// conclude settles a claimed attempt and forgets it.
func (s *session) conclude(a *attempt, d decision) {
	s.settle(a, d)
	s.forget(a)
}

func (s *session) settle(a *attempt, d decision) {
	took := s.w.settle(s.settling, a, d)
	s.mu.Lock()
	s.pace.settled(took)
	s.mu.Unlock()
}

func (s *session) forget(a *attempt) {
	s.mu.Lock()
	delete(s.held, a)
	s.mu.Unlock()
	s.open.Done()
}
