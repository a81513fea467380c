package sim

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/worker"
)

// judgeRun requires that an attempt had its own lease, and that the worker settled the lease
// according to the result of the attempt.
func (w *world) judgeRun(r *run) error {
	l := w.byToken[r.token]
	switch {
	case l == nil:
		return errors.New("it had no lease")
	case l.run != nil:
		return errors.New("its lease was that of an earlier attempt")
	case r.from < l.at:
		return errors.New("it began before its lease")
	case r.attempt != l.attempts+1:
		return fmt.Errorf("it was called attempt %d, after %d", r.attempt, l.attempts)
	}
	l.run = r
	if err := w.judgeEnd(r, l); err != nil || r.died {
		return err
	}
	for _, s := range l.settles {
		if s.held || s.what == "extend" {
			continue
		}
		at := w.decisions[r.token]
		early, late := r.to == 0 || at <= r.to, r.to != 0 && at >= r.to // within one instant, either may have come first
		if !(early && r.givenUp(s) || late && r.allows(s)) {
			return fmt.Errorf("the worker settled it by %v, reason %q, and its context had ended by %v", s, s.reason, r.cause)
		}
	}
	return nil
}

// judgeEnd requires that the context of an attempt ended at its limit, and that the worker gave
// up a stuck attempt.
func (w *world) judgeEnd(r *run, l *lease) error {
	h, never := r.by, int64(never)
	limit := cmp.Or(time.Duration(r.limit), h.crew.Timeout)
	over := never
	if limit > 0 {
		over = r.from + int64(limit)
	}
	if l.track.deadline != 0 && !w.c.Clock { // deadlines are on the wall clock, which the worker does not use
		over = min(over, max(l.track.deadline, r.from))
	}
	noticed := over // the latest time at which its context ended
	for _, at := range l.track.cancels {
		if at > r.from && (l.ended == 0 || at < l.ended) {
			noticed = min(noticed, at)
		}
	}
	stopped := cmp.Or(h.stopped, never)
	if stopped != never {
		noticed = min(noticed, max(r.from, stopped+int64(h.crew.Drain)))
	}
	decided, is := w.decisions[r.token]
	doubted := errors.Is(r.cause, worker.ErrLeaseInDoubt)
	switch {
	case doubted && !h.wasImpaired(l.at, r.to):
		return errors.New("its worker was in doubt about the lease, and nothing kept extensions back")
	case r.from > stopped:
		return errors.New("its worker had stopped")
	case !r.deaf && r.to > noticed:
		return fmt.Errorf("its context had to end at %s, and did not", clock(noticed))
	case r.deaf && !r.died && over != never && r.to > over+int64(h.crew.Stuck) && (!is || decided > over+int64(h.crew.Stuck)):
		return fmt.Errorf("its time was over at %s, and the worker did not give it up", clock(over))
	}
	return nil
}

// allows reports whether a verb fits the result of an attempt.
func (r *run) allows(s *record) bool {
	stopped := (errors.Is(r.cause, worker.ErrStopping) || errors.Is(r.cause, worker.ErrLeaseInDoubt)) && s.what == "release"
	exhausted := r.last && s.what == "abandon" && s.reason == pawl.ReasonExhausted
	switch r.does {
	case succeeds:
		return s.what == "ack"
	case permanent:
		return s.what == "abandon" && s.reason == pawl.ReasonPermanent
	case snoozes:
		return s.what == "snooze" && s.delay == r.wait
	case retries:
		return stopped || exhausted || !r.last && s.what == "nack" && s.delay == r.wait
	}
	return stopped || exhausted || !r.last && s.what == "nack" && s.delay == r.by.crew.Backoff
}

// givenUp reports whether a verb fits a worker that gave up the attempt.
func (r *run) givenUp(s *record) bool {
	return s.what == "release" || r.deaf && (s.what == "abandon" || s.what == "nack")
}
