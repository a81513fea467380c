package workflow

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// RestoreRows stores parts of runs, all in one commit, and returns when they are durable. The
// parts come from [Reader.Rows], of this file or another one, and have passed a [RowsCheck].
// The parts of a run come in order, in one call or in several. The last part creates the run:
// the run is invisible until then. If the rest never comes, the stored parts are removed some
// days later. Storing a first part again starts over.
//
// The queue's Restore restores the job of a run after its rows, so a run never has a job
// without its rows. If a parent waits for a run that has ended, the parent is notified when the
// later of the two is restored.
//
// Errors: [ErrConflict] if the run is in the file, another run of the flow has its ID, or
// earlier rows are missing; [pawl.ErrInvalid] for what no engine would have written; and those
// of a [Store].
func (e *Engine) RestoreRows(ctx context.Context, parts ...*Rows) error {
	s := &restoreRows{parts: parts}
	size := 0
	for _, p := range parts {
		if err := p.mayStand(); err != nil {
			return fmt.Errorf("restore run %s: %w", p.Run, err)
		}
		for _, row := range p.Rows {
			size += len(row.Key) + len(row.Value) + 32
		}
	}
	for _, p := range parts {
		if p.Part == 1 {
			if err := e.clear(ctx, p.Run); err != nil {
				return fmt.Errorf("restore run %s: %w", p.Run, err)
			}
		}
	}
	if err := s.findCalls(ctx, e.source); err != nil {
		return err
	}
	if err := e.queue.Mutate(ctx, s, size); err != nil {
		return err
	}
	e.hub.sweepBy(atOnce)
	for _, reported := range s.reported {
		e.hub.childEnded(reported.parent, reported.seq)
	}
	return nil
}

// mayStand checks a part by itself.
func (p *Rows) mayStand() error {
	c := RowsCheck{run: p.Run, part: p.Part - 1, blobs: make(map[uint32]int), calls: make(map[place]bool), most: make(map[uint64]int), begun: make(map[uint64]bool)}
	switch {
	case p.Run.IsZero() || p.Part < 1 || p.Form < 1:
		return noRows("part", "it has no ID, no number, or no form")
	case p.Form > RowsForm:
		return fmt.Errorf("%w: form %d", pawl.ErrNewerFormat, p.Form)
	}
	for i, row := range p.Rows {
		if row.In == tableRuns.String() != (p.Last() && i == len(p.Rows)-1) {
			return noRows("part", "the row of the run is the last of its last part, and there alone")
		}
		if row.In == tableSteps.String() { // its value may be in another part
			var stored entry
			if err := driver.DecodePayload(row.Value, &stored); err != nil {
				return noRows("value", "an entry: %v", err)
			}
			if len(row.Key) != 4 {
				return noRows("key", "that of an entry has %d bytes", len(row.Key))
			}
			continue
		}
		if err := c.row(row); err != nil {
			return err
		}
	}
	if c.head == nil {
		if p.Last() {
			return noRows("part", "the last has no row of the run")
		}
		return nil
	}
	return c.head.sound()
}

// restoreRows is the mutation that stores parts of runs.
type restoreRows struct {
	parts []*Rows

	now      time.Time
	heads    map[pawl.ID]*runRow // rows of the runs that this call completes
	woken    map[pawl.ID]bool    // parents to wake
	reported []reportedParent

	staged map[pawl.ID]int      // rows of incomplete runs
	calls  map[pawl.ID][]uint32 // entries of other runs that wait for children
}

// reportedParent is a parent to notify of its child, and the entry that waits.
type reportedParent struct {
	parent pawl.ID
	seq    uint32
}

// Check requires that runs and IDs are free, and that all earlier parts are there.
func (s *restoreRows) Check(ops driver.Ops) error {
	r := rowsOf(ops)
	s.now, s.heads, s.woken, s.reported = ops.Now(), make(map[pawl.ID]*runRow), make(map[pawl.ID]bool), nil
	s.staged = make(map[pawl.ID]int)
	there := make(map[pawl.ID]int) // rows of the parts so far
	names := make(map[string]bool)
	for _, part := range s.parts {
		if known, err := r.get(tableRuns, part.Run[:]); known != nil || err != nil || s.heads[part.Run] != nil {
			return fmt.Errorf("restore run %s: it is in the file already: %w", part.Run, ErrConflict)
		}
		if there[part.Run] == 0 && part.Part > 1 { // the earlier parts are in the file
			n, err := r.staged(s.now, part.Run)
			if err != nil {
				return err
			}
			if there[part.Run] = n; n == 0 {
				return fmt.Errorf("restore run %s: nothing is there of the parts before part %d: %w", part.Run, part.Part, ErrConflict)
			}
		}
		if there[part.Run] += len(part.Rows); !part.Last() {
			s.staged[part.Run] = there[part.Run]
			continue
		}
		delete(s.staged, part.Run)
		if there[part.Run] != part.All {
			return fmt.Errorf("restore run %s: %d of %d rows are there, so another has begun it anew: %w", part.Run, there[part.Run], part.All, ErrConflict)
		}
		head, err := decodeRow(part.Rows[len(part.Rows)-1].Value)
		if err != nil {
			return err
		}
		name := string(idKey(head.Flow, head.ID))
		if known, err := r.find(head.Flow, head.ID); !known.IsZero() || err != nil || names[name] {
			return fmt.Errorf("restore workflow %s %q: run %s has that ID: %w", head.Flow, head.ID, known, ErrConflict)
		}
		names[name], s.heads[part.Run] = true, head
		if err := s.wake(ops, r, part.Run, head); err != nil {
			return err
		}
	}
	return nil
}

// wake makes the job of a parent ready if the parent is in the file and waits for an ended run.
func (s *restoreRows) wake(ops driver.Ops, r rows, run pawl.ID, head *runRow) error {
	if head.open() || s.woken[head.Parent] {
		return nil
	}
	e, parent, err := r.waitsFor(run, head)
	if e == nil || err != nil {
		return err
	}
	s.woken[head.Parent] = true
	return wakeParent(ops, head.Parent, parent)
}

// Apply writes the rows and what follows from the row of a run.
func (s *restoreRows) Apply(tx driver.Writer) error {
	r := rowsTo(tx)
	for _, part := range s.parts {
		for _, row := range part.Rows {
			if err := r.put(transferred[tableNumber(row.In)], append(bytes.Clone(part.Run[:]), row.Key...), row.Value); err != nil {
				return err
			}
		}
	}
	for run, n := range s.staged {
		if err := r.stage(s.now, run, n); err != nil {
			return err
		}
	}
	for run, head := range s.heads {
		if err := r.unstage(s.now, run); err != nil {
			return err
		}
		if err := r.restorePlaces(run, head); err != nil {
			return err
		}
		if err := r.putFound(run, head); err != nil {
			return err
		}
		if err := r.put(tableIDs, idKey(head.Flow, head.ID), run[:]); err != nil {
			return err
		}
		if until := head.keptUntil(); !head.open() && !until.IsZero() {
			if err := r.put(tableEnded, endedKey(until, run), nil); err != nil {
				return err
			}
		}
	}
	for run, head := range s.heads {
		if err := s.reportEnds(r, run, head); err != nil {
			return err
		}
	}
	return nil
}

// reportEnds notifies parents of children that have ended: the parent of this run, and this run of
// its own children.
func (s *restoreRows) reportEnds(r rows, run pawl.ID, head *runRow) error {
	if !head.open() {
		return s.reportToParent(r, run, head)
	}
	for _, seq := range s.calls[run] {
		e, err := r.entry(run, seq)
		if err != nil {
			return err
		}
		if e == nil || e.Child.IsZero() || e.State != EntryPending {
			continue
		}
		child, err := r.run(e.Child)
		if err == nil && child != nil && !child.open() {
			err = s.reportToParent(r, e.Child, child)
		}
		if err != nil && !errors.Is(err, pawl.ErrCorrupt) { // an unreadable child has no result to report
			return err
		}
	}
	return nil
}

// reportToParent writes the end of a run to the journal of its parent, as the run itself would.
func (s *restoreRows) reportToParent(r rows, run pawl.ID, row *runRow) error {
	e, parent, err := r.waitsFor(run, row)
	if e == nil || !parent.hears(e) || err != nil {
		return err
	}
	var output []byte
	if row.Status == Done {
		if output, err = r.output(run, row); err != nil {
			return err
		}
	}
	e.hear(run, row, output, s.now)
	s.reported = append(s.reported, reportedParent{row.Parent, e.seq})
	var own journal
	own.add(row.Parent, e)
	return own.apply(r)
}
