package workflow

import (
	"maps"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// finish is the mutation that ends a run.
type finish struct {
	status Status
	output []byte
	err    error

	x       *execution
	journal journal
	open    []pawl.ID // children that have not ended
	tail    []*entry  // the function's last calls
	undid   bool      // it had undo steps, which have run unless it is done

	back     rewind
	row      *runRow
	now      time.Time
	parent   *entry // the entry in which the parent waits; nil if it does not
	children cancelled
	places   places // the places that the run leaves to others
}

// childOfEnded is the reason for cancelling a child whose parent has ended.
const childOfEnded = "the run that started it has ended"

// finish ends the run and notifies its waiters.
func (x *execution) finish(f *finish) (err error) {
	if f.open, err = x.lastChildren(childOfEnded); err != nil {
		return err
	}
	x.mu.Lock()
	f.x, f.journal, f.tail, f.undid = x, x.take(), x.tail, len(x.undos) > 0
	x.mu.Unlock()
	err = x.mutate(x.writing(), f, f.journal.bytes+len(f.output))
	defer func() { f.children.done(x.engine.hub, err) }() // after the end of the run
	if err != nil {
		return err
	}
	if f.back.from != nil {
		return nil
	}
	if f.row.Unread > 0 {
		x.engine.opts.Logger.Warn("a run ended with signals that it did not read", "flow", f.row.Flow, "id", f.row.ID, "run", x.run, "unread", f.row.Unread)
	}
	if f.row.Status != Done {
		x.engine.opts.Logger.Warn("a run did not succeed", "flow", f.row.Flow, "id", f.row.ID, "run", x.run, "status", f.row.Status, "error", f.row.Error)
	}
	h := x.engine.hub
	h.ended(x.run, ending{f.row, f.output})
	if until := f.row.keptUntil(); !until.IsZero() {
		h.sweepBy(until)
	}
	if f.parent != nil {
		h.childEnded(f.row.Parent, f.row.ParentSeq)
	}
	return nil
}

// openChildren returns the children that the run still waits for. The caller holds the lock.
func (x *execution) openChildren() (open []pawl.ID) {
	for _, e := range x.calls {
		if e.waitsForChild() {
			open = append(open, e.Child)
		}
	}
	return open
}

// Check acks the job and finds the waiting parent.
func (f *finish) Check(ops driver.Ops) (err error) {
	r := rowsOf(ops)
	if f.row, err = r.mustRun(f.x.run); err != nil {
		return err
	}
	if back, err := f.isRewound(ops, r); back || err != nil {
		return err
	}
	f.now = ops.Now()
	f.row.Status, f.row.Ended, f.row.Error, f.row.Chain, f.row.Output = f.status, f.now.UnixNano(), "", nil, nil
	if f.row.Terminate != "" {
		f.row.Status = Terminated
	}
	switch {
	case f.row.Status == Terminated:
		f.row.Error = f.row.Terminate
	case f.err != nil:
		f.row.Error, f.row.Chain = textOf(f.err), chainOf(f.err)
	default:
		f.row.OutputBytes = len(f.output)
		if fitsRow(f.output) {
			f.row.Output = f.output
		}
	}
	f.row.Due, f.row.Waits = 0, nil
	f.row.Declared = f.x.declared()
	f.row.Build, f.row.Steps, f.row.Bytes = f.x.engine.opts.Build, f.x.made, f.x.bytes
	if err := f.reportToParent(ops, r); err != nil {
		return err
	}
	if err := f.children.ask(f.x.engine, ops, f.open, childOfEnded); err != nil {
		return err
	}
	f.places = places{limits: f.x.flow.openLimits(), now: f.now, self: f.x.run, rows: maps.Clone(f.children.rows)} // a child may be next
	if err := f.places.leave(ops, r, f.x.run, f.row); err != nil {
		return err
	}
	return ops.Ack(f.x.lease)
}

// reportToParent finds the entry that waits for this run, and wakes the parent.
func (f *finish) reportToParent(ops driver.Ops, r rows) (err error) {
	f.parent = nil
	e, parent, err := r.waitsFor(f.x.run, f.row)
	if e == nil || err != nil {
		return err
	}
	if parent.hears(e) {
		e.hear(f.x.run, f.row, f.output, f.now)
		f.parent = e
	}
	return wakeParent(ops, f.row.Parent, parent)
}

// Apply writes the end.
func (f *finish) Apply(tx driver.Writer) error {
	if f.back.from != nil {
		return f.rewound(tx)
	}
	r := rowsTo(tx)
	if err := f.journal.apply(r); err != nil {
		return err
	}
	if f.row.Status == Done && f.row.Output == nil {
		if err := r.put(tableBlobs, seqKey(f.x.run, outputSeq), f.output); err != nil {
			return err
		}
	}
	if until := f.row.keptUntil(); !until.IsZero() {
		if err := r.put(tableEnded, endedKey(until, f.x.run), nil); err != nil {
			return err
		}
	}
	if f.parent != nil {
		var own journal
		own.add(f.row.Parent, f.parent)
		if err := own.apply(r); err != nil {
			return err
		}
	}
	if err := f.children.held.apply(r); err != nil {
		return err
	}
	if err := f.places.apply(r); err != nil {
		return err
	}
	if err := r.delete(tableBlocked, f.x.run[:]); err != nil {
		return err
	}
	return r.putRun(f.x.run, f.row)
}
