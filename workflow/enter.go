package workflow

import "github.com/gopawl/pawl/driver"

// A run that begins later than it was started takes its places when it begins: one with a delay, a fork, an import,
// and one whose flow had no limit then.

// enter is the mutation that gives a run the places that it needs, or has it wait in line.
type enter struct {
	x      *execution
	row    *runRow
	places places
	in     bool
}

// takePlaces reports whether the run has its places. If it has not, its lease has ended.
func (x *execution) takePlaces() (in bool, err error) {
	begun := x.row.Build != "" && x.made > 0 || x.row.Restarts > 0
	if x.row.Cancel != "" || x.row.Line == 0 && (begun || len(x.flow.openLimits().needs(x.row)) == 0) {
		return true, nil
	}
	e := &enter{x: x}
	if err := x.engine.queue.Mutate(x.writing(), e, requestBytes); err != nil {
		return false, err
	}
	x.row = e.row
	x.observe(x.row)
	return e.in, nil
}

// Check takes the places. A run that is being cancelled needs none, since it makes no calls.
func (e *enter) Check(ops driver.Ops) (err error) {
	r := rowsOf(ops)
	if e.row, err = r.mustRun(e.x.run); err != nil {
		return err
	}
	e.in, e.places = true, places{limits: e.x.flow.openLimits()}
	if e.row.Cancel == "" && e.row.Terminate == "" {
		if e.in, err = e.places.take(r, e.x.run, e.row); err != nil {
			return err
		}
	}
	if !e.in {
		return ops.Snooze(e.x.lease, e.row.wakeBy(ops.Now().Add(forever)))
	}
	if e.row.Line == 0 {
		e.row.Status, e.row.Due = Running, 0
	}
	return ops.Hold(e.x.lease)
}

// Apply writes the places and the row.
func (e *enter) Apply(tx driver.Writer) error {
	r := rowsTo(tx)
	if err := e.places.apply(r); err != nil {
		return err
	}
	return r.putRun(e.x.run, e.row)
}
