package workflow

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
)

// RestoreRows stores parts of runs, all of them in one commit, and returns when they are
// durable. It is for what [Reader.Rows] has read from this file or another one, and a
// [RowsCheck] has passed. The parts of a run come in their order, in one call or in several.
// The last makes it a run: until then nobody sees it, and what was stored of it is removed
// some days later when the rest does not come. A first part begins anew.
//
// The job of a run is restored behind its rows, by [bolt.Queue.Restore]: so a run never has a
// job without its rows. Where a parent waits for a run that has ended meanwhile, whichever of
// them comes last, the parent is told.
//
// Errors: [ErrConflict] when the run is in the file, or its ID is that of another run of the
// flow, or rows are missing that came before; [pawl.ErrInvalid] for what no engine would have
// written; and those of [bolt.Queue.Join].
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
	if err := e.queue.Join(ctx, s, size); err != nil {
		return err
	}
	for _, told := range s.told {
		e.hub.childEnded(told.parent, told.seq)
	}
	return nil
}

// mayStand is what is looked at of a part by itself.
func (p *Rows) mayStand() error {
	c := RowsCheck{run: p.Run, part: p.Part - 1, blobs: make(map[uint32]int), calls: make(map[place]bool), most: make(map[uint64]int)}
	switch {
	case p.Run.IsZero() || p.Part < 1 || p.Form < 1:
		return noRows("part", "it has no ID, no number, or no form")
	case p.Form > RowsForm:
		return fmt.Errorf("%w: form %d", bolt.ErrNewerFormat, p.Form)
	}
	head := 0
	for _, row := range p.Rows {
		if row.In == string(bucketRuns) {
			head++
		}
		if row.In == string(bucketSteps) { // whose value may be in another part
			var stored entry
			if err := pawl.DecodePayload(row.Value, &stored); err != nil {
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
	if (head == 1) != p.Last() {
		return noRows("part", "the row of the run is in its last part, and there alone")
	}
	if c.head != nil {
		return c.head.sound()
	}
	return nil
}

// A part that is not the last is kept in the file by a row in bucket ended without a run, as
// what is about to be removed is. It has a time of whole days, so that who begins anew finds it.
const (
	stageDay  = 24 * time.Hour
	stageKept = 3 // days
	stageOld  = 7 // days for which a row is looked for that should be gone
)

func stageKey(now time.Time, days int, run pawl.ID) []byte {
	return endedKey(now.Truncate(stageDay).Add(time.Duration(days)*stageDay), run)
}

// unstage removes the rows that keep what was stored of a run.
func (r rows) unstage(now time.Time, run pawl.ID) error {
	for day := -stageOld; day <= stageKept; day++ {
		if err := r.delete(bucketEnded, stageKey(now, day, run)); err != nil {
			return err
		}
	}
	return nil
}

// clear removes what an earlier restore has left of a run, in portions.
func (e *Engine) clear(ctx context.Context, run pawl.ID) error {
	for {
		left := false
		err := e.source.View(ctx, func(tx *bbolt.Tx) error {
			r := rowsOf(tx)
			if known, err := r.get(bucketRuns, run[:]); known != nil || err != nil {
				return nil // which the restore says
			}
			all, _ := r.mark(run)
			left = all > 0
			return nil
		})
		if err != nil || !left {
			return err
		}
		if err := e.queue.Join(ctx, &clearRows{run: run}, requestBytes); err != nil {
			return err
		}
	}
}

// clearRows is the rider of clear.
type clearRows struct {
	run   pawl.ID
	now   time.Time
	whole bool // there is such a run by now
}

// Check looks whether it is a run by now.
func (c *clearRows) Check(p *bolt.Plan) error {
	known, err := rowsOf(p.Tx()).get(bucketRuns, c.run[:])
	c.now, c.whole = p.Now(), known != nil || err != nil
	return nil
}

// Apply removes a portion.
func (c *clearRows) Apply(tx *bbolt.Tx) error {
	if c.whole {
		return nil
	}
	r := rowsOf(tx)
	n, err := r.remove(c.run, prunePortion, bucketSteps, bucketBlobs, bucketSignals, bucketSeen, bucketPublished, bucketBlocked)
	if err != nil || n == prunePortion {
		return err
	}
	return r.unstage(c.now, c.run)
}

// restoreRows is the rider that stores parts of runs.
type restoreRows struct {
	parts []*Rows

	now   time.Time
	heads map[pawl.ID]*runRow // of the runs that become whole
	told  []toldParent
}

// toldParent is a parent that hears of its child, and the entry that waits.
type toldParent struct {
	parent pawl.ID
	seq    uint32
}

// Check requires that runs and IDs are free, and that all parts before are there.
func (s *restoreRows) Check(p *bolt.Plan) error {
	r := rowsOf(p.Tx())
	s.now, s.heads, s.told = p.Now(), make(map[pawl.ID]*runRow), nil
	stored := make(map[pawl.ID]int) // rows
	names := make(map[string]bool)
	woken := make(map[pawl.ID]bool)
	for _, part := range s.parts {
		if part.Part > 1 && stored[part.Run] == 0 {
			stored[part.Run], _ = r.mark(part.Run)
		}
		if known, err := r.get(bucketRuns, part.Run[:]); known != nil || err != nil || s.heads[part.Run] != nil {
			return fmt.Errorf("restore run %s: it is in the file already: %w", part.Run, ErrConflict)
		}
		if stored[part.Run] += len(part.Rows); !part.Last() {
			continue
		}
		if stored[part.Run] != part.All {
			return fmt.Errorf("restore run %s: %d of %d rows are there, so another has begun it anew: %w", part.Run, stored[part.Run], part.All, ErrConflict)
		}
		head := new(runRow)
		if err := pawl.DecodePayload(part.Rows[len(part.Rows)-1].Value, head); err != nil {
			return err
		}
		name := string(idKey(head.Flow, head.ID))
		if known, err := r.find(head.Flow, head.ID); !known.IsZero() || err != nil || names[name] {
			return fmt.Errorf("restore workflow %s %q: run %s has that ID: %w", head.Flow, head.ID, known, ErrConflict)
		}
		names[name], s.heads[part.Run] = true, head
		if err := s.wake(p, r, part.Run, head, woken); err != nil {
			return err
		}
	}
	return nil
}

// wake makes the job of a parent ready that is in the file and waits for a run which has ended.
func (s *restoreRows) wake(p *bolt.Plan, r rows, run pawl.ID, head *runRow, woken map[pawl.ID]bool) error {
	if head.open() || woken[head.Parent] {
		return nil
	}
	e, parent, err := r.waiting(head.Parent, head.ParentSeq, run)
	if e == nil || err != nil || parent.Paused || parent.Status == Blocked {
		return nil // what cannot be read cannot go on
	}
	state, err := p.State(head.Parent)
	if err != nil || state != pawl.Delayed {
		return err
	}
	woken[head.Parent] = true
	return p.RunNow(head.Parent)
}

// Apply writes the rows, and what follows from the row of a run.
func (s *restoreRows) Apply(tx *bbolt.Tx) error {
	r, err := makeRows(tx)
	if err != nil {
		return err
	}
	for _, part := range s.parts {
		for _, row := range part.Rows {
			if err := r.put([]byte(row.In), append(bytes.Clone(part.Run[:]), row.Key...), row.Value); err != nil {
				return err
			}
		}
		if part.Part == 1 && !part.Last() {
			if err := r.put(bucketEnded, stageKey(s.now, stageKept, part.Run), nil); err != nil {
				return err
			}
		}
	}
	for run, head := range s.heads {
		if err := r.unstage(s.now, run); err != nil {
			return err
		}
		if err := r.put(bucketIDs, idKey(head.Flow, head.ID), run[:]); err != nil {
			return err
		}
		if until := head.keptUntil(); !head.open() && !until.IsZero() {
			if err := r.put(bucketEnded, endedKey(until, run), nil); err != nil {
				return err
			}
		}
	}
	for run, head := range s.heads {
		if err := s.tell(r, run, head); err != nil {
			return err
		}
	}
	return nil
}

// tell has parents hear of the children that have ended: this run's parent of it, and it of
// its own.
func (s *restoreRows) tell(r rows, run pawl.ID, head *runRow) error {
	if !head.open() {
		e, _, err := r.waiting(head.Parent, head.ParentSeq, run)
		if e == nil || err != nil {
			return nil // what cannot be read cannot go on
		}
		s.told = append(s.told, toldParent{head.Parent, e.seq})
		return r.settleChild(head.Parent, e, run, head, s.now.UnixNano())
	}
	entries, err := r.entries(run)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Child.IsZero() || e.State != EntryPending || head.Cancel != "" {
			continue
		}
		child, err := r.run(e.Child)
		if err != nil || child == nil || child.open() {
			continue
		}
		if err := r.settleChild(run, e, e.Child, child, s.now.UnixNano()); err != nil {
			return err
		}
	}
	return nil
}

// settleChild writes into the entry of a parent how its child has ended, as the child itself
// would have.
func (r rows) settleChild(parent pawl.ID, e *entry, child pawl.ID, row *runRow, now int64) error {
	e.Attempts = 1
	if row.Status == Done {
		output, err := r.blob(child, outputSeq)
		if err != nil {
			return err
		}
		e.finish(output, timeOf(now))
	} else {
		err := &RunError{Flow: row.Flow, ID: row.ID, Run: child, Status: row.Status, Text: row.Error, chain: row.Chain}
		e.fail(err, timeOf(now))
		for _, how := range [...]error{ErrCancelled, ErrTerminated} {
			if err.Is(how) {
				e.Chain = append(e.Chain, chainOf(how)...)
			}
		}
		e.Chain = append(e.Chain, row.Chain[:max(0, min(len(row.Chain), maxChain-len(e.Chain)))]...)
	}
	var own journal
	own.add(parent, e)
	return own.apply(r)
}

// waiting is the entry in which a run waits for a child, nil when it does not.
func (r rows) waiting(parent pawl.ID, seq uint32, child pawl.ID) (*entry, *runRow, error) {
	if parent.IsZero() {
		return nil, nil, nil
	}
	row, err := r.run(parent)
	if err != nil || row == nil || !row.open() || row.Cancel != "" {
		return nil, nil, err
	}
	e, err := r.entry(parent, seq)
	if err != nil || e == nil || e.State != EntryPending || e.Child != child {
		return nil, nil, err
	}
	return e, row, nil
}
