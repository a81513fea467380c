package schedule

import (
	"errors"
	"math"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/workflow"
)

// mutation changes schedules. Check decides how, and may run several times.
type mutation struct {
	names  []string // names of the schedules that it changes
	jobs   []pawl.ID
	starts []*workflow.Starting
	check  func(ops driver.Ops) ([]*change, error)
	stale  []stale

	changes []*change
	removed []stale // the rows of stale that match no schedule
}

// stale names a row of an index that matches no schedule. A damaged schedule leaves such rows. The
// index is that of due schedules, or that of buffered ticks if due is 0.
type stale struct {
	name string
	due  int64
}

// Declare implements [driver.Declared].
func (m *mutation) Declare(n *driver.Needs) {
	for _, name := range m.names {
		n.Own(tableRows, nameKey(name))
	}
	for _, id := range m.jobs {
		n.Job(id)
	}
	for _, start := range m.starts {
		start.Declare(n)
	}
}

// Check implements [driver.Mutation].
func (m *mutation) Check(ops driver.Ops) (err error) {
	m.removed = m.removed[:0]
	for _, s := range m.stale {
		r, err := read(ops, s.name)
		switch {
		case errors.Is(err, pawl.ErrCorrupt), errors.Is(err, pawl.ErrNewerFormat):
		case err != nil:
			return err
		case r == nil, s.due != 0 && r.Due != s.due, s.due == 0 && !r.waits():
			m.removed = append(m.removed, s)
		}
	}
	m.changes, err = m.check(ops)
	return err
}

// Apply implements [driver.Mutation].
func (m *mutation) Apply(w driver.Writer) error {
	for _, s := range m.removed {
		table, key := tableDue, dueKey(s.due, s.name)
		if s.due == 0 {
			table, key = tableBuffered, nameKey(s.name)
		}
		if err := w.Delete(table, key); err != nil {
			return err
		}
	}
	for _, c := range m.changes {
		if err := c.apply(w); err != nil {
			return err
		}
	}
	return nil
}

// change is a change of one schedule by a mutation.
type change struct {
	name     string
	was, row *row  // before and after; nil for none
	damage   error // why the old row cannot be read
	remove   bool  // remove the row although it cannot be read
	entries  []numbered
	decided  []entry // for [Options.OnDecision]
	starts   []*workflow.Starting
}

// numbered is an entry of the history with its number.
type numbered struct {
	n uint64
	entry
}

// add appends an entry to the history. One that continues the last one joins it.
func (c *change) add(e entry) {
	c.decided = append(c.decided, e)
	r := c.row
	r.Counts.add(e.Decision, e.Ticks)
	if t := r.Tail; t != nil && e.joins() && t.Decision == e.Decision && t.Job == e.Job && t.Why == e.Why {
		t.Last, t.At = e.Last, e.At
		t.Ticks += e.Ticks
		e = *t
	} else {
		r.Entries++
	}
	c.entries = append(c.entries, numbered{r.Entries, e})
	r.Tail = nil
	if e.joins() {
		r.Tail = &e
	}
}

// joins reports whether the next entry can join this one.
func (e *entry) joins() bool {
	return e.Decision == Missed || e.Decision == Skipped || e.Decision == Paused
}

// apply writes the change.
func (c *change) apply(w driver.Writer) error {
	key := nameKey(c.name)
	if c.was != nil {
		if c.was.Due != 0 && (c.row == nil || c.row.Due != c.was.Due) {
			if err := w.Delete(tableDue, dueKey(c.was.Due, c.name)); err != nil {
				return err
			}
		}
		if c.was.waits() && (c.row == nil || !c.row.waits()) {
			if err := w.Delete(tableBuffered, key); err != nil {
				return err
			}
		}
	}
	if c.row == nil {
		if _, _, err := w.DeleteSpan(tableHistory, driver.Span{Prefix: key}, math.MaxInt); err != nil {
			return err
		}
		return w.Delete(tableRows, key)
	}
	if c.row.Due != 0 && (c.was == nil || c.was.Due != c.row.Due) {
		if err := w.Put(tableDue, dueKey(c.row.Due, c.name), nil); err != nil {
			return err
		}
	}
	if c.row.waits() && (c.was == nil || !c.was.waits()) {
		if err := w.Put(tableBuffered, key, nil); err != nil {
			return err
		}
	}
	if err := c.history(w); err != nil {
		return err
	}
	for _, start := range c.starts {
		if err := start.Apply(w); err != nil {
			return err
		}
	}
	c.row.Changes = c.changes() + 1
	return put(w, tableRows, key, c.row)
}

// changes returns how often a row was written. A mutation may apply a change twice. A new row does not
// begin at 0, so that it differs from a removed one of the same name.
func (c *change) changes() uint64 {
	if c.was == nil {
		return uint64(c.row.Created)
	}
	return c.was.Changes
}

// history writes the new entries, and removes the oldest ones beyond the limit.
func (c *change) history(w driver.Writer) error {
	before := uint64(0)
	if c.was != nil {
		before = c.was.Entries
	}
	for _, e := range c.entries {
		if e.n+MaxHistory <= c.row.Entries {
			continue
		}
		if err := put(w, tableHistory, entryKey(c.name, e.n), &e.entry); err != nil {
			return err
		}
	}
	for n := before + 1; n <= min(c.row.Entries, before+MaxHistory); n++ {
		if n > MaxHistory {
			if err := w.Delete(tableHistory, entryKey(c.name, n-MaxHistory)); err != nil {
				return err
			}
		}
	}
	return nil
}
