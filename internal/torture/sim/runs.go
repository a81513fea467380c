package sim

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/worker"
)

// judgeRun requires that a run had a lease of its own, and that the queue was told what it
// came to.
func (w *world) judgeRun(r *run) error {
	l := w.byToken[r.token]
	switch {
	case l == nil:
		return errors.New("it had no lease")
	case l.run != nil:
		return errors.New("its lease was that of an earlier run")
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
		early, late := r.to == 0 || at <= r.to, r.to != 0 && at >= r.to // in one instant either may have come first
		if !(early && r.givenUp(s) || late && r.allows(s)) {
			return fmt.Errorf("the queue was told %v, reason %q, and it had ended by %v", s, s.reason, r.cause)
		}
	}
	return nil
}

// judgeEnd requires that a run was told to end when its time was over, and that one which did
// not hear it was given up.
func (w *world) judgeEnd(r *run, l *lease) error {
	h, never := r.by, int64(never)
	limit := cmp.Or(time.Duration(r.limit), h.crew.Timeout)
	over := never
	if limit > 0 {
		over = r.from + int64(limit)
	}
	if l.track.deadline != 0 && !w.c.Clock { // by the clock on the wall, which the worker does not see
		over = min(over, max(l.track.deadline, r.from))
	}
	noticed := over // when its context ended at the latest
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
	switch {
	case r.from > stopped:
		return errors.New("its worker had stopped")
	case !r.deaf && r.to > noticed:
		return fmt.Errorf("it was to end at %s, and was not told", clock(noticed))
	case r.deaf && !r.died && over != never && r.to > over+int64(h.crew.Stuck) && (!is || decided > over+int64(h.crew.Stuck)):
		return fmt.Errorf("its time was over at %s, and it was not given up", clock(over))
	}
	return nil
}

// allows reports whether a verb is what the result of a run means.
func (r *run) allows(s *record) bool {
	stopped := errors.Is(r.cause, worker.ErrStopping) && s.what == "release"
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

// givenUp reports whether a verb is that of a worker which did not wait for the run's end.
func (r *run) givenUp(s *record) bool {
	return s.what == "release" || r.deaf && (s.what == "abandon" || s.what == "nack")
}
