package workflow

import (
	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// A function often returns after a last look for signals: a Wait that timed out. A signal that is
// sent between that look and the end of the run is accepted, and nobody would see it. So the commit
// that is to end the run looks for such signals, and takes the run back to the Wait instead: the
// Wait and what the function itself did since are forgotten, and the function runs again. The Wait
// gets the signal then, so each such signal costs one more turn, and a run ends when no more come.
//
// That is sound as long as nothing took effect since the Wait. So a step, a transaction, a child, a
// branch, or a race behind it makes its timeout final. A signal that the function did not look for
// in the end stays unread, and the run ends: no turn would change that.

// looked notes a call of the function itself: what it has done since the last that took effect. The
// caller holds the lock.
func (s *scope) looked(e *entry) {
	if s.name != "" {
		return
	}
	switch e.Kind {
	case KindWait, KindSleep, KindVersion:
		s.x.tail = append(s.x.tail, e)
	default:
		s.x.tail, s.x.tailTold = nil, nil
	}
}

// rewind takes a run back to a Wait, in place of its end.
type rewind struct {
	at    int      // the place of the Wait in the tail
	from  []*entry // the Wait and the calls behind it, nil for no rewind
	given unread   // signals that the calls behind it got
}

// find looks for a signal that came behind a Wait which timed out.
func (w *rewind) find(ops driver.Ops, r rows, run pawl.ID, tail []*entry) (err error) {
	w.from, w.given = nil, unread{run: run}
	for i, e := range tail {
		if e.Kind != KindWait || e.State != EntryFailed {
			continue
		}
		found, err := r.hasSignal(run, e.Name)
		if err != nil {
			return err
		}
		if !found {
			continue
		}
		w.at, w.from = i, tail[i:]
		for _, later := range w.from {
			w.given.looks = append(w.given.looks, &look{seq: later.seq})
		}
		return w.given.find(r, ops.Now())
	}
	return nil
}

// apply forgets the calls, and gives back the signals that they got, in the row of the run.
func (w *rewind) apply(r rows, run pawl.ID, row *runRow) error {
	if w.given.row != nil {
		w.given.row = row
	}
	if err := w.given.apply(r); err != nil {
		return err
	}
	for _, e := range w.from {
		for _, t := range [...]*driver.Table{tableSteps, tableBlobs} {
			if err := r.delete(t, seqKey(run, e.seq)); err != nil {
				return err
			}
		}
	}
	return nil
}

// isRewound reports whether the run is taken back, and makes its job ready then.
func (f *finish) isRewound(ops driver.Ops, r rows) (bool, error) {
	if f.status != Done || f.row.Terminate != "" || f.row.Cancel != "" || f.row.Unread == 0 {
		f.back.from = nil
		return false, nil
	}
	if err := f.back.find(ops, r, f.x.run, f.tail); f.back.from == nil || err != nil {
		return false, err
	}
	f.row.Status, f.row.Error, f.row.Due, f.row.Waits = Running, "", 0, nil
	f.row.Build, f.row.Declared = f.x.engine.opts.Build, f.x.declared()
	f.row.Steps, f.row.Bytes = f.x.made-len(f.back.from), f.x.bytes
	for _, e := range f.back.from {
		f.row.Bytes -= e.weight()
	}
	return true, ops.Snooze(f.x.lease, ops.Now())
}

// rewound writes that.
func (f *finish) rewound(tx driver.Writer) error {
	r := rowsTo(tx)
	if err := f.journal.apply(r); err != nil { // a part of it goes again
		return err
	}
	if err := f.back.apply(r, f.x.run, f.row); err != nil {
		return err
	}
	if err := f.x.untold(r, f.back.at); err != nil {
		return err
	}
	if err := r.delete(tableBlocked, f.x.run[:]); err != nil {
		return err
	}
	return r.putRun(f.x.run, f.row)
}
