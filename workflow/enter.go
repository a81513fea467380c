package workflow

import "github.com/gopawl/pawl/driver"

// Some runs begin later than they are started: a run with a delay, a fork, an imported run, a run whose flow had no
// limit at the start, and each run whose flow has a rate. They take their places when they begin.

// enter is the mutation that gives a run the places that it needs, or puts it in line.
type enter struct {
	x      *execution
	row    *runRow
	places places
	in     bool
}

// takePlaces reports whether the run has its places. If it has not, its lease has ended.
func (x *execution) takePlaces() (in bool, err error) {
	begun := x.row.Build != "" && x.made > 0 || x.row.Restarts > 0 || x.row.Places&started != 0
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

// missesTurn reports whether a paused run is in a line with a rate. When its turn comes, it leaves the line, so that
// it does not delay other runs.
func (x *execution) missesTurn() bool {
	return x.row.Line != 0 && x.flow.openLimits().rated()
}

// Check takes the places. A run that is being cancelled needs none, since it makes no calls.
func (e *enter) Check(ops driver.Ops) (err error) {
	r := rowsOf(ops)
	if e.row, err = r.mustRun(e.x.run); err != nil {
		return err
	}
	e.in, e.places = true, places{limits: e.x.flow.openLimits(), now: ops.Now(), self: e.x.run}
	if e.row.Cancel == "" && e.row.Terminate == "" {
		if e.in, err = e.places.take(ops, r, e.x.run, e.row); err != nil {
			return err
		}
		if err = e.start(ops, r); err != nil {
			return err
		}
	}
	if !e.in {
		return ops.Snooze(e.x.lease, e.row.wakeBy(e.places.turn))
	}
	if e.row.Line == 0 {
		e.row.Status, e.row.Due = Running, 0
	}
	return ops.Hold(e.x.lease)
}

// start counts the start of a run that may begin. A paused run gives its turn and its places to others.
func (e *enter) start(ops driver.Ops, r rows) (err error) {
	p := &e.places
	if !p.limits.rated() {
		return nil
	}
	if e.in && e.row.Paused {
		if e.row, err = r.mustRun(e.x.run); err != nil { // without the places it has just taken
			return err
		}
		e.in, e.row.Due = false, 0
		e.row.becomes(Running)
		*p = places{limits: p.limits, now: p.now, self: p.self, woken: p.woken, turn: p.now.Add(forever)}
		return p.leave(ops, r, e.x.run, e.row)
	}
	if e.in {
		err = p.begin(r, e.x.run, e.row)
	}
	if err == nil {
		err = p.rouse(ops, r)
	}
	return err
}

// Apply writes the places and the row.
func (e *enter) Apply(tx driver.Writer) error {
	r := rowsTo(tx)
	if err := e.places.apply(r); err != nil {
		return err
	}
	return r.putRun(e.x.run, e.row)
}
