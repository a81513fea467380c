package workflow

import (
	"errors"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// noBuild replaces the build in the row of a blocked run if the code is not the cause. Any build tries
// such a run again.
const noBuild = "\x00"

// block is the mutation that makes a run wait for another build.
type block struct {
	x       *execution
	why     error
	journal journal
	row     *runRow

	made  int   // entries in the journal; 0 if it was not read
	bytes int64 // size of their results and errors
}

// block makes the run wait for another build, or for an operator who resumes it.
func (x *execution) block(why error) error {
	x.mu.Lock()
	b := &block{x: x, why: why, journal: x.take(), made: x.made, bytes: x.bytes}
	x.mu.Unlock()
	if err := x.mutate(x.writing(), b, b.journal.bytes); err != nil {
		return err
	}
	x.engine.opts.Logger.Error("a run is blocked until another build opens the file, or it is resumed",
		"flow", x.row.Flow, "id", x.row.ID, "run", x.run, "error", why)
	return nil
}

// Check ends the lease.
func (b *block) Check(ops driver.Ops) (err error) {
	if b.row, err = rowsOf(ops).mustRun(b.x.run); err != nil {
		return err
	}
	b.row.Status, b.row.Error, b.row.Build = Blocked, textOf(b.why), b.x.engine.opts.Build
	b.row.Due, b.row.Waits, b.row.Declared = 0, nil, b.x.declared()
	if b.made > 0 {
		b.row.Steps, b.row.Bytes = b.made, b.bytes
	}
	if b.row.Terminate != "" {
		return ops.Snooze(b.x.lease, ops.Now()) // so that it can end
	}
	return ops.Snooze(b.x.lease, b.row.wakeBy(ops.Now().Add(forever)))
}

// Apply writes the block to the rows.
func (b *block) Apply(tx driver.Writer) error {
	r := rowsTo(tx)
	if err := b.journal.apply(r); err != nil {
		return err
	}
	build := b.row.Build
	if errors.Is(b.why, ErrCodec) {
		build = noBuild
	}
	if err := r.put(tableBlocked, b.x.run[:], []byte(build)); err != nil {
		return err
	}
	return r.putRun(b.x.run, b.row)
}

// awaitResume makes a paused run wait.
func (x *execution) awaitResume() error {
	s := &suspend{x: x, waits: []*waitCondition{{paused: true}}, made: x.made, bytes: x.bytes}
	err := x.engine.queue.Mutate(x.writing(), s, 0)
	if errors.Is(err, errWoken) {
		return pawl.Snooze(0) // it was resumed or cancelled in the meantime
	}
	return err
}
