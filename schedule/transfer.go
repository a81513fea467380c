package schedule

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// RowsForm is the version of the form of [Rows] that this build writes.
const RowsForm = driver.RowForm

// Rows is a schedule in its stored form, for a move to another store.
type Rows struct {
	Name    string
	Form    int
	Row     []byte
	History []HistoryRow // in the order of their numbers
}

// HistoryRow is an entry of the history in its stored form.
type HistoryRow struct {
	N     uint64
	Value []byte
}

// rowsBytes is roughly how many bytes one call of [Reader.Rows] returns.
const rowsBytes = 1 << 20

// Rows returns the rows of up to max schedules whose names follow after, in the order of their names. After is "" for
// the first ones. Rows returns fewer schedules if they are large, and none only if there are no more. A damaged
// schedule has only its name, and Form 0.
func (r *Reader) Rows(ctx context.Context, after string, max int) (list []Rows, err error) {
	if max < 1 || max > MaxListed {
		return nil, wrong("max", "%d is not between 1 and %d", max, MaxListed)
	}
	err = r.source.ViewRows(ctx, func(tx driver.Reader) error {
		list = nil
		size := 0
		var span driver.Span
		if after != "" {
			span.From = driver.After(nameKey(after))
		}
		err := present(tx.Scan(tableRows, span, func(key, value []byte) bool {
			rows := Rows{Name: nameOf(key)}
			if content, err := driver.Unseal(tableRows, key, value); err == nil {
				rows.Form, rows.Row = RowsForm, slices.Clone(content)
			}
			list, size = append(list, rows), size+len(key)+len(value)
			return len(list) < max && size < rowsBytes
		}))
		size = 0
		for i := range list {
			if err == nil && list[i].Form != 0 {
				err = list[i].history(tx)
			}
			if size += list[i].bytes(); size >= rowsBytes {
				list = list[:i+1]
				break
			}
		}
		return err
	})
	return list, err
}

// bytes returns roughly how many bytes of memory the rows take.
func (rows *Rows) bytes() int {
	n := len(rows.Name) + len(rows.Row)
	for _, h := range rows.History {
		n += 8 + len(h.Value)
	}
	return n
}

// history reads the history. It omits damaged entries.
func (rows *Rows) history(tx driver.Reader) error {
	return present(tx.Scan(tableHistory, driver.Span{Prefix: nameKey(rows.Name)}, func(key, value []byte) bool {
		var e entry
		if n, err := parseEntry(key, value, &e); err == nil {
			content, _ := driver.Unseal(tableHistory, key, value)
			rows.History = append(rows.History, HistoryRow{N: n, Value: slices.Clone(content)})
		}
		return true
	}))
}

// change checks rows that may come from anywhere, and returns the change that stores them.
func (rows *Rows) change() (*change, error) {
	if rows.Form > RowsForm {
		return nil, fmt.Errorf("%w: the rows of schedule %q have form %d, this build reads up to %d", pawl.ErrNewerFormat, rows.Name, rows.Form, RowsForm)
	}
	if err := checkName(rows.Name); err != nil {
		return nil, err
	}
	r := new(row)
	if err := driver.DecodePayload(rows.Row, r); err != nil || rows.Form < 1 {
		return nil, wrong("schedule", "the row of %q cannot be read: %v", rows.Name, err)
	}
	if err := r.sound(rows.Name); err != nil {
		return nil, fmt.Errorf("schedule %q: %w", rows.Name, err)
	}
	c := &change{name: rows.Name, row: r}
	last := uint64(0)
	for _, h := range rows.History {
		var e entry
		err := driver.DecodePayload(h.Value, &e)
		if err != nil || h.N <= last || h.N > r.Entries || e.Ticks < 0 || e.Ticks > math.MaxInt32 || len(e.Why) > maxWhy {
			return nil, wrong("history", "entry %d of schedule %q is none: %v", h.N, rows.Name, err)
		}
		c.entries, last = append(c.entries, numbered{h.N, e}), h.N
	}
	r.plan(rows.Name)
	return c, nil
}

// sound refuses a row that no scheduler would have written. A time zone that is unknown here is accepted.
func (r *row) sound(name string) error {
	flow := r.Action.Run != nil
	for _, t := range []*Terms{&r.Terms, r.terms()} {
		if _, broken := t.calendar(name); broken == nil {
			if err := t.check(name, flow); err != nil {
				return err
			}
		}
	}
	if err := driver.CheckQueue(r.Group); r.Group != "" && err != nil {
		return err
	}
	bad := ""
	switch {
	case flow == (r.Action.Job != nil):
		bad = "neither a job nor a run, or both"
	case len(r.Alive) > maxAlive || len(r.Buffered) > MaxBuffer:
		bad = "too many jobs"
	case r.Missed < 0 || r.Missed > MaxMissed || r.Tail != nil && (r.Tail.Ticks < 0 || r.Tail.Ticks > math.MaxInt32),
		r.Counts.Buffered < uint64(len(r.Buffered)):
		bad = "a count that is none"
	case r.Paused != nil && len(r.Paused.Note) > MaxNote:
		bad = "a note that is too long"
	case slices.ContainsFunc(r.Buffered, func(b buffered) bool { return b.Entry < 1 || b.Entry > r.Entries }):
		bad = "a waiting tick without its entry"
	}
	if bad != "" {
		return wrong("schedule", "its row has %s", bad)
	}
	if flow {
		return r.Action.Run.Check()
	}
	e, err := r.Action.template()
	if err != nil {
		return wrong("job", "it cannot be read: %v", err)
	}
	return driver.CheckEnvelope(e)
}

// CheckRows returns the error of rows that [Manager.RestoreRows] refuses.
func CheckRows(rows *Rows) error {
	_, err := rows.change()
	return err
}

// Alive returns the jobs that the schedule waits for, or the error of [CheckRows].
func (rows *Rows) Alive() ([]pawl.ID, error) {
	c, err := rows.change()
	if err != nil {
		return nil, err
	}
	return c.row.Alive, nil
}

// Rename replaces the IDs of the jobs that are alive, for a target that gives them other IDs.
func (rows *Rows) Rename(id func(pawl.ID) pawl.ID) error {
	c, err := rows.change()
	if err != nil {
		return err
	}
	for i, old := range c.row.Alive {
		c.row.Alive[i] = id(old)
	}
	rows.Row, err = driver.EncodePayload(c.row)
	return err
}

// RestoreRows stores schedules from another store, all or none. They continue where they stopped there:
// ticks since then are late. It returns [pawl.ErrConflict] if a schedule with one of the names exists,
// and [pawl.ErrInvalid] for rows that no store has written.
func (m *Manager) RestoreRows(ctx context.Context, rows ...*Rows) error {
	all := make(map[string]*change, len(rows))
	var names []string
	size := 0
	for _, each := range rows {
		c, err := each.change()
		switch {
		case err != nil:
			return err
		case all[each.Name] != nil:
			return wrong("schedule", "two have the name %q", each.Name)
		}
		all[each.Name], names = c, append(names, each.Name)
		size += len(each.Row) + len(each.History)*rowBytes
	}
	t := &mutation{names: names, check: func(ops driver.Ops) (changes []*change, err error) {
		for _, name := range names {
			if was, err := read(ops, name); err != nil || was != nil {
				return nil, fmt.Errorf("schedule %q: %w: it exists already", name, pawl.ErrConflict)
			}
			changes = append(changes, all[name])
		}
		return changes, nil
	}}
	err := m.mutate(ctx, t, size)
	m.hub.ring()
	return err
}
