package workflow

import (
	"errors"
	"slices"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// cancelChildren is the mutation that asks a portion of the children of a run to end.
type cancelChildren struct {
	engine   *Engine
	lease    *pawl.Lease
	open     []pawl.ID
	reason   string
	children map[pawl.ID]*runRow
}

// cancelChildren asks the children that a run waits for to end, in portions.
func (x *execution) cancelChildren(reason string) error {
	x.mu.Lock()
	open := x.openChildren()
	x.mu.Unlock()
	for some := range slices.Chunk(open, portion) {
		c := &cancelChildren{engine: x.engine, lease: x.lease, open: some, reason: reason}
		if err := x.engine.queue.Mutate(x.writing(), c, len(some)*requestBytes); err != nil {
			return err
		}
		for child := range c.children {
			x.engine.hub.notify(child)
		}
	}
	return nil
}

// lastChildren returns the children that the mutation which ends or restarts a run must cancel.
// If there are many, it cancels all of them first. After a crash in between the run ends in the
// same way.
func (x *execution) lastChildren(reason string) ([]pawl.ID, error) {
	x.mu.Lock()
	open := x.openChildren()
	x.mu.Unlock()
	if len(open) <= portion {
		return open, nil
	}
	return nil, x.cancelChildren(reason)
}

// Check requires the lease, and makes the children ready.
func (c *cancelChildren) Check(ops driver.Ops) (err error) {
	if c.children, err = c.engine.cancelAll(ops, rowsOf(ops), c.open, c.reason); err != nil {
		return err
	}
	return ops.Hold(c.lease)
}

// Apply writes the requests.
func (c *cancelChildren) Apply(tx driver.Writer) error { return rowsTo(tx).putAll(c.children) }

// cancelAll asks runs to end, as [Engine.Cancel] does. It returns the rows to write.
func (e *Engine) cancelAll(ops driver.Ops, r rows, runs []pawl.ID, reason string) (map[pawl.ID]*runRow, error) {
	asked := make(map[pawl.ID]*runRow)
	for _, id := range runs {
		row, err := r.run(id)
		if errors.Is(err, pawl.ErrCorrupt) { // the damage must not keep its parent from ending
			e.opts.Logger.Warn("a child is not cancelled", "run", id, "error", err)
			continue
		}
		if err != nil {
			return nil, err
		}
		if row == nil || !row.open() || row.Cancel != "" {
			continue
		}
		row.Cancel, row.Paused = reason, false
		asked[id] = row
		switch _, err := e.nudge(ops, id, row, runNow|revive); {
		case errors.Is(err, pawl.ErrCorrupt): // it follows its row if its job is ever repaired
			e.opts.Logger.Warn("the job of a child that is cancelled cannot be made ready", "run", id, "error", err)
		case err != nil:
			return nil, err
		}
	}
	return asked, nil
}

func (r rows) putAll(runs map[pawl.ID]*runRow) error {
	for id, row := range runs {
		if err := r.putRun(id, row); err != nil {
			return err
		}
	}
	return nil
}
