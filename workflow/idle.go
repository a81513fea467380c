package workflow

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gopawl/pawl"
)

// errCircle stops a run whose branches wait only for each other.
var errCircle = errors.New("its branches wait for one another, and for nothing else")

// waitCondition is what a scope waits for.
type waitCondition struct {
	due      time.Time // zero for no time
	signals  []string  // names of the signals
	child    *entry
	children []pawl.ID // waits until all these runs have undone their steps
	branches bool      // waits for the end of a branch, and nothing else
	ends     bool      // also waits for the end of a branch
	shared   bool      // also waits for a shared value
	paused   bool
	note     string // for operators: the error of a failed step that will be retried, or which children or condition it waits for

	began  time.Time     // by the monotonic clock
	clock  time.Time     // what the queue's clock showed then; zero for no time
	passed bool          // its time is over; only set if the process waited for it
	woken  chan struct{} // closed when the scope continues
}

// within reports whether only another branch of the run can end the wait.
func (w *waitCondition) within() bool {
	return w.branches || w.shared && w.due.IsZero() && len(w.signals) == 0
}

// circle returns the error of a run whose branches wait only for each other. The caller holds the lock.
func (x *execution) circle() error {
	var notes []string
	for _, s := range x.idle {
		if s.waits.shared {
			who := "the function"
			if s.name != "" {
				who = fmt.Sprintf("branch %q", s.name)
			}
			notes = append(notes, who+" "+s.waits.note)
		}
	}
	if len(notes) == 0 {
		return errCircle
	}
	slices.Sort(notes)
	return fmt.Errorf("%w: %s", errCircle, strings.Join(notes, "; "))
}

// idle makes a scope wait until its time, or until it is woken. The caller then checks its
// condition. If ready returns true, idle returns at once. An error means that the run does not
// continue and is usually [ErrSuspended].
func (s *scope) idle(w waitCondition, ready func() bool) (passed bool, err error) {
	x := s.x
	x.mu.Lock()
	if s.waits != nil && x.stopped == nil {
		defer x.mu.Unlock()
		return false, s.mayCall() // another goroutine uses the Run
	}
	if x.stopped != nil || s.barred(w) || ready != nil && ready() {
		defer x.mu.Unlock()
		return false, x.stopped
	}
	w.began, w.woken = time.Now(), make(chan struct{})
	s.waits = &w
	x.idle = append(x.idle, s)
	x.active--
	if !w.due.IsZero() {
		w.clock = x.engine.now()
		x.setAlarm(untilLook(w.due.Sub(w.clock)))
	}
	turn, grace := x.turn, x.grace
	if time.Since(x.tried) > graceTurn {
		grace = 0
	}
	x.mu.Unlock()

	if !x.comesWithin(grace, &w) {
		x.rest()
	}
	select {
	case <-w.woken:
		x.mu.Lock()
		defer x.mu.Unlock()
		if len(w.signals) > 0 && x.turn == turn {
			x.grace = min(2*time.Since(w.began), mostGrace)
		}
		return w.passed, x.stopped
	case <-x.done:
		x.mu.Lock()
		defer x.mu.Unlock()
		return false, x.stopped
	}
}

const (
	// mostGrace is the longest time that a run waits for a signal before it is suspended.
	mostGrace = 20 * time.Millisecond

	// graceTurn is how long a run may use such waits between two tries to suspend it. After it, the run gives its
	// slot to others unless the next signal has come.
	graceTurn = time.Second
)

// comesWithin waits for a signal until the grace is over, and reports whether the scope has been woken. If the
// last signal of a run came soon, the next one probably comes soon, too. So the run waits up to twice as long as
// it waited for the last one, which may save a suspension and a lease. A run that was suspended in between does
// not wait.
func (x *execution) comesWithin(grace time.Duration, w *waitCondition) bool {
	if !w.due.IsZero() {
		grace = min(grace, w.due.Sub(x.engine.now()))
	}
	if len(w.signals) == 0 || grace <= 0 {
		return false
	}
	over := time.NewTimer(grace)
	defer over.Stop()
	select {
	case <-over.C:
		return false
	case <-w.woken:
	case <-x.done:
	}
	return true
}

// barred reports whether the call that is about to wait must not continue. The cause of that has already woken
// the waiting scopes. The caller holds the lock.
func (s *scope) barred(w waitCondition) bool {
	return !w.branches && !w.paused && (s.abandoned || s.x.cancel != "" && !s.inUndo())
}

// wakeLocked wakes the idle scopes for which concerned returns true. The caller holds the lock.
//
// During a suspension it wakes them only after the suspension has failed. A successful
// suspension has checked the conditions of all scopes.
func (x *execution) wakeLocked(concerned func(*scope) bool) {
	kept := x.idle[:0]
	for _, s := range x.idle {
		switch {
		case !concerned(s):
		case x.resting:
			x.late = append(x.late, s)
		default:
			close(s.waits.woken)
			s.waits = nil
			x.active++
			continue
		}
		kept = append(kept, s)
	}
	clear(x.idle[len(kept):])
	x.idle = kept
}

// catchUpNoMore is called when all scopes wait. The scopes that have not reached the end of the
// journal wait for branches to which changed code has added calls. So the new calls of such a
// branch no longer wait for these scopes. A paused run continues later. The caller holds the lock.
func (x *execution) catchUpNoMore() {
	if len(x.behind) == 0 || slices.ContainsFunc(x.idle, func(s *scope) bool { return s.waits.paused }) {
		return
	}
	clear(x.behind)
	x.wakeCaughtUp()
}

// rest suspends the run if all of its scopes wait for long enough.
func (x *execution) rest() {
	x.mu.Lock()
	if x.active > 0 || x.resting || x.stopped != nil || len(x.idle) == 0 {
		x.mu.Unlock()
		return
	}
	if x.dry {
		_ = x.stopLocked(errFrontier)
		x.mu.Unlock()
		return
	}
	if x.catchUpNoMore(); x.active > 0 {
		x.mu.Unlock()
		return
	}
	if !slices.ContainsFunc(x.idle, func(each *scope) bool { return !each.waits.within() }) {
		_ = x.stopLocked(x.circle())
		x.mu.Unlock()
		return
	}
	s := &suspend{x: x, cancelled: x.cancel != "", made: x.made, bytes: x.bytes}
	for _, each := range x.idle {
		s.waits = append(s.waits, each.waits)
	}
	if due := s.due(); !due.IsZero() && due.Sub(x.engine.now()) < leastSuspension {
		unsaved := x.backlog.restless()
		x.wakeDue(false) // the clock may have been set
		x.mu.Unlock()
		if unsaved { // including deadlines of the other scopes, which may wait longer
			_ = x.save()
		}
		return // the alarm wakes the scope
	}
	x.resting, x.tried = true, time.Now()
	x.stopAlarm()
	s.journal = x.take()
	stay, bytes := x.mayStay(), x.warmBytes()
	x.mu.Unlock()

	if stay {
		x.settled = make(chan struct{})
		stay = x.engine.hub.warm.add(x, bytes)
	}
	err := x.mutate(x.writing(), s, s.journal.bytes)
	if stay {
		if x.wrote = s.wrote; x.stayed(err == nil) {
			return
		}
	}
	if errors.Is(err, errWoken) {
		x.observe(&s.row)
	}
	x.suspended(s, err)
}

// suspended ends a run that was suspended. If the suspension failed because of news, it wakes the scopes concerned.
func (x *execution) suspended(s *suspend, err error) {
	x.mu.Lock()
	x.resting = false
	late := x.late
	x.late = nil
	switch {
	case err == nil:
		_ = x.stopLocked(ErrSuspended)
	case errors.Is(err, errWoken):
		x.news++
		x.wakeLocked(func(each *scope) bool { return slices.Contains(late, each) || s.woke(each.waits) })
		x.wakeDue(false)
	default:
		_ = x.stopLocked(err)
	}
	again := x.active == 0 && x.stopped == nil
	unsaved := x.backlog.restless() && x.stopped == nil && len(x.idle) > 0
	x.mu.Unlock()
	switch {
	case again: // the notification concerns none of them, so they keep waiting
		x.rest()
	case unsaved: // including deadlines of the scopes that keep waiting
		_ = x.save()
	}
}
