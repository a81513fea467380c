package workflow

import (
	"errors"
	"fmt"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Call starts a run of another flow and waits until it ends. The child has its own journal, retries
// and end. Its ID is that of the parent, a slash, and the step. If another run has that ID, the
// child's ID begins with [Run.Run] of the parent in place of the parent's ID. If the parent is
// cancelled or ends first, the child is cancelled. Use branches to call several children
// concurrently.
func Call[In, Out any](r *Run, name string, f *Flow[In, Out], in In) (Out, error) {
	var out Out
	err := r.s.call(name, r.decodeInto(&out), func(id string) (*start, error) {
		return f.prepare(r.x.engine, id, in, nil, r.x.engine.headers(r.x.ctx)...)
	})
	if err != nil {
		var zero Out
		return zero, err
	}
	return out, nil
}

func (s *scope) call(name string, decode func([]byte) error, prepare func(id string) (*start, error)) error {
	c, err := s.begin(KindChild, name, nil)
	if err != nil {
		return err
	}
	defer c.end()
	x := s.x
	if !c.known && c.e.Child == (pawl.ID{}) {
		step := stepName(c.name, c.e.Name, c.e.Occurrence)
		if n := x.row.Restarts; n > 0 {
			step = fmt.Sprintf("%s@%d", step, n)
		}
		child, err := prepare(x.row.ID + "/" + step)
		if errors.Is(err, ErrCodec) {
			return x.stop(err)
		}
		if err != nil {
			failed := *c.e
			x.fail(&failed, err)
			c.become(&failed)
			if err := x.save(c.e); err != nil {
				return err
			}
			return c.e.err()
		}
		if err := c.startChild(child, x.run.String()+"/"+step); err != nil {
			return err
		}
	}
	for !c.known {
		ready := x.lookAgain()
		if err := c.look(); err != nil {
			return err
		}
		if c.known { // the other run counts as the child, since it is found again after a crash
			break
		}
		if err := c.refused(); err != nil {
			return err
		}
		if _, err := c.idle(waitCondition{child: c.e}, ready); err != nil {
			return err
		}
	}
	return c.outcome(decode)
}

// startChild writes the entry and starts the child in one commit.
func (c *call) startChild(s *start, other string) error {
	x := c.x
	s.row.Parent, s.row.ParentSeq = x.run, c.e.seq
	x.mu.Lock()
	r := &startChild{start: s, ids: [...]string{s.row.ID, other}, checkpoint: checkpoint{x.lease, x.take()}, c: c}
	x.mu.Unlock()
	err := x.mutate(x.writing(), r, r.journal.bytes+len(s.stored))
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case err == ErrAbandoned:
		return err
	case err != nil:
		return x.stopLocked(err)
	}
	*c.e = r.begun
	x.calls = append(x.calls, c.e)
	x.bytes += c.e.weight()
	c.known = c.e.State != EntryPending
	return nil
}

// startChild is the mutation of a parent that starts a child.
type startChild struct {
	*start
	checkpoint
	c   *call
	ids [2]string // the child gets the first free one

	begun entry
}

// Check requires the lease and finds a free ID. A branch that has lost a race starts nothing:
// the mutation that decided the race has already looked for its child.
func (s *startChild) Check(ops driver.Ops) error {
	if s.c.lostRace() {
		return ErrAbandoned
	}
	s.begun = *s.c.e
	for _, s.row.ID = range s.ids {
		err := s.start.Check(ops)
		if err != nil && !errors.Is(err, ErrConflict) {
			return err
		}
		if err == nil && s.start.new {
			s.begun.Child = s.start.run
			return s.checkpoint.Check(ops)
		}
	}
	s.start.new = false
	s.begun.fail(fmt.Errorf("workflow %s %q: %w", s.row.Flow, s.row.ID, ErrConflict), ops.Now())
	return s.checkpoint.Check(ops)
}

// Apply writes the rows of the child and the entry.
func (s *startChild) Apply(tx driver.Writer) error {
	if err := s.start.Apply(tx); err != nil {
		return err
	}
	var own journal
	own.add(s.c.x.run, &s.begun)
	if err := own.apply(rowsTo(tx)); err != nil {
		return err
	}
	return s.checkpoint.Apply(tx)
}

// look reads whether the child has ended. The end of the child is written to the entry.
func (c *call) look() error {
	x := c.x
	var now *entry
	err := x.engine.source.ViewRows(x.ctx, func(tx driver.Reader) (err error) {
		now, err = rowsOf(tx).entry(x.run, c.e.seq)
		return err
	})
	if err == nil && now == nil {
		err = fmt.Errorf("%w: entry %d of run %s is missing", pawl.ErrCorrupt, c.e.seq, x.run)
	}
	if err != nil {
		return x.stop(err)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if now.State != EntryPending && !c.abandoned { // see raceResult
		x.bytes += now.weight()
		*c.e = *now
		c.known = true
	}
	return nil
}

// waitsFor returns the parent of a run and the entry in which the parent waits for the run, or
// nil if it does not wait. An unreadable parent cannot continue, whether notified or not.
func (r rows) waitsFor(run pawl.ID, row *runRow) (e *entry, parent *runRow, err error) {
	if row.Parent.IsZero() {
		return nil, nil, nil
	}
	if parent, err = r.run(row.Parent); err == nil && parent != nil && parent.open() && parent.Journal == journalOf(row.ParentSeq) {
		e, err = r.entry(row.Parent, row.ParentSeq)
	}
	if errors.Is(err, pawl.ErrCorrupt) {
		err = nil
	}
	if e == nil || err != nil || !e.waitsForChild() || e.Child != run {
		return nil, nil, err
	}
	return e, parent, nil
}

// hears reports whether the call of an entry receives the result of its child. A cancelled parent
// may have received the cancellation instead. It then waits only for the end of the child; see
// awaitChildren.
func (row *runRow) hears(e *entry) bool { return row.Cancel == "" || inUndo(e.Scope) }

// waitsForChild reports whether the call has started a child and not received its result.
func (e *entry) waitsForChild() bool { return !e.Child.IsZero() && e.State == EntryPending }

// hear ends the entry of a call with the result of the child.
func (e *entry) hear(child pawl.ID, row *runRow, output []byte, now time.Time) {
	e.Attempts = 1
	if row.Status == Done {
		e.finish(output, now)
		return
	}
	err := &RunError{Flow: row.Flow, ID: row.ID, Run: child, Status: row.Status, Text: row.Error, chain: row.Chain}
	e.fail(err, now)
	for _, how := range [...]error{ErrCancelled, ErrTerminated} { // by their error values
		if err.Is(how) {
			e.Chain = append(e.Chain, chainOf(how)...)
		}
	}
	e.Chain = append(e.Chain, row.Chain[:max(0, min(len(row.Chain), maxChain-len(e.Chain)))]...)
}

// wakeParent makes the parent of an ended child run again. A missing or damaged job of the
// parent does not keep the child from ending.
func wakeParent(ops driver.Ops, id pawl.ID, parent *runRow) error {
	state, err := ops.State(id)
	if errors.Is(err, pawl.ErrCorrupt) {
		return nil
	}
	if err == nil && state == pawl.Delayed && !parent.Paused && parent.Status != Blocked {
		err = ops.RunNow(id)
	}
	return err
}

// childEnded wakes the scope that waits for an entry.
func (h *hub) childEnded(parent pawl.ID, seq uint32) {
	h.mu.Lock()
	x := h.running[parent]
	h.mu.Unlock()
	if x != nil {
		x.wakeWaiting(func(s *scope) bool { return s.waits.child != nil && s.waits.child.seq == seq })
	}
}
