package worker

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// deliver receives leases. It abandons jobs that lack a required signature, and starts as
// many other jobs as there are free slots. Jobs that crashed before start first, because
// they were leased for a free slot. If a faulty queue returns a job of a kind that was
// not requested, deliver snoozes the job, so that the worker does not spin.
func (s *session) deliver(leases []*pawl.Lease) {
	forged := s.w.verify(leases)
	var start, shut []*attempt
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range leases {
		if s.length == 0 {
			s.length = l.Length
			close(s.leased)
		}
		h, known := s.w.handlers[l.Kind]
		a := &attempt{Lease: l, handler: h, queue: s.w.queue, notes: s.notes, until: l.Expires}
		s.held[a] = struct{}{}
		if s.w.shared() {
			s.watch(a.until)
		}
		s.open.Add(1)
		switch err := forged[l]; {
		case err == nil && known && s.w.lacking(h) != "":
			shut = append(shut, a)
		case err == nil && known:
			start = append(start, a)
		case !a.claim():
		case err != nil:
			s.w.opts.Logger.Error("signature of a job does not verify; it does not run",
				"id", a.ID, "kind", a.Kind, "queue", a.Queue, "key", a.KeyID, "error", err)
			go s.conclude(a, a.Abandon(pawl.ReasonSignature, err))
		default:
			s.w.opts.Logger.Error("queue returned a job of a kind that was not asked for",
				"id", a.ID, "kind", a.Kind, "queue", a.Queue)
			go s.conclude(a, a.Snooze(putOff))
		}
	}
	slices.SortStableFunc(start, func(a, b *attempt) int { return min(b.Crashes, 1) - min(a.Crashes, 1) })
	s.waiting = append(s.waiting, start...)
	for _, a := range start {
		s.aheadBytes += len(a.Payload)
	}
	s.release(shut)
	s.moved = time.Now()
	s.startWaiting()
}

// verify returns what is wrong with the signatures of jobs, if signatures are required.
func (w *Worker) verify(leases []*pawl.Lease) map[*pawl.Lease]error {
	if w.opts.Verify == nil {
		return nil
	}
	forged := make(map[*pawl.Lease]error)
	for _, l := range leases {
		if err := w.opts.Verify.Verify(l.Envelope); err != nil {
			forged[l] = err
		}
	}
	return forged
}

// startWaiting gives free slots to attempts that wait. The caller holds mu.
func (s *session) startWaiting() {
	for a := s.next(); a != nil; a = s.next() {
		go s.slot(a)
	}
	if len(s.waiting) > 0 && !s.patient {
		s.patient = true
		s.giveBackTimer.Reset(s.pace.maxWait())
	}
}

// next takes a slot for the first waiting attempt that may start. It returns nil if there is no
// such attempt or no slot. The caller holds mu.
func (s *session) next() *attempt {
	for len(s.waiting) > 0 && s.taken < s.w.opts.Concurrency && s.unsettled < maxUnsettled && s.feeding.Err() == nil {
		a := s.waiting[0]
		s.waiting[0], s.waiting = nil, s.waiting[1:]
		if s.w.running.returning(a.ID) {
			s.awaitReturn(a)
			continue
		}
		s.aheadBytes -= len(a.Payload)
		if !s.w.refused(a) {
			s.taken++
			a.Started = time.Now()
			s.moved = a.Started
			a.ctx, a.cancel = context.WithCancelCause(s.handling)
			return a
		}
		if a.claim() {
			go s.conclude(a, a.Snooze(putOff))
		}
	}
	return nil
}

// awaitReturn makes an attempt wait for at most returnGrace until the last handler of its job
// returns. That handler has settled the job itself and is about to return. The caller holds mu.
func (s *session) awaitReturn(a *attempt) {
	s.behind = append(s.behind, a)
	time.AfterFunc(returnGrace, func() {
		s.mu.Lock()
		found := s.leaveBehind(a)
		s.mu.Unlock()
		if found && a.claim() {
			s.conclude(a, a.Snooze(putOff))
		}
	})
}

// leaveBehind removes an attempt from those that wait for a return. The caller holds mu.
func (s *session) leaveBehind(a *attempt) (found bool) {
	i := slices.Index(s.behind, a)
	if i >= 0 {
		s.behind = slices.Delete(s.behind, i, i+1)
		s.aheadBytes -= len(a.Payload)
	}
	return i >= 0
}

// refused reports whether a job that has a slot must not start: it was cancelled, its
// deadline has passed, or its last handler here has not returned. Otherwise refused
// counts the job as running.
func (w *Worker) refused(a *attempt) bool { return a.ended() || !w.running.add(a) }

// slot is the goroutine of a slot as long as attempts wait for the slot. If a handler ends it
// by runtime.Goexit, a new goroutine runs the other attempts.
func (s *session) slot(a *attempt) {
	defer func() {
		if a != nil {
			s.mu.Lock()
			s.startWaiting()
			s.askAgain()
			s.mu.Unlock()
		}
	}()
	for a != nil {
		s.run(a)
		s.mu.Lock()
		a = s.next()
		s.askAgain()
		s.mu.Unlock()
	}
}

// run makes one attempt: it runs the handler and processes its result. The second part is
// deferred, so that runtime.Goexit in a handler does not skip it.
func (s *session) run(a *attempt) {
	ctx := a.ctx
	defer func() { s.returned(a, context.Cause(ctx), driver.Took(a.Lease)) }()
	a.Cancelled.OnFire(func() { a.cancel(ErrCancelled) })
	if limit, cause := a.limit(&s.w.opts); cause != nil {
		var end context.CancelFunc
		ctx, end = context.WithTimeoutCause(ctx, limit, cause)
		defer end()
		stuck := max(limit, limit+s.w.opts.StuckGrace) // the sum may overflow
		watchdog := time.AfterFunc(stuck, func() { s.giveUp(a, limit, cause) })
		defer watchdog.Stop()
	}
	a.run(ctx)
}

// returned frees the slot of an attempt whose handler returned, and settles its job. Cause is
// the cause with which the handler's context ended. The slot's goroutine decides about a
// failure, so failures are settled in groups as large as those of successes.
func (s *session) returned(a *attempt, cause error, took time.Duration) {
	a.cancel(nil)
	mine := a.claim()
	s.w.running.remove(a.ID, !mine)
	settled := driver.Settled(a.Lease)
	with := a.Ack()
	if mine && !settled && a.err != nil {
		with = s.decide(a, a.err, cause)
	}
	if mine {
		s.endNotes(a, with.Outcome != pawl.OutcomeAck || a.Retain > 0)
	}
	s.mu.Lock()
	if i := slices.IndexFunc(s.behind, func(next *attempt) bool { return next.ID == a.ID }); i >= 0 {
		s.waiting = slices.Insert(s.waiting, 0, s.behind[i])
		s.behind = slices.Delete(s.behind, i, i+1)
	}
	s.taken--
	if mine {
		s.unsettled++
		s.pace.ran(took)
	}
	switch {
	case !mine: // another goroutine settles it
	case !settled:
		s.settleSoon(a, with)
	default:
		go s.finish(a)
	}
	s.mu.Unlock()
}

// finish forgets an attempt whose handler acked its job in a transaction.
func (s *session) finish(a *attempt) {
	if a.err != nil {
		s.w.opts.Logger.Error("handler failed after it had acked its job in a transaction; the job is done",
			"id", a.ID, "kind", a.Kind, "attempt", a.Attempt(), "error", a.err)
	}
	s.done(a)
}

// idle returns how many slots have no job. The caller holds mu.
func (s *session) idle() int {
	return max(0, s.w.opts.Concurrency-s.taken-len(s.waiting))
}

// giveUp fails the attempt of a handler that ignores the end of its context. The
// context ended after limit, for this cause. The slot stays taken. If the handler has
// already acked the job, there is nothing to fail.
func (s *session) giveUp(a *attempt, limit time.Duration, cause error) {
	stuck, ok := s.w.running.giveUp(a)
	if !ok {
		return
	}
	s.w.opts.Logger.Error("handler ignores the end of its context; its slot stays taken until it returns",
		"id", a.ID, "kind", a.Kind, "attempt", a.Attempt(), "cause", cause, "after", limit, "stuck", stuck)
	if driver.Settled(a.Lease) {
		s.forget(a)
		return
	}
	s.conclude(a, s.decide(a, fmt.Errorf("the handler did not return, although its context ended after %v", limit), cause))
}

// releaseWaiting gives back the jobs that were fetched ahead and did not start.
func (s *session) releaseWaiting() {
	s.mu.Lock()
	waiting := append(s.waiting, s.behind...)
	s.waiting, s.behind, s.aheadBytes = nil, nil, 0
	s.mu.Unlock()
	s.release(waiting)
}

// giveBack returns the jobs that were fetched ahead to their places in the queue. It is
// called if no slot became free for longer than the pace expected, or if too many jobs
// are not settled.
func (s *session) giveBack() {
	s.mu.Lock()
	left := s.pace.maxWait() - time.Since(s.moved)
	busy := s.taken == s.w.opts.Concurrency
	slow := left <= 0 && len(s.waiting) > 0 && (busy || s.unsettled >= maxUnsettled)
	if slow && busy {
		s.pace.overran()
	}
	s.patient = len(s.waiting) > 0 && !slow
	if s.patient {
		s.giveBackTimer.Reset(max(left, minWait))
	}
	s.mu.Unlock()
	if slow {
		s.releaseWaiting()
	}
}
