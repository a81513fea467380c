package workflow

import (
	"slices"
	"strings"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// A function often returns after a last look for signals: a Wait or a Select that timed out. A signal sent
// between that look and the end of the run would be accepted and never read. So the commit that would end
// the run looks for such a signal. If it finds one, it rewinds the run to the Wait: it forgets how the Wait
// ended and the function's own later calls, and the function runs again. The Wait then receives the signal.
// Its time stays over, so if the signal is a request that the function rejects, the Wait times out again at
// once. Each such signal costs one more round, and the run ends when no more arrive.
//
// That is sound if nothing has taken effect since the Wait. So a later step, transaction, child, branch, race, append
// or change of a shared value makes the timeout final. So does an undo step, if the function fails. If the function's
// last calls did not look for signals of that name, the signal stays unread and the run ends, since another round would
// not change that.

// looked records a call of the function itself in the tail: its calls since the last one with an effect. The caller
// holds the lock.
func (s *scope) looked(e *entry) {
	if s.name != "" {
		return
	}
	switch e.Kind {
	case KindWait, KindSelect, KindSleep, KindVersion, KindDecide:
		s.x.tail = append(s.x.tail, e)
	default:
		s.x.tail, s.x.tailPublished = nil, nil
	}
}

// rewind takes a run back to a Wait instead of ending it.
type rewind struct {
	at    int      // the position of the Wait in the tail
	from  []*entry // the Wait and the calls after it; nil for no rewind
	again entry    // the Wait, pending, with its time over
	given unread   // signals that the later calls received
}

// find looks for a signal that arrived after a Wait had timed out.
func (w *rewind) find(ops driver.Ops, r rows, run pawl.ID, tail []*entry) (err error) {
	w.from, w.given = nil, unread{run: run}
	for i, e := range tail {
		if slices.ContainsFunc(tail[i:], func(later *entry) bool { return later.Order != 0 }) {
			continue
		}
		found := false
		for _, name := range e.missed() {
			if found, err = r.hasSignal(run, name); found || err != nil {
				break
			}
		}
		if err != nil {
			return err
		}
		if !found {
			continue
		}
		w.at, w.from, w.again = i, tail[i:], *e
		w.again.overdue(ops.Now())
		for _, later := range w.from {
			w.given.looks = append(w.given.looks, &look{seq: later.seq})
		}
		return w.given.find(r, ops.Now())
	}
	return nil
}

// missed returns the names of the signals for which a call has waited until it timed out.
func (e *entry) missed() (names []string) {
	if e.Kind == KindWait && e.State == EntryFailed {
		return []string{e.Name}
	}
	var got selection
	if e.Kind != KindSelect || e.State != EntryDone || driver.DecodePayload(e.Result, &got) != nil ||
		got.Selected < 0 || got.Selected >= len(got.Cases) || got.Cases[got.Selected] != timerCase {
		return nil
	}
	for _, each := range got.Cases {
		if name, ok := strings.CutPrefix(each, signalCase); ok {
			names = append(names, name)
		}
	}
	return names
}

// overdue makes a Wait that timed out pending again. Its time stays over.
func (e *entry) overdue(now time.Time) {
	e.State, e.Due, e.Finished = EntryPending, min(e.Finished, now.UnixNano()), 0
	e.Error, e.Chain, e.Result, e.Apart, e.Size = "", nil, nil, false, 0
}

// apply forgets how the Wait ended and the calls after it, and gives back the signals they received, in the row of
// the run.
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
	var own journal
	own.add(run, &w.again)
	return own.apply(r)
}

// isRewound reports whether the run is taken back. If so, it makes the run's job ready.
func (f *finish) isRewound(ops driver.Ops, r rows) (bool, error) {
	goesBack := f.status == Done || f.status == Failed && !f.undid
	if !goesBack || f.row.Terminate != "" || f.row.Cancel != "" || f.row.Unread == 0 {
		f.back.from = nil
		return false, nil
	}
	if err := f.back.find(ops, r, f.x.run, f.tail); f.back.from == nil || err != nil {
		return false, err
	}
	f.row.Status, f.row.Error, f.row.Due, f.row.Waits = Running, "", 0, nil
	f.row.Build, f.row.Declared = f.x.engine.opts.Build, f.x.declared()
	f.row.Steps, f.row.Bytes = f.x.made-len(f.back.from)+1, f.x.bytes
	for _, e := range f.back.from {
		f.row.Bytes -= e.weight()
	}
	return true, ops.Snooze(f.x.lease, ops.Now())
}

// rewound writes the rewind.
func (f *finish) rewound(tx driver.Writer) error {
	r := rowsTo(tx)
	if err := f.journal.apply(r); err != nil { // some of it is deleted below
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
