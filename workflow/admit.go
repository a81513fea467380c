package workflow

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// admit lets waiting runs of flows begin if a new limit permits them, or if damage removed the runs that they
// wait for. One commit changes many keys. Keys without work cost no commit.
func (e *Engine) admit(ctx context.Context, flows []Definition) error {
	for _, f := range flows {
		for after := placesKey(f.Name(), "")[:len(f.Name())+1]; after != nil; {
			a, next, err := e.nextAdmission(ctx, f, after)
			if err != nil {
				return err
			}
			for len(a.lines) > 0 && !a.done {
				if err := e.queue.Mutate(ctx, a, requestBytes); err != nil {
					return err
				}
			}
			after = next
		}
	}
	return nil
}

// headsRead is how many heads one transaction reads.
const headsRead = 1000

// nextAdmission finds the next lines of a flow that need work. Next is nil at the end.
func (e *Engine) nextAdmission(ctx context.Context, f Definition, after []byte) (a *admission, next []byte, err error) {
	prefix := append([]byte(f.Name()), 0)
	a, next = &admission{flow: f}, after
	err = e.source.ViewRows(ctx, func(tx driver.Reader) error {
		r := rowsOf(tx)
		for n := 0; n < headsRead && len(a.lines) < portion && next != nil; n++ {
			from := next
			next = nil
			var head []byte
			err := r.placeFrom(prefix, from, func(key []byte) {
				h, _, _, err := parsePlaceKey(key)
				if err != nil {
					next = driver.After(key)
					return
				}
				head = bytes.Clone(h)
				next = append(bytes.Clone(head), placeInLine+1) // behind all rows of the head
			})
			if err == nil && head != nil {
				err = a.look(r, head, e.now())
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	return a, next, err
}

// look adds the line of a head if the line needs work.
func (a *admission) look(r rows, head []byte, now time.Time) error {
	stale, err := r.stalePlaces(head)
	if err != nil {
		return err
	}
	row, kind := a.of(head)
	p := places{limits: a.flow.openLimits(), now: now}
	l, err := p.lot(r, row, kind)
	if err != nil {
		return err
	}
	waits := len(l.line) > 0 && (l.rated() || l.free())
	idle := len(l.line) == 0 && l.taken == 0 && !l.tat.After(now)
	if len(stale) > 0 || waits || idle || l.changed {
		a.lines = append(a.lines, admissionLine{head, stale})
	}
	return nil
}

// placeFrom calls fn with the first key of table places at or after a key.
func (r rows) placeFrom(prefix, from []byte, fn func(key []byte)) error {
	return present(r.Scan(tablePlaces, driver.Span{Prefix: prefix, From: from, Limit: 1}, func(key, _ []byte) bool {
		fn(key)
		return false
	}))
}

// stalePlaces returns some of the runs that have a place and are not open. Only damage leaves such runs.
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

// leftPlace reports whether a run with a place is not open, or its row lacks the place.
func (r rows) leftPlace(head []byte, run pawl.ID) (bool, error) {
	row, err := r.run(run)
	if err != nil && !errors.Is(err, pawl.ErrCorrupt) {
		return false, err
	}
	return row == nil || !row.has(head), nil
}

// has reports whether the run is open and has a place of a head.
func (row *runRow) has(head []byte) bool {
	for _, kind := range placeKinds {
		if row.open() && row.Places&kind != 0 && bytes.Equal(row.placesKey(kind), head) {
			return true
		}
	}
	return false
}

// admission is the mutation that gives free places to runs in line, a portion at a time.
type admission struct {
	flow   Definition
	lines  []admissionLine
	places places
	done   bool
}

// admissionLine is a head, and the runs that have a place there without being open.
type admissionLine struct {
	head  []byte
	stale []pawl.ID
}

// Declare declares the places, and the runs that an earlier Check has found.
func (a *admission) Declare(n *driver.Needs) {
	limits := a.flow.openLimits()
	for _, line := range a.lines {
		row, kind := a.of(line.head)
		a.places.needsHead(n, limits, row, kind)
		for _, run := range line.stale {
			n.Own(tableRuns, run[:])
		}
	}
	if row := (&runRow{Flow: a.flow.Name()}); limits.needs(row) != nil && !bytes.Equal(a.lines[0].head, row.placesKey(placeOfFlow)) {
		a.places.needsHead(n, limits, row, placeOfFlow)
	}
	a.places.needsRuns(n)
}

// of returns the row of an imaginary run that needs a place of a head.
func (a *admission) of(head []byte) (*runRow, placeKind) {
	key := string(head[len(a.flow.Name())+1 : len(head)-1])
	if key == "" {
		return &runRow{Flow: a.flow.Name()}, placeOfFlow
	}
	return &runRow{Flow: a.flow.Name(), Key: key}, placeOfKey
}

// Check gives the places.
func (a *admission) Check(ops driver.Ops) error {
	r := rowsOf(ops)
	a.places = places{limits: a.flow.openLimits(), now: ops.Now(), read: portion}
	a.done = true
	for _, line := range a.lines {
		if len(a.places.rows) >= portion {
			a.done = false
			break
		}
		if err := a.give(ops, r, line); err != nil {
			return err
		}
	}
	return a.places.rouse(ops, r)
}

// give gives the free places of a line.
func (a *admission) give(ops driver.Ops, r rows, line admissionLine) error {
	row, kind := a.of(line.head)
	l, err := a.places.lot(r, row, kind)
	if err != nil {
		return err
	}
	for _, run := range line.stale {
		gone, err := r.leftPlace(line.head, run)
		if err == nil && gone {
			err = l.vacate(r, run)
		}
		if err != nil {
			return err
		}
	}
	for gave := true; gave; {
		if gave, err = a.places.give(ops, r, l); err != nil {
			return err
		}
	}
	l.vacated = true
	a.done = a.done && (!l.more || !l.free() || l.rated())
	return nil
}

// Apply writes the places and the rows of the runs that got one.
func (a *admission) Apply(tx driver.Writer) error { return a.places.apply(rowsTo(tx)) }
