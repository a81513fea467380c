package schedule

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// MaxNote is the maximum length of a note in bytes.
const MaxNote = 1024

// Pause stops a schedule until [Manager.Resume]. The note says why, for other operators. A restart of the program does
// not resume it. Ticks in the buffer keep waiting. It returns [ErrNotFound] if there is no such schedule.
func (m *Manager) Pause(ctx context.Context, name, note string) error {
	if len(note) > MaxNote {
		return wrong("note", "it has %d bytes, and may have %d", len(note), MaxNote)
	}
	return m.one(ctx, name, func(ops driver.Ops, c *change) error {
		if c.row.Paused == nil {
			c.row.Paused = &pause{Since: ops.Now().UnixNano()}
		}
		c.row.Paused.Note = note
		c.row.plan(name)
		return nil
	})
}

// AfterPause says what happens to the ticks during a pause.
type AfterPause string

const (
	SkipPaused    AfterPause = "skip"     // none of them fires
	CatchUpPaused AfterPause = "catch up" // they are late, and fire as [Terms.CatchUp] says
)

// Resume ends a pause. It does nothing to a schedule that is not paused. It returns [ErrNotFound] if
// there is no such schedule.
func (m *Manager) Resume(ctx context.Context, name string, after AfterPause) error {
	if after != SkipPaused && after != CatchUpPaused {
		return wrong("resume", "%q is not %q or %q", after, SkipPaused, CatchUpPaused)
	}
	return m.retry(ctx, name, func(ops driver.Ops, c *change, p passed) error {
		switch err := c.exists(); {
		case err != nil:
			return err
		case c.row.Paused == nil:
			return nil
		case after == SkipPaused && !c.pass(ops.Now(), p):
			return errAgain
		}
		c.row.Paused = nil
		c.row.plan(name)
		return nil
	})
}

// errAgain ends a change that has to wait for ticks that are decided, or counted, before it.
var errAgain = errors.New("decide the ticks up to now first")

// retry makes a change. As long as the change returns errAgain, retry decides or counts ticks and tries again.
func (m *Manager) retry(ctx context.Context, name string, fn func(ops driver.Ops, c *change, p passed) error) error {
	for p := (passed{}); ; {
		err := m.change(ctx, []string{name}, func(ops driver.Ops, c *change) error { return fn(ops, c, p) })
		if !errors.Is(err, errAgain) {
			return err
		}
		if p, err = m.settle(ctx, name); err != nil {
			return err
		}
	}
}

// redefine changes the terms of a schedule. The old terms decide the ticks up to now.
func (m *Manager) redefine(ctx context.Context, name string, fn func(ops driver.Ops, c *change) error) error {
	return m.retry(ctx, name, func(ops driver.Ops, c *change, p passed) error {
		if err := fn(ops, c); err != nil {
			return err
		}
		if c.was != nil && c.settled(ops.Now(), p) {
			return errAgain
		}
		return nil
	})
}

// Put stores a schedule that belongs to operators. No Sync touches it. Put replaces a schedule of
// the same name, as [Scheduler.Sync] does. It returns [pawl.ErrConflict] if a program has a
// schedule of this name.
func (m *Manager) Put(ctx context.Context, d Definition) error {
	if d.err != nil {
		return d.err
	}
	return m.redefine(ctx, d.name, func(ops driver.Ops, c *change) error {
		if c.damage != nil {
			return c.exists()
		}
		if c.row == nil {
			*c = *create(d.name, "", &d, ops.Now())
			return nil
		}
		if c.row.Group != "" {
			return fmt.Errorf("%w: %s has a schedule of this name", pawl.ErrConflict, owner(c.row.Group))
		}
		c.row.Terms, c.row.Action = d.terms, d.action
		return nil
	})
}

// Set changes the terms of a schedule. If a program defines it, the terms override those of the
// program until [Manager.Reset], even when the program starts again. It returns [ErrNotFound] if there
// is no such schedule.
func (m *Manager) Set(ctx context.Context, name string, t Terms) error {
	return m.redefine(ctx, name, func(_ driver.Ops, c *change) error {
		if err := c.exists(); err != nil {
			return err
		}
		if err := t.check(name, c.row.Action.Run != nil); err != nil {
			return err
		}
		t.Spec = t.normal(name)
		if c.row.Group == "" {
			c.row.Terms = t
		} else {
			c.row.Override = &t
		}
		return nil
	})
}

// Reset gives a schedule the terms of its program again. It returns [ErrNotFound] if there is no such
// schedule.
func (m *Manager) Reset(ctx context.Context, name string) error {
	return m.redefine(ctx, name, func(_ driver.Ops, c *change) error {
		if err := c.exists(); err != nil {
			return err
		}
		c.row.Override = nil
		return nil
	})
}

// Remove removes a schedule with its history, if no program defines it. Otherwise it returns an error that matches
// [pawl.ErrInvalid]. Remove also removes a schedule whose row is damaged. If a program defines that schedule, the next
// Sync of the program stores it again. It returns [ErrNotFound] if there is no such schedule.
func (m *Manager) Remove(ctx context.Context, name string) error {
	return m.change(ctx, []string{name}, func(_ driver.Ops, c *change) error {
		if c.damage != nil {
			c.remove = true
			return nil
		}
		if c.row == nil {
			return ErrNotFound
		}
		if c.row.Group != "" && c.row.Retired == 0 {
			return wrong("schedule", "group %q defines it; remove it from the code, or pause it", c.row.Group)
		}
		c.row = nil
		return nil
	})
}

// Trigger fires a schedule now, even if it is paused or an earlier job is alive. The next tick
// keeps its time. Trigger returns the ID of the job or of the run, or [ErrNotFound] if there is no
// such schedule.
func (m *Manager) Trigger(ctx context.Context, name string) (pawl.ID, error) {
	now := m.store.Now()
	c, err := m.manual(ctx, name, []int64{now.UnixNano()}, fmt.Sprintf("%s/%s%s", name, manualPart, pawl.NewID(now)))
	if err != nil {
		return pawl.ID{}, err
	}
	return c.decided[0].Job, nil
}

// Backfill fires the ticks of a schedule at or after from and before to, whether they have fired or
// not. It does not start a run of a workflow again for a tick that has one. It refuses a period
// with more than max ticks, or with a tick that is not decided yet. The latest decided tick is [Info].Last.
//
// Backfill returns how many ticks it has fired. After an error, the caller can continue with the next tick.
func (m *Manager) Backfill(ctx context.Context, name string, from, to time.Time, max int) (n int, err error) {
	info, err := m.Get(ctx, name)
	if err != nil {
		return 0, err
	}
	if max < 1 || max > MaxCatchUp {
		return 0, wrong("max", "%d is not between 1 and %d", max, MaxCatchUp)
	}
	if !to.After(from) || from.Before(time.Unix(0, 0)) {
		return 0, wrong("backfill", "the period from %s to %s is empty, or begins before 1970", stamp(from), stamp(to))
	}
	cal, err := info.Terms.calendar(name)
	if err != nil {
		return 0, err
	}
	var ticks []int64
	for t := cal.next(from.UnixNano() - 1); t != 0 && t < to.UnixNano(); t = cal.next(t) {
		if t > info.Last.UnixNano() {
			return 0, wrong("backfill", "the tick of %s is not decided yet; end the period at that time", stamp(timeOf(t)))
		}
		if ticks = append(ticks, t); len(ticks) > max {
			return 0, wrong("backfill", "the schedule has more than %d ticks in this period", max)
		}
	}
	for n < len(ticks) {
		part := ticks[n:min(n+portion, len(ticks))]
		if _, err := m.manual(ctx, name, part, ""); err != nil {
			return n, err
		}
		n += len(part)
	}
	return n, nil
}

// manual fires ticks that an operator asks for.
func (m *Manager) manual(ctx context.Context, name string, ticks []int64, run string) (*change, error) {
	for {
		var r *row
		err := m.source.ViewRows(ctx, func(tx driver.Reader) (err error) {
			r, err = mustRead(tx, name)
			return err
		})
		if err != nil {
			return nil, err
		}
		c := &candidate{name: name, row: r, manual: ticks, fires: make(map[int64]*fire)}
		if r.Action.Job != nil {
			if c.job, err = r.Action.template(); err != nil {
				return nil, err
			}
		}
		for _, tick := range ticks {
			m.prepare(c, tick, run)
		}
		changes, err := m.decide(ctx, []*candidate{c}, r.Alive, nil)
		if err != nil {
			return nil, err
		}
		if len(changes) > 0 {
			return changes[0], nil
		}
	}
}
