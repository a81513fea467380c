package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gopawl/pawl"
)

// deliver takes leases in: it parks what nobody handles, and starts as many of the
// others as there are slots, those that crashed before first, since they were
// leased for a free slot.
func (s *session) deliver(leases []*pawl.Lease) {
	var start []*attempt
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range leases {
		if s.length == 0 {
			s.length = l.Length
			close(s.leased)
		}
		h, known := s.w.handlers[l.Kind]
		a := &attempt{Lease: l, handler: h}
		s.held[a] = struct{}{}
		s.open.Add(1)
		if known {
			start = append(start, a)
		} else if a.claim() {
			s.w.opts.Logger.Warn("no handler for the kind of a job; it is parked until a worker has one",
				"id", a.ID, "kind", a.Kind, "queue", a.Queue)
			go s.conclude(a, decision{verb: park})
		}
	}
	slices.SortStableFunc(start, func(a, b *attempt) int { return min(b.Crashes, 1) - min(a.Crashes, 1) })
	s.waiting = append(s.waiting, start...)
	s.startWaiting()
}

// startWaiting gives free slots to attempts that wait. The caller holds mu.
func (s *session) startWaiting() {
	for len(s.waiting) > 0 && len(s.running) < s.w.opts.Concurrency && s.unsettled < maxUnsettled && s.feeding.Err() == nil {
		a := s.waiting[0]
		s.waiting = slices.Delete(s.waiting, 0, 1)
		if _, again := s.running[a.ID]; again {
			if a.claim() {
				go s.conclude(a, decision{verb: snooze, delay: putOff})
			}
			continue
		}
		s.running[a.ID] = struct{}{}
		var ctx context.Context
		ctx, a.cancel = context.WithCancelCause(s.handling)
		go s.run(ctx, a)
	}
	if len(s.waiting) > 0 {
		s.patience.Reset(s.pace.patience())
	} else {
		s.patience.Stop()
	}
}

// run is the goroutine of one attempt: it runs the handler in a slot, and goes on
// with what it returned. That part is deferred so that runtime.Goexit in a handler
// does not skip it.
func (s *session) run(ctx context.Context, a *attempt) {
	began := time.Now()
	defer func() { s.returned(a, context.Cause(ctx), time.Since(began)) }()
	if limit := a.timeout(&s.w.opts); limit > 0 {
		var end context.CancelFunc
		ctx, end = context.WithTimeoutCause(ctx, limit, ErrTimeout)
		defer end()
		hung := max(limit, limit+s.w.opts.HungGrace) // the sum may overflow
		watchdog := time.AfterFunc(hung, func() { s.giveUp(a, limit) })
		defer watchdog.Stop()
	}
	a.run(ctx)
}

// returned frees the slot of an attempt whose handler returned, decides, and
// settles. Cause is that of the handler's context. Nothing follows forget, which
// may be what the session's end waits for.
func (s *session) returned(a *attempt, cause error, took time.Duration) {
	a.cancel(nil)
	mine := a.claim()
	s.slotFree(a, mine, took)
	if !mine {
		return
	}
	err := a.err
	if err != nil && errors.Is(cause, ErrTimeout) {
		err = fmt.Errorf("%w: %w", ErrTimeout, err)
	}
	s.settle(a, s.decide(a, err, errors.Is(cause, ErrStopping)))
	s.mu.Lock()
	s.unsettled--
	s.startWaiting()
	s.mu.Unlock()
	s.demandChanged()
	s.forget(a)
}

// slotFree hands the slot of a handler that returned to the next attempt. Mine is
// false when the job was settled without waiting for the handler.
func (s *session) slotFree(a *attempt, mine bool, took time.Duration) {
	s.mu.Lock()
	delete(s.running, a.ID)
	if mine {
		s.unsettled++
		s.pace.ran(took)
	} else {
		s.stuck--
	}
	s.startWaiting()
	if s.endFetch != nil && s.asked == 0 && s.idle() > 0 {
		s.endFetch() // ask again: jobs that crashed want an idle slot
	}
	s.mu.Unlock()
	s.demandChanged()
}

// idle is how many slots nothing is there for. The caller holds mu.
func (s *session) idle() int {
	return max(0, s.w.opts.Concurrency-len(s.running)-len(s.waiting))
}

// disown claims an attempt in place of its handler, which is stuck from then on,
// and returns how many are. It answers false when the handler returned first.
func (s *session) disown(a *attempt) (stuck int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !a.claim() {
		return 0, false
	}
	s.stuck++
	return s.stuck, true
}

// giveUp fails the attempt of a handler that ignores its timeout. The slot stays
// taken.
func (s *session) giveUp(a *attempt, limit time.Duration) {
	stuck, ok := s.disown(a)
	if !ok {
		return
	}
	s.w.opts.Logger.Error("handler ignores the end of its context; its attempt counts as failed and its slot stays taken until it returns",
		"id", a.ID, "kind", a.Kind, "attempt", a.Attempt(), "timeout", limit, "stuck", stuck)
	s.conclude(a, s.decide(a, fmt.Errorf("%w of %v and did not return", ErrTimeout, limit), false))
}

// releaseWaiting gives back what was fetched ahead and did not start.
func (s *session) releaseWaiting() {
	s.mu.Lock()
	waiting := s.waiting
	s.waiting = nil
	s.mu.Unlock()
	for _, a := range waiting {
		if a.claim() {
			go s.conclude(a, decision{verb: release})
		}
	}
}

// giveBack returns what was fetched ahead to the queue, where it stands in order
// with what came meanwhile: no slot came free for longer than the pace foresaw.
func (s *session) giveBack() {
	s.mu.Lock()
	slow := len(s.waiting) > 0 && len(s.running) == s.w.opts.Concurrency
	if slow {
		s.pace.overran()
	}
	s.mu.Unlock()
	if slow {
		s.releaseWaiting()
	}
}
