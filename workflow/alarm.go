package workflow

import (
	"slices"
	"time"
)

// Waits end by the queue's clock, which may be set while a run is active. So the timers of an active run look at that
// clock before they end a wait, and at least once a minute. A suspended run has no timer: its job wakes it.

const (
	// mostUnseen is how long an active run waits before it looks at the clock again.
	mostUnseen = time.Minute

	// stillLook is the time between two looks that show whether the clock stands still.
	stillLook = time.Millisecond
)

// untilLook returns how long to wait before the next look at the clock, given the time that is left until the end of
// the wait.
func untilLook(left time.Duration) time.Duration { return max(0, min(left, mostUnseen)) }

// setAlarm makes the alarm of the run ring after the given time at the latest. In a dry run nothing waits. The caller holds the
// lock.
func (x *execution) setAlarm(wait time.Duration) {
	if x.dry {
		return
	}
	rings := time.Now().Add(wait)
	switch {
	case x.alarm == nil:
		x.alarm = time.AfterFunc(wait, x.ring)
	case x.rings.IsZero() || rings.Before(x.rings):
		x.alarm.Reset(wait)
	default:
		return
	}
	x.rings = rings
}

// stopAlarm stops the alarm. The caller holds the lock.
func (x *execution) stopAlarm() {
	if x.alarm != nil {
		x.alarm.Stop()
		x.rings = time.Time{}
	}
}

// ring is called when the alarm rings. If all scopes still wait, the clock was set back. Then a scope that is woken
// looks, waits again, and suspends the run.
func (x *execution) ring() {
	now := x.engine.now()
	x.mu.Lock()
	defer x.mu.Unlock()
	x.rings = time.Time{}
	still := slices.ContainsFunc(x.idle, func(s *scope) bool { return s.waits.clock.Equal(now) })
	if still { // a test has stopped the clock, or it was set back by as much as has passed
		x.mu.Unlock()
		time.Sleep(stillLook)
		still = x.engine.now().Equal(now)
		x.mu.Lock()
	}
	x.wakeDue(still)
	if x.active == 0 && !x.resting && x.stopped == nil {
		x.wakeLocked(func(s *scope) bool { return x.active == 0 && !s.waits.due.IsZero() })
	}
}

// wakeDue wakes the scopes whose time has come, and sets the alarm for the others. If the clock stands still, real time
// counts. The caller holds the lock.
func (x *execution) wakeDue(still bool) {
	if x.resting || x.stopped != nil {
		return
	}
	now, next := x.engine.now(), Forever
	x.wakeLocked(func(s *scope) bool {
		w := s.waits
		if w.due.IsZero() {
			return false
		}
		left := w.due.Sub(now)
		if still && w.clock.Equal(now) {
			left -= time.Since(w.began)
		}
		if left > 0 {
			if !w.clock.Equal(now) { // the clock may stand still from now on
				w.began, w.clock = time.Now(), now
			}
			next = min(next, left)
			return false
		}
		w.passed = true
		return true
	})
	if next < Forever {
		x.setAlarm(untilLook(next))
	}
}
