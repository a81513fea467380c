package schedule

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/workflow"
)

// Sync makes the schedules of the program's group those that are given, in one transaction:
//
//   - A new schedule begins now. Its first tick is the first one from now on.
//   - An unchanged schedule stays, so a restart moves no tick.
//   - If only the job or a policy changes, the next tick stays too.
//   - If the expression, time zone, or spread changes, the old terms decide the ticks up to now,
//     and the new terms begin now.
//   - A schedule that is missing is retired: it stops firing. If it comes back within
//     [Options.Forget], it continues where it ended, and catches up. After that it is forgotten.
//
// Sync keeps what operators did: pauses, terms from [Manager.Set], and schedules from [Manager.Put]. Sync
// starts the scheduler, so call it also with no schedules.
//
// If a definition is wrong, or if another group has a schedule of the same name, Sync returns an
// error and changes nothing. If programs of one group define different schedules, the last Sync
// wins.
func (s *Scheduler) Sync(ctx context.Context, schedules ...Definition) error {
	own := make(map[string]*Definition, len(schedules))
	for i := range schedules {
		d := &schedules[i]
		switch {
		case d.err != nil:
			return d.err
		case own[d.name] != nil:
			return wrong("schedule", "two have the name %q", d.name)
		}
		own[d.name] = d
	}
	if len(own) > MaxSchedules {
		return wrong("schedules", "there are %d, and at most %d are possible", len(own), MaxSchedules)
	}
	for {
		again, err := s.merge(ctx, own)
		if err != nil {
			return fmt.Errorf("sync schedules: %w", err)
		}
		for _, name := range again {
			if err := s.settle(ctx, name); err != nil {
				return fmt.Errorf("sync schedules: %w", err)
			}
		}
		if len(again) == 0 {
			break
		}
	}
	for name := range own {
		s.damaged.Delete(name)
	}
	s.begin()
	s.hub.ring()
	return nil
}

// merge carries out a Sync, unless the old terms of some schedules have ticks to decide first.
func (s *Scheduler) merge(ctx context.Context, own map[string]*Definition) (again []string, err error) {
	var names []string
	for name := range own {
		names = append(names, name)
	}
	err = s.source.ViewRows(ctx, func(r driver.Reader) error {
		return each(r, "", func(name string, r *row, damage error) bool {
			if damage == nil && r.Group == s.opts.Group && own[name] == nil {
				names = append(names, name)
			}
			return true
		})
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	t := &mutation{names: names}
	t.check = func(ops driver.Ops) (changes []*change, err error) {
		again = nil
		for _, name := range names {
			c, wait, err := s.mergeOne(ops, name, own[name])
			if err != nil {
				return nil, fmt.Errorf("schedule %q: %w", name, err)
			}
			if wait {
				again = append(again, name)
			}
			if c != nil {
				changes = append(changes, c)
			}
		}
		if len(again) > 0 {
			return nil, nil
		}
		return changes, nil
	}
	return again, s.mutate(ctx, t, len(names)*rowBytes)
}

// mergeOne merges one schedule. D is nil if the program does not define it.
func (s *Scheduler) mergeOne(ops driver.Ops, name string, d *Definition) (c *change, wait bool, err error) {
	was, err := read(ops, name)
	if err != nil && d != nil && errors.Is(err, pawl.ErrCorrupt) {
		was, err = nil, nil // the program knows what it was
	}
	now := ops.Now()
	switch {
	case err != nil:
		return nil, false, err
	case d == nil && (was == nil || was.Group != s.opts.Group):
		return nil, false, nil
	case d == nil && was.Retired == 0:
		c := &change{name: name, was: was, row: was.clone()}
		c.row.Retired = now.UnixNano()
		c.row.plan(name)
		return c, false, nil
	case d == nil && now.Sub(timeOf(was.Retired)) > s.opts.Forget:
		return &change{name: name, was: was}, false, nil
	case d == nil:
		return nil, false, nil
	case was == nil:
		return create(name, s.opts.Group, d, now), false, nil
	case was.Group != s.opts.Group && was.Retired == 0:
		return nil, false, fmt.Errorf("%w: %s has a schedule of this name", pawl.ErrConflict, owner(was.Group))
	}
	c = &change{name: name, was: was, row: was.clone()}
	c.row.Group, c.row.Terms, c.row.Action, c.row.Retired = s.opts.Group, d.terms, d.action, 0
	if sameDefinition(was, c.row) {
		return nil, false, nil
	}
	return c, c.settled(now), nil
}

func owner(group string) string {
	if group == "" {
		return "an operator"
	}
	return fmt.Sprintf("group %q", group)
}

// create makes a schedule that begins now.
func create(name, group string, d *Definition, now time.Time) *change {
	r := &row{Group: group, Terms: d.terms, Action: d.action, Created: now.UnixNano(), Last: now.UnixNano()}
	r.plan(name)
	return &change{name: name, row: r}
}

// settled ends the use of the old terms: if they differ, the new ones begin now. It returns true if
// ticks have to be decided by the old terms before.
func (c *change) settled(now time.Time) (wait bool) {
	old, terms := c.was.terms(), c.row.terms()
	if old.Spec == terms.Spec && old.Zone == terms.Zone && old.Spread == terms.Spread {
		c.row.plan(c.name)
		return false
	}
	if c.was.Due != 0 && c.was.Next <= now.UnixNano() {
		return true
	}
	c.pass(now)
	c.row.plan(c.name)
	return false
}

// pass decides the ticks of a schedule that was paused, or retired: none fires.
func (c *change) pass(now time.Time) {
	decision, why := Paused, ""
	if c.was.Retired != 0 {
		decision, why = Missed, "no program defined the schedule"
	}
	cal, err := c.was.terms().calendar(c.name)
	if err == nil && !c.was.active() {
		cal.spread = 0
		o := cal.overdue(c.row.Last, now.UnixNano(), 1, 0)
		for _, tick := range o.ticks {
			o.missed.add(tick)
		}
		if o.missed.n > 0 {
			c.add(entry{Decision: decision, First: o.missed.first, Last: o.missed.last, Ticks: min(o.missed.n, MaxMissed), At: now.UnixNano(), Why: why})
		}
	}
	c.row.Last = max(c.row.Last, now.UnixNano())
}

func sameDefinition(a, b *row) bool {
	return a.Group == b.Group && a.Terms == b.Terms && a.Retired == b.Retired &&
		string(a.Action.Job) == string(b.Action.Job) && sameRun(a.Action.Run, b.Action.Run)
}

func sameRun(a, b *workflow.Template) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Flow == b.Flow && a.Queue == b.Queue && a.Priority == b.Priority && a.Retain == b.Retain &&
		slices.Equal(a.Receives, b.Receives) && string(a.Input) == string(b.Input)
}
