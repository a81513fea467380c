package schedule

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// ErrNotFound says that there is no such schedule. It is [pawl.ErrNotFound] for schedules.
var ErrNotFound error = notFound{}

type notFound struct{}

func (notFound) Error() string { return "no such schedule" }

func (notFound) Unwrap() error { return pawl.ErrNotFound }

// MaxSchedules is the maximum number of schedules of one [Scheduler.Sync].
const MaxSchedules = 100_000

// Manager changes the schedules of a store, and fires nothing by itself. Its methods are safe for
// concurrent use, and return when the change is durable. Besides the documented errors, they return
// the errors of the store.
type Manager struct {
	*Reader
	store Store
	hub   *hub
	opts  Options
}

// Manage returns a manager. With nil options it uses the options of the [Scheduler] of this process
// over the same store, if there is one.
func Manage(s Store, opts *Options) *Manager {
	m := &Manager{Reader: Read(s), store: s, hub: hubOf(s)}
	if opts == nil {
		opts = m.hub.opts.Load()
	}
	m.opts = defaults(opts)
	return m
}

// hub connects the managers and schedulers over a store in this process.
type hub struct {
	shared bool                    // other processes may change schedules
	bell   chan struct{}           // makes a scheduler look again
	opts   atomic.Pointer[Options] // options of a scheduler
	firing atomic.Int32            // running schedulers
	opened sync.Map                // names of schedules whose tick for opening the store is decided
}

var hubs struct {
	sync.Mutex
	of map[Store]*hub
}

// hubOf returns the hub of a store. The hub lives until the store is closed.
func hubOf(s Store) *hub {
	hubs.Lock()
	defer hubs.Unlock()
	if h := hubs.of[s]; h != nil {
		return h
	}
	if hubs.of == nil {
		hubs.of = make(map[Store]*hub)
	}
	able, ok := s.(driver.Able)
	h := &hub{bell: make(chan struct{}, 1), shared: ok && able.Abilities()&pawl.Shared != 0}
	hubs.of[s] = h
	go func() {
		<-s.Done()
		hubs.Lock()
		delete(hubs.of, s)
		hubs.Unlock()
	}()
	return h
}

// Firing reports whether a scheduler of this process fires the schedules of the store.
func (m *Manager) Firing() bool { return m.hub.firing.Load() > 0 }

// ring makes a scheduler of this process look again.
func (h *hub) ring() {
	select {
	case h.bell <- struct{}{}:
	default:
	}
}

// change changes schedules. It calls fn for each schedule with its row, and fn changes the row. The row
// is nil if there is none, or if it is damaged. So fn has to look at the damage.
func (m *Manager) change(ctx context.Context, names []string, fn func(ops driver.Ops, c *change) error) error {
	t := &mutation{names: names, check: func(ops driver.Ops) ([]*change, error) {
		var list []*change
		for _, name := range names {
			c := &change{name: name}
			if c.was, c.damage = read(ops, name); c.damage != nil && !errors.Is(c.damage, pawl.ErrCorrupt) {
				return nil, c.damage
			}
			if c.was != nil {
				c.row = c.was.clone()
			}
			before := c.row
			if err := fn(ops, c); err != nil {
				return nil, fmt.Errorf("schedule %q: %w", name, err)
			}
			if c.row != nil || before != nil || c.remove {
				list = append(list, c)
			}
		}
		return list, nil
	}}
	err := m.mutate(ctx, t, len(names)*rowBytes)
	m.hub.ring()
	return err
}

// one changes a schedule that must exist.
func (m *Manager) one(ctx context.Context, name string, fn func(ops driver.Ops, c *change) error) error {
	return m.change(ctx, []string{name}, func(ops driver.Ops, c *change) error {
		if err := c.exists(); err != nil {
			return err
		}
		return fn(ops, c)
	})
}

// exists returns an error if there is no row, or a damaged one.
func (c *change) exists() error {
	switch {
	case c.damage != nil:
		return fmt.Errorf("%w; remove the schedule, and define it again", c.damage)
	case c.row == nil:
		return ErrNotFound
	}
	return nil
}

// mutate carries out a mutation, and reports its decisions.
func (m *Manager) mutate(ctx context.Context, t *mutation, size int) error {
	err := m.store.Mutate(ctx, t, size)
	if err != nil {
		return err
	}
	if m.opts.OnDecision != nil {
		m.hub.report(t.changes, m.opts.OnDecision)
	}
	return nil
}

var reporting sync.Mutex

// report calls fn for the decisions of a mutation.
func (h *hub) report(changes []*change, fn func(string, Entry)) {
	reporting.Lock()
	defer reporting.Unlock()
	for _, c := range changes {
		for _, e := range c.decided {
			fn(c.name, e.export(0))
		}
	}
}

// decide decides the ticks of some schedules in one mutation. An error about one of them concerns the others only if
// the store fails, and a store that fails in Check fails the mutation anyway. So decide returns the errors of the store
// and of ticks that an operator asks for, and leaves other errors in the candidates.
func (m *Manager) decide(ctx context.Context, list []*candidate, jobs []pawl.ID, outdated []stale) ([]*change, error) {
	t := &mutation{jobs: jobs, stale: outdated}
	size := len(outdated) * rowBytes
	for _, s := range outdated {
		t.names = append(t.names, s.name)
	}
	for _, c := range list {
		t.names = append(t.names, c.name)
		size += rowBytes + len(c.fires)*(len(c.row.Action.Job)+rowBytes)
		for _, f := range c.fires {
			if f.start != nil && f.err == nil {
				t.starts = append(t.starts, f.start)
			} else {
				t.jobs = append(t.jobs, f.id)
			}
		}
	}
	t.check = func(ops driver.Ops) (changes []*change, err error) {
		for _, c := range list {
			done, err := c.decide(ops, m.opts.Sign)
			if err != nil && len(c.manual) > 0 {
				return nil, err
			}
			c.failed = err
			if done != nil {
				changes = append(changes, done)
			}
		}
		return changes, nil
	}
	err := m.mutate(ctx, t, size)
	return t.changes, err
}

// settle decides all ticks of one schedule up to now. If the schedule is not active, settle counts the
// ticks instead, and returns them for [change.pass].
func (m *Manager) settle(ctx context.Context, name string) (passed, error) {
	for {
		var r *row
		err := m.source.ViewRows(ctx, func(tx driver.Reader) (err error) {
			r, err = read(tx, name)
			return err
		})
		now := m.store.Now().UnixNano()
		switch {
		case err != nil || r == nil:
			return passed{}, err
		case !r.active():
			return r.countPassed(name, now), nil
		case r.Due == 0 || r.Next > now:
			return passed{}, nil
		}
		early := r.clone() // the spread of the last tick ends now
		early.Due, early.terms().Spread = r.Next, 0
		c, err := m.candidate(name, early, now, portion)
		if err != nil {
			return passed{}, err
		}
		_, err = m.decide(ctx, []*candidate{c}, r.Alive, nil)
		if err == nil {
			err = c.failed
		}
		if err != nil {
			return passed{}, err
		}
	}
}
