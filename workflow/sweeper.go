package workflow

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// The sweeper's pauses. The minimum lets it remove runs together that end shortly after each other.
// The maximum exists because the clock may be set. The third is the pause after an error.
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
		e.hub.removal.Store(noRemoval) // after this, every end of a run rings the bell
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
	for more := true; more; {
		select {
		case e.hub.sweeping <- struct{}{}:
		case <-e.queue.Done():
			return pawl.ErrClosed
		}
		r, err := e.portionUntil(e.now())
		if err == nil && len(r.due) > 0 {
			err = e.queue.Mutate(context.Background(), r, requestBytes)
		}
		<-e.hub.sweeping
		if err != nil {
			return err
		}
		more = r.more
	}
	return nil
}

// portionUntil returns the removal of what is due at a time and fits into a portion. The rest of a run
// that was partly removed is a portion by itself, since its removal runs alone.
func (e *Engine) portionUntil(at time.Time) (r *removal, err error) {
	err = e.source.ViewRows(context.Background(), func(tx driver.Reader) error {
		r = new(removal)
		s := sweep{rows: rowsOf(tx), left: portionQuota()}
		keys, err := s.due(at)
		if err != nil {
			return err
		}
		left := s.left.rows
		for _, key := range keys {
			if key == nil {
				continue // damage in the place of a row stays
			}
			d := dueRun{key: key}
			var row *runRow
			if _, run, err := parseEndedKey(key); err == nil {
				d.run = run
				row, _ = s.run(run) // the removal handles an unreadable row
			}
			if r.cut = left <= 0 || row == nil && len(r.due) > 0; r.cut {
				return nil
			}
			r.due = append(r.due, d)
			left -= headRows
			if row == nil {
				left = 0
				continue
			}
			r.due[len(r.due)-1].id = idKey(row.Flow, row.ID)
			left -= row.Steps
		}
		return nil
	})
	return r, err
}

// removal is the mutation that removes a portion of what is due.
type removal struct {
	due  []dueRun
	cut  bool // more is due
	now  time.Time
	more bool
	runs int // how many are gone
}

// dueRun is a due row in ended.
type dueRun struct {
	key []byte
	run pawl.ID // zero if the key is malformed
	id  []byte  // the key of the row in ids, if the run can be found
}

// Declare declares the rows in ended, the runs, and their IDs.
func (r *removal) Declare(n *driver.Needs) {
	for _, d := range r.due {
		n.Row(tableEnded, d.key)
		if !d.run.IsZero() {
			n.Own(tableRuns, d.run[:])
		}
		if d.id != nil {
			n.Row(tableIDs, d.id)
		}
	}
}

// Check records the time.
func (r *removal) Check(ops driver.Ops) error {
	r.now = ops.Now()
	return nil
}

// Apply removes a portion.
func (r *removal) Apply(tx driver.Writer) error {
	s := sweep{rows: rowsTo(tx), left: portionQuota()}
	keys := make([][]byte, len(r.due))
	for i, d := range r.due {
		keys[i] = d.key
	}
	err := s.these(r.now, keys)
	r.more, r.runs = s.full || r.cut && s.some, s.runs
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
