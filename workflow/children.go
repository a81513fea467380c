package workflow

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// cancelChildren is the mutation that asks a portion of the children of a run to end.
type cancelChildren struct {
	checkpoint // the reason why they end may depend on the backlog
	engine     *Engine
	open       []pawl.ID
	reason     string
	children   cancelled
}

// cancelChildren asks children of the run to end, in portions.
func (x *execution) cancelChildren(open []pawl.ID, reason string) error {
	for some := range slices.Chunk(open, portion) {
		x.mu.Lock()
		c := &cancelChildren{checkpoint: checkpoint{x.lease, x.take()}, engine: x.engine, open: some, reason: reason}
		x.mu.Unlock()
		err := x.mutate(x.writing(), c, c.journal.bytes+len(some)*requestBytes)
		if c.children.done(x.engine.hub, err); err != nil {
			return err
		}
	}
	return nil
}

// parentFailed is the reason for cancelling a child whose parent undoes its steps.
const parentFailed = "the run that started it did not succeed"

// awaitChildren cancels the children that the function of the run has called, and waits until they have undone
// their steps, because a child's effects came after those of its parent.
func (s *scope) awaitChildren() error {
	x := s.x
	if x.dry {
		return nil
	}
	var called []pawl.ID
	x.mu.Lock()
	for _, e := range x.calls {
		if e.waitsForChild() && !inUndo(e.Scope) {
			called = append(called, e.Child)
		}
	}
	x.mu.Unlock()
	for {
		ready := x.lookAgain()
		o, err := x.engine.undoing(x.ctx, called)
		if err == nil {
			err = x.cancelChildren(o.asks, parentFailed)
		}
		switch {
		case err != nil:
			return x.stop(err)
		case len(o.runs) == 0:
			return nil
		}
		w := waitCondition{children: o.runs[:min(len(o.runs), portion)], note: o.note()}
		if _, err := s.idle(w, ready); err != nil {
			return err
		}
	}
}

// undoing are children that have to undo their steps before their parent does.
type undoing struct {
	runs  []pawl.ID
	asks  []pawl.ID // the children that are not cancelled yet
	first *runRow
}

// note describes the wait for operators.
func (o *undoing) note() string {
	more := ""
	if n := len(o.runs) - 1; n > 0 {
		more = fmt.Sprintf(", and for %d more", n)
	}
	return fmt.Sprintf("before it undoes its steps, it waits for the end of run %s (%s %q)%s; if that cannot run, resume or terminate it",
		o.runs[0], o.first.Flow, o.first.ID, more)
}

// undoing returns which of the runs have to undo their steps. A run whose row or job is damaged or gone cannot
// undo them.
func (e *Engine) undoing(ctx context.Context, runs []pawl.ID) (o undoing, err error) {
	for _, id := range runs {
		var row *runRow
		err := e.source.ViewRows(ctx, func(tx driver.Reader) (err error) {
			row, err = rowsOf(tx).run(id)
			return err
		})
		if err == nil && row.mayUndo() {
			_, err = e.source.Job(ctx, id)
		}
		switch {
		case errors.Is(err, pawl.ErrCorrupt), errors.Is(err, pawl.ErrNotFound):
			continue
		case err != nil:
			return o, err
		case !row.mayUndo():
			continue
		}
		if o.first == nil {
			o.first = row
		}
		if o.runs = append(o.runs, id); row.Cancel == "" {
			o.asks = append(o.asks, id)
		}
	}
	return o, nil
}

// mayUndo reports whether the run may still undo steps. A terminated run does not.
func (row *runRow) mayUndo() bool { return row != nil && row.open() && row.Terminate == "" }

// nobodyUndoes reports whether all of the runs have ended, or have been terminated.
func (r rows) nobodyUndoes(runs []pawl.ID) (bool, error) {
	for _, id := range runs {
		row, err := r.run(id)
		if errors.Is(err, pawl.ErrCorrupt) {
			continue
		}
		if err != nil || row.mayUndo() {
			return false, err
		}
	}
	return true, nil
}

// lastChildren returns the children to cancel in the mutation that ends or restarts a run. If there are
// many, lastChildren cancels all of them itself. After a crash in between, the run ends in the same way.
func (x *execution) lastChildren(reason string) ([]pawl.ID, error) {
	x.mu.Lock()
	open := x.openChildren()
	x.mu.Unlock()
	if len(open) <= portion {
		return open, nil
	}
	return nil, x.cancelChildren(open, reason)
}

// Check requires the lease, and makes the children ready.
func (c *cancelChildren) Check(ops driver.Ops) error {
	if err := c.children.ask(c.engine, ops, c.open, c.reason); err != nil {
		return err
	}
	return c.checkpoint.Check(ops)
}

// Apply writes the backlog and the requests.
func (c *cancelChildren) Apply(tx driver.Writer) error {
	if err := c.checkpoint.Apply(tx); err != nil {
		return err
	}
	return c.children.apply(rowsTo(tx))
}

// cancelled are runs that a mutation asks to end.
type cancelled struct {
	rows map[pawl.ID]*runRow
	held heldEnds
}

// apply writes the requests.
func (c *cancelled) apply(r rows) error {
	if err := c.held.apply(r); err != nil {
		return err
	}
	return r.putAll(c.rows)
}

// done notifies the runs once the mutation is durable. Call it also if the mutation was refused.
func (c *cancelled) done(h *hub, refused error) {
	if refused == nil {
		for run := range c.rows {
			h.notify(run)
		}
	}
	c.held.done()
}

// ask asks runs to end, in Check, as [Engine.Cancel] does.
func (c *cancelled) ask(e *Engine, ops driver.Ops, runs []pawl.ID, reason string) error {
	c.rows = make(map[pawl.ID]*runRow)
	c.held.again()
	r := rowsOf(ops)
	for _, id := range runs {
		row, err := r.run(id)
		if errors.Is(err, pawl.ErrCorrupt) { // the damage must not keep its parent from ending
			e.opts.Logger.Warn("a child is not cancelled", "run", id, "error", err)
			continue
		}
		if err != nil {
			return err
		}
		if row == nil || !row.open() || row.Cancel != "" {
			continue
		}
		row.Cancel, row.Paused = reason, false
		c.rows[id] = row
		switch _, err := e.nudge(ops, id, row, runNow|revive); {
		case errors.Is(err, pawl.ErrCorrupt): // its row has the request, which takes effect if the job is ever repaired
			e.opts.Logger.Warn("the job of a child that is cancelled cannot be made ready", "run", id, "error", err)
		case err != nil:
			return err
		default:
			c.held.add(e.hub, ops, id)
		}
	}
	return nil
}

func (r rows) putAll(runs map[pawl.ID]*runRow) error {
	for id, row := range runs {
		if err := r.putRun(id, row); err != nil {
			return err
		}
	}
	return nil
}
