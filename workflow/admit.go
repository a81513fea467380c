package workflow

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// admit lets runs of flows begin that a new limit permits, or that wait for runs which damage removed.
func (e *Engine) admit(ctx context.Context, flows []Definition) error {
	for _, f := range flows {
		for after := placesKey(f.Name(), "")[:len(f.Name())+1]; after != nil; {
			a, next, err := e.nextAdmission(ctx, f, after)
			if err != nil {
				return err
			}
			for a != nil && !a.done {
				if err := e.queue.Mutate(ctx, a, requestBytes); err != nil {
					return err
				}
			}
			after = next
		}
	}
	return nil
}

// nextAdmission finds the next places of a flow in the table. Next is nil at the end.
func (e *Engine) nextAdmission(ctx context.Context, f Definition, after []byte) (a *admission, next []byte, err error) {
	prefix := append([]byte(f.Name()), 0)
	err = e.source.ViewRows(ctx, func(tx driver.Reader) error {
		r := rowsOf(tx)
		err := r.placeFrom(prefix, after, func(key []byte) {
			head, _, _, err := parsePlaceKey(key)
			if err != nil {
				next = driver.After(key)
				return
			}
			a = &admission{flow: f, head: bytes.Clone(head)}
			next = append(bytes.Clone(head), placeInLine+1) // behind all rows of the head
		})
		if a == nil || err != nil {
			return err
		}
		a.stale, err = r.stalePlaces(a.head)
		return err
	})
	return a, next, err
}

// placeFrom calls fn with the first key of table places from a key on.
func (r rows) placeFrom(prefix, from []byte, fn func(key []byte)) error {
	return present(r.Scan(tablePlaces, driver.Span{Prefix: prefix, From: from, Limit: 1}, func(key, _ []byte) bool {
		fn(key)
		return false
	}))
}

// stalePlaces returns some of the runs that have a place and are not open, which only damage leaves.
func (r rows) stalePlaces(head []byte) (stale []pawl.ID, err error) {
	prefix := append(slices.Clip(head), placeTaken)
	var taken []pawl.ID
	err = present(r.Scan(tablePlaces, driver.Span{Prefix: prefix, Limit: 10 * MaxPlaces}, func(key, _ []byte) bool {
		if len(key) == len(prefix)+len(pawl.ID{}) {
			taken = append(taken, pawl.ID(key[len(prefix):]))
		}
		return true
	}))
	for _, run := range taken {
		gone, failed := r.leftPlace(head, run)
		if failed != nil {
			return nil, failed
		}
		if gone && len(stale) < portion {
			stale = append(stale, run)
		}
	}
	return stale, err
}

// leftPlace reports whether a run that has a place is not open, or does not say so.
func (r rows) leftPlace(head []byte, run pawl.ID) (bool, error) {
	row, err := r.run(run)
	if err != nil && !errors.Is(err, pawl.ErrCorrupt) {
		return false, err
	}
	return row == nil || !row.has(head), nil
}

// has reports whether the run is open and has a place of a head.
func (row *runRow) has(head []byte) bool {
	for _, kind := range [...]placeKind{placeOfFlow, placeOfKey} {
		if row.open() && row.Places&kind != 0 && bytes.Equal(row.placesKey(kind), head) {
			return true
		}
	}
	return false
}

// admission is the mutation that gives free places to runs in line, a portion at a time.
type admission struct {
	flow   Definition
	head   []byte
	stale  []pawl.ID
	places places
	done   bool
}

// Declare declares the places, and the runs that an earlier Check has found.
func (a *admission) Declare(n *driver.Needs) {
	row, kind := a.of()
	a.places.needs(n, a.flow.openLimits(), row, kind)
	for _, run := range a.stale {
		n.Own(tableRuns, run[:])
	}
	if kind == placeOfKey && a.flow.openLimits().flow > 0 {
		a.places.needs(n, a.flow.openLimits(), row, placeOfFlow)
	}
}

// of returns the row of a run that would have such a place.
func (a *admission) of() (*runRow, placeKind) {
	key := string(a.head[len(a.flow.Name())+1 : len(a.head)-1])
	if key == "" {
		return &runRow{Flow: a.flow.Name()}, placeOfFlow
	}
	return &runRow{Flow: a.flow.Name(), Key: key}, placeOfKey
}

// Check gives the places.
func (a *admission) Check(ops driver.Ops) error {
	r := rowsOf(ops)
	row, kind := a.of()
	a.places = places{limits: a.flow.openLimits(), read: portion}
	l, err := a.places.lot(r, row, kind)
	if err != nil {
		return err
	}
	for _, run := range a.stale {
		gone, err := r.leftPlace(a.head, run)
		if err == nil && gone {
			err = l.vacate(r, run)
		}
		if err != nil {
			return err
		}
	}
	for gave := true; gave; {
		if gave, err = a.places.give(ops, r, l, kind); err != nil {
			return err
		}
	}
	a.done = !l.more || !l.free()
	return nil
}

// Apply writes the places and the rows of the runs that have got one.
func (a *admission) Apply(tx driver.Writer) error {
	r := rowsTo(tx)
	if err := r.putAll(a.places.rows); err != nil {
		return err
	}
	return a.places.apply(r)
}
