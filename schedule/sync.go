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

// Sync replaces the schedules of the program's group by these schedules, in one transaction:
//
//   - A new schedule begins now. Its first tick is the next one after now.
//   - An unchanged schedule stays, so a restart moves no tick.
//   - If only the job or a policy changes, the next tick stays too.
//   - If the expression, time zone, or spread changes, the old terms decide the ticks up to now,
//     and the new terms begin now.
//   - A stored schedule that is not among them is retired: it stops firing. If it comes back within
//     [Options.Forget], it continues where it ended, and catches up. After that time it is
//     forgotten.
//
// Sync keeps what operators did: pauses, terms from [Manager.Set], and schedules from [Manager.Put]. Sync starts the
// scheduler, so call it even without schedules.
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
	counted := make(map[string]passed)
	for {
		again, err := s.merge(ctx, own, counted)
		if err != nil {
			return fmt.Errorf("sync schedules: %w", err)
		}
		for _, name := range again {
			if counted[name], err = s.settle(ctx, name); err != nil {
				return fmt.Errorf("sync schedules: %w", err)
			}
		}
		if len(again) == 0 {
			break
		}
	}
	s.begin()
	s.hub.ring()
	return nil
}

// merge carries out a Sync, unless the old terms of some schedules have ticks to decide first.
func (s *Scheduler) merge(ctx context.Context, own map[string]*Definition, counted map[string]passed) (again []string, err error) {
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
			c, wait, err := s.mergeOne(ops, name, own[name], counted[name])
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
func (s *Scheduler) mergeOne(ops driver.Ops, name string, d *Definition, p passed) (c *change, wait bool, err error) {
	was, err := read(ops, name)
	if err != nil && d != nil && errors.Is(err, pawl.ErrCorrupt) {
		was, err = nil, nil // the definition replaces the damaged row
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
	return c, c.settled(now, p), nil
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

// settled ends the use of the old terms: if the new terms differ, they begin now. It returns true if ticks must
// first be decided by the old terms, or counted.
func (c *change) settled(now time.Time, p passed) (wait bool) {
	old, terms := c.was.terms(), c.row.terms()
	if old.Spec != terms.Spec || old.Zone != terms.Zone || old.Spread != terms.Spread {
		if c.was.Due != 0 && c.was.Next <= now.UnixNano() || !c.pass(now, p) {
			return true
		}
	}
	c.row.plan(c.name)
	return false
}

// passed counts the ticks during which a schedule was paused or retired, so that it decided none. Many ticks are
// counted before the transaction that skips them.
type passed struct {
	changes uint64 // changes of the row when the ticks were counted
	until   int64
	ticks   span
}

// fewPassed is how many ticks a transaction counts.
const fewPassed = 100

// countPassed counts the ticks of the schedule up to now.
func (r *row) countPassed(name string, now int64) passed {
	p := passed{changes: r.Changes, until: r.Last}
	p.count(name, r.terms(), now, MaxMissed)
	return p
}

// count counts further ticks, up to now. If there are more than most ticks, it counts none and returns false. With
// MaxMissed as most, it counts all.
func (p *passed) count(name string, t *Terms, now int64, most int) bool {
	cal, err := t.calendar(name)
	if err != nil || p.until >= now {
		return true
	}
	cal.spread = 0
	if most < MaxMissed {
		for at, n := cal.next(p.until), 0; at != 0 && at <= now; at = cal.next(at) {
			if n++; n > most {
				return false
			}
		}
	}
	o := cal.overdue(p.until, now, 1, 0)
	for _, tick := range o.ticks {
		o.missed.add(tick)
	}
	if o.missed.n > 0 {
		if p.ticks.n == 0 {
			p.ticks.first = o.missed.first
		}
		p.ticks.last, p.ticks.n = o.missed.last, min(p.ticks.n+o.missed.n, MaxMissed)
	}
	p.until = now
	return true
}

// pass decides the ticks of a schedule that was paused or retired: none fires. It returns false if there are many
// uncounted ticks.
func (c *change) pass(now time.Time, p passed) bool {
	if !c.was.active() {
		if p.changes != c.was.Changes || p.until > now.UnixNano() {
			p = passed{until: c.row.Last}
		}
		if !p.count(c.name, c.was.terms(), now.UnixNano(), fewPassed) {
			return false
		}
		e := entry{Decision: Paused, First: p.ticks.first, Last: p.ticks.last, Ticks: p.ticks.n, At: now.UnixNano()}
		if c.was.Retired != 0 {
			e.Decision, e.Why = Missed, "no program defined the schedule"
		}
		if e.Ticks > 0 {
			c.add(e)
		}
	}
	c.row.Last = max(c.row.Last, now.UnixNano())
	return true
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
