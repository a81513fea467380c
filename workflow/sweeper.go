package workflow

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// The sweeper's pauses: the minimum, so that runs that end in sequence are removed together;
// the maximum, since the clock may be set; and the pause after an error.
const (
	leastPause  = time.Second
	mostPause   = time.Hour
	failedPause = time.Minute
)

// noRemoval is the next removal time of a sweeper that knows of none.
const noRemoval = math.MaxInt64

// runSweeper removes runs at the end of their retention, as long as the queue is open. It
// writes only when something is due, in portions that join the commits of others.
func (e *Engine) runSweeper() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		e.hub.removal.Store(noRemoval) // from here on, every end of a run rings the bell
		wait, bell := mostPause, e.hub.bell
		due, ok, err := e.nextRemoval()
		switch left := due.Sub(e.now()); {
		case err != nil || !ok:
		case left <= 0:
			wait, bell = leastPause, nil
			err = e.removeDue()
		default:
			e.hub.removal.Store(due.UnixNano())
			wait = max(leastPause, min(left, mostPause))
		}
		if err != nil {
			wait, bell = failedPause, nil
			if !errors.Is(err, pawl.ErrClosed) {
				e.opts.Logger.Warn("cannot remove runs that have ended; trying again", "error", err)
			}
		}
		timer.Reset(wait)
		select {
		case <-e.queue.Done():
			return
		case <-bell:
		case <-timer.C:
		}
	}
}

// nextRemoval returns when the next run is to be removed. If there is none, ok is false.
func (e *Engine) nextRemoval() (due time.Time, ok bool, err error) {
	err = e.source.ViewRows(context.Background(), func(tx driver.Reader) error {
		return present(tx.Scan(tableEnded, driver.Span{}, func(key, value []byte) bool {
			if value == nil {
				return true // damage in the place of a row stays
			}
			ok = true
			due, _, _ = parseEndedKey(key) // a malformed key is removed at once
			return false
		}))
	})
	return due, ok, err
}

// removeDue removes everything due, in portions.
func (e *Engine) removeDue() error {
	for r := (&removal{more: true}); r.more; {
		select {
		case e.hub.sweeping <- struct{}{}:
		case <-e.queue.Done():
			return pawl.ErrClosed
		}
		err := e.queue.Mutate(context.Background(), r, requestBytes)
		<-e.hub.sweeping
		if err != nil {
			return err
		}
	}
	return nil
}

// removal is the mutation that removes a portion of what is due.
type removal struct {
	now  time.Time
	more bool
}

// Check records the time.
func (r *removal) Check(ops driver.Ops) error {
	r.now = ops.Now()
	return nil
}

// Apply removes a portion.
func (r *removal) Apply(tx driver.Writer) error {
	s := sweep{rows: rowsTo(tx), left: portionQuota()}
	err := s.until(r.now)
	r.more = s.full
	return err
}

// sweepBy makes the sweeper look again, unless it will look before the run's removal time.
func (h *hub) sweepBy(at time.Time) {
	if at.UnixNano() >= h.removal.Load() {
		return
	}
	select {
	case h.bell <- struct{}{}:
	default:
	}
}
