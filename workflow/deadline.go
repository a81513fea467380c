package workflow

import (
	"context"
	"errors"
	"time"

	"github.com/gopawl/pawl"
)

// When the deadline of a run passes, the holder of its lease cancels it, in a commit that does what [Engine.Cancel]
// does. During an attempt, a timer waits for the deadline. An attempt that begins after the deadline begins with that
// commit. The job of a waiting run becomes ready at the deadline at the latest.

// late reports whether the run has to be cancelled now because of its deadline.
func (row *runRow) late(now time.Time) bool {
	return row.limited() && row.Deadline <= unixNano(now)
}

// limited reports whether the run has a deadline that has not taken effect yet.
func (row *runRow) limited() bool {
	return row.Deadline != 0 && row.Cancel == "" && row.Terminate == "" && row.open()
}

// wakeBy returns when the job of a run that waits until a time becomes ready.
func (row *runRow) wakeBy(due time.Time) time.Time {
	if deadline := timeOf(row.Deadline); row.limited() && deadline.Before(due) {
		return deadline
	}
	return due
}

// expire cancels the run if its deadline has passed. It returns the row.
func (x *execution) expire() (now *runRow, err error) {
	err = x.engine.ask(context.Background(), "cancel at the deadline", x.run, nil, func(row *runRow) (urge, error) {
		if now = row; row.late(x.engine.now()) {
			row.Cancel, row.Paused = ErrDeadline.Error(), false
		}
		return runNow, nil // the run may have been suspended meanwhile
	})
	return now, err
}

// awaitDeadline cancels the run at its deadline, unless it is stopped before.
func (x *execution) awaitDeadline() (stop func()) {
	if !x.row.limited() {
		return func() {}
	}
	deadline, over := timeOf(x.row.Deadline), make(chan struct{})
	log := x.engine.opts.Logger
	go func() {
		for wait := deadline.Sub(x.engine.now()); wait > 0; wait = deadline.Sub(x.engine.now()) {
			timer := time.NewTimer(untilLook(wait))
			select {
			case <-timer.C:
			case <-over:
				timer.Stop()
				return
			}
		}
		_, err := x.expire()
		if err != nil && !errors.Is(err, ErrNotRunning) && !errors.Is(err, ErrNotFound) && !errors.Is(err, pawl.ErrClosed) {
			log.Warn("cannot cancel a run at its deadline; trying again at its next wake", "run", x.run, "error", err)
		}
	}()
	return func() { close(over) }
}
