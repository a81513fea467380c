package workflow

import (
	"errors"
	"slices"
	"time"

	"github.com/gopawl/pawl/driver"
)

// errWoken refuses a suspension: a wait condition of a scope is met.
var errWoken = errors.New("what the run waits for has come")

// suspend is the mutation that makes a run wait.
type suspend struct {
	x         *execution
	waits     []*waitCondition
	journal   journal
	cancelled bool // the run knows that it is being cancelled
	made      int
	bytes     int64

	wrote uint32 // seq of the last entry in the file; only for a store that other processes share

	row runRow // the run's row, as read and then changed by the mutation
	now time.Time
	has []*waitCondition // conditions that are met
}

// due returns the earliest time that any scope waits for, or zero for none.
func (s *suspend) due() (due time.Time) {
	for _, w := range s.waits {
		if !w.due.IsZero() && (due.IsZero() || w.due.Before(due)) {
			due = w.due
		}
	}
	return due
}

// Check tests whether there is still something to wait for.
func (s *suspend) Check(ops driver.Ops) error {
	r := rowsOf(ops)
	row, err := r.mustRun(s.x.run)
	if err != nil {
		return err
	}
	s.row, s.now, s.has = *row, ops.Now(), nil
	if s.row.Terminate != "" || s.row.Cancel != "" && !s.cancelled {
		return errWoken
	}
	if s.x.engine.hub.shared {
		if s.wrote, err = r.lastSeq(s.x.run, row.Journal); err != nil {
			return err
		}
		for _, p := range s.x.unwritten() {
			if p.table == tableSteps {
				s.wrote = max(s.wrote, number32(p.key))
			}
		}
	}
	if s.row.Paused && s.row.Cancel == "" {
		s.settle(time.Time{})
		return ops.Snooze(s.x.lease, s.row.wakeBy(s.now.Add(forever)))
	}
	for _, w := range s.waits {
		over, err := s.over(r, w)
		if err != nil {
			return err
		}
		if over {
			s.has = append(s.has, w)
		}
	}
	if len(s.has) > 0 {
		return errWoken
	}
	due := s.due()
	s.settle(due)
	if due.IsZero() {
		due = s.now.Add(forever)
	}
	return ops.Snooze(s.x.lease, s.row.wakeBy(due))
}

// over reports whether the wait condition w is met.
func (s *suspend) over(r rows, w *waitCondition) (over bool, err error) {
	switch {
	case w.paused:
		return true, nil // the run is no longer paused
	case !w.due.IsZero() && !w.due.After(s.now):
		return true, nil
	case w.children != nil:
		return r.nobodyUndoes(w.children)
	case w.child != nil:
		e, err := r.entry(s.x.run, w.child.seq)
		return e != nil && e.State != EntryPending, err
	}
	for _, name := range w.signals {
		if over, err := r.hasSignal(s.x.run, name); over || err != nil {
			return over, err
		}
	}
	return false, nil
}

func (s *suspend) woke(w *waitCondition) bool { return w.paused || slices.Contains(s.has, w) }

// settle records in the row what the run waits for.
func (s *suspend) settle(due time.Time) {
	s.row.Status, s.row.Due, s.row.Waits, s.row.Error = Sleeping, unixNano(due), nil, ""
	for _, w := range s.waits {
		if s.row.Error == "" {
			s.row.Error = w.note
		}
		for _, name := range w.signals {
			if !slices.Contains(s.row.Waits, name) {
				s.row.Waits = append(s.row.Waits, name)
			}
		}
		if len(w.signals) > 0 || w.child != nil || w.children != nil || w.shared {
			s.row.Status = Waiting
		}
	}
	s.row.Declared = s.x.declared()
	s.row.Build, s.row.Steps, s.row.Bytes = s.x.engine.opts.Build, s.made, s.bytes
}

// Apply writes the backlog and the row.
func (s *suspend) Apply(tx driver.Writer) error {
	r := rowsTo(tx)
	if err := s.journal.apply(r); err != nil {
		return err
	}
	if err := r.delete(tableBlocked, s.x.run[:]); err != nil {
		return err
	}
	return r.putRun(s.x.run, &s.row)
}
