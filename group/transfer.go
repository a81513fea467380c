package group

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// RowsForm is the version of the form of [Rows] that this build writes.
const RowsForm = driver.RowForm

// Rows are a group in the form in which it is stored, for a move to another store. Its members are moved as jobs.
type Rows struct {
	Name      string
	Form      int
	Row       []byte
	Callbacks []CallbackRow // those that have not been enqueued, in the order of Which
}

// CallbackRow is a callback in the form in which it is stored.
type CallbackRow struct {
	Which int
	Value []byte
}

// rowsBytes is roughly how many bytes one call of [ReadRows] returns.
const rowsBytes = 1 << 20

// ReadRows returns the rows of up to max groups whose names follow after, in the order of their names, and fewer
// if they are large. Use "" for the first ones. It returns none only if there are no more. A damaged group has
// only its name, and Form 0.
func ReadRows(ctx context.Context, q Queue, after string, max int) (list []Rows, err error) {
	if max < 1 || max > MaxListed {
		return nil, &pawl.InvalidError{Field: "max", Reason: fmt.Sprintf("%d is not between 1 and %d", max, MaxListed)}
	}
	err = q.ViewRows(ctx, func(r driver.Reader) error {
		list = nil
		groups := make(map[string]*driver.GroupRow)
		err := driver.EachGroup(r, after, func(name string, row *driver.GroupRow, damage error) bool {
			if damage == nil && !row.Made { // it follows from its members
				return true
			}
			list, groups[name] = append(list, Rows{Name: name}), row
			return len(list) < max
		})
		size := 0
		for i := range list {
			if err == nil {
				err = list[i].read(r, groups[list[i].Name])
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

// read fills in the rows. The rows of a damaged group stay empty.
func (rows *Rows) read(r driver.Reader, row *driver.GroupRow) error {
	if row == nil {
		return nil
	}
	var callbacks []CallbackRow
	for which, f := range row.Fired {
		if !f.Waits {
			continue
		}
		e, err := driver.ReadCallback(r, rows.Name, which)
		switch {
		case errors.Is(err, pawl.ErrCorrupt):
			return nil
		case err != nil:
			return err
		}
		callbacks = append(callbacks, CallbackRow{which, driver.AppendRecord(nil, e, 0)})
	}
	content, err := driver.EncodePayload(row)
	if err == nil {
		rows.Form, rows.Row, rows.Callbacks = RowsForm, content, callbacks
	}
	return err
}

// bytes returns about how much memory the rows take.
func (rows *Rows) bytes() int {
	n := len(rows.Name) + len(rows.Row)
	for _, c := range rows.Callbacks {
		n += len(c.Value)
	}
	return n
}

// parsed are rows that were checked.
type parsed struct {
	name      string
	row       *driver.GroupRow
	callbacks [driver.Callbacks]*pawl.Envelope // those that wait
}

// parse checks rows that may come from anywhere.
func (rows *Rows) parse() (*parsed, error) {
	if rows.Form > RowsForm {
		return nil, fmt.Errorf("%w: the rows of group %q have form %d, this build reads up to %d", pawl.ErrNewerFormat, rows.Name, rows.Form, RowsForm)
	}
	if err := checkGroupName(rows.Name); err != nil {
		return nil, err
	}
	p := &parsed{name: rows.Name, row: new(driver.GroupRow)}
	if err := driver.DecodePayload(rows.Row, p.row); err != nil || rows.Form < 1 {
		return nil, wrongRows(rows.Name, "its row cannot be read: %v", err)
	}
	for _, c := range rows.Callbacks {
		if c.Which < 0 || c.Which >= driver.Callbacks || p.callbacks[c.Which] != nil {
			return nil, wrongRows(rows.Name, "it has no callback %d, or two", c.Which)
		}
		e, apart, err := driver.ParseRecord(bytes.Clone(c.Value))
		if err != nil || apart != 0 {
			return nil, wrongRows(rows.Name, "its callback cannot be read: %v", err)
		}
		if err := checkCallback(e); err != nil {
			return nil, fmt.Errorf("group %q: %w", rows.Name, err)
		}
		p.callbacks[c.Which] = e
	}
	return p, p.sound()
}

// sound refuses what no queue would have written.
func (p *parsed) sound() error {
	r := p.row
	for _, n := range []int{r.Pending, r.Succeeded, r.Dead, r.Removed, r.Total} {
		if n < 0 || n > pawl.MaxGroup {
			return wrongRows(p.name, "a count is %d", n)
		}
	}
	if !r.Made || r.Retain < 0 {
		return wrongRows(p.name, "nobody made it, or its retention is negative")
	}
	for which, f := range r.Fired {
		if e := p.callbacks[which]; f.Waits != (e != nil) || e != nil && e.ID != f.Job {
			return wrongRows(p.name, "callback %d is missing, or another", which)
		}
	}
	return nil
}

func wrongRows(name, text string, args ...any) error {
	return &pawl.InvalidError{Field: "group", Reason: fmt.Sprintf("%q: ", name) + fmt.Sprintf(text, args...)}
}

// Jobs returns the IDs of the callbacks of the group, and whether a waiting callback is signed. It returns an error for
// rows that [Restore] refuses.
func (rows *Rows) Jobs() (ids []pawl.ID, signed bool, err error) {
	p, err := rows.parse()
	if err != nil {
		return nil, false, err
	}
	for which, f := range p.row.Fired {
		if !f.Job.IsZero() {
			ids = append(ids, f.Job)
		}
		if e := p.callbacks[which]; e != nil && len(e.Signature) > 0 {
			signed = true
		}
	}
	return ids, signed, nil
}

// Rename replaces the IDs of the callbacks, for a target in which they have other IDs.
func (rows *Rows) Rename(id func(pawl.ID) pawl.ID) error {
	p, err := rows.parse()
	if err != nil {
		return err
	}
	rows.Callbacks = nil
	for which := range p.row.Fired {
		f, e := &p.row.Fired[which], p.callbacks[which]
		if !f.Job.IsZero() {
			f.Job = id(f.Job)
		}
		if e != nil {
			e.ID = f.Job
			rows.Callbacks = append(rows.Callbacks, CallbackRow{which, driver.AppendRecord(nil, e, 0)})
		}
	}
	rows.Row, err = driver.EncodePayload(p.row)
	return err
}

// Restore stores groups from another store, all or none, after their members. Members that the queue has count by
// their state. Of the others, as many count as succeeded as the rows say, and the rest as removed. A group that has
// ended enqueues what is due.
//
// Errors: [pawl.ErrConflict] if there is a group with one of the names; [pawl.ErrInvalid] for rows that no queue has
// written; [pawl.ErrUnsupported]; and those of the queue.
func Restore(ctx context.Context, q Queue, groups ...*Rows) error {
	m := &restoring{}
	names := make(map[string]bool)
	size := 0
	for _, rows := range groups {
		p, err := rows.parse()
		if err == nil && names[p.name] {
			err = wrongRows(p.name, "it comes twice")
		}
		if err != nil {
			return fmt.Errorf("restore group: %w", err)
		}
		names[p.name] = true
		m.groups, size = append(m.groups, p), size+rows.bytes()+rowBytes
	}
	err := supports(q)
	if err == nil && len(m.groups) > 0 {
		err = q.Mutate(ctx, m, size)
	}
	if err != nil {
		return fmt.Errorf("restore group: %w", err)
	}
	return nil
}

// restoring is the mutation that stores groups from elsewhere.
type restoring struct {
	groups []*parsed

	rows []*driver.GroupRow // set by Check
}

// Check implements [driver.Mutation].
func (m *restoring) Check(ops driver.Ops) error {
	m.rows = m.rows[:0]
	for _, p := range m.groups {
		there, err := driver.ReadGroup(ops, p.name)
		switch {
		case err != nil:
			return err
		case there != nil && there.Made && !expired(there, ops.Now()):
			return fmt.Errorf("group %q: %w: it exists already", p.name, pawl.ErrConflict)
		case there == nil || there.Made:
			there = new(driver.GroupRow)
		}
		row := counted(p.row, there)
		if row.Total > pawl.MaxGroup {
			return wrongRows(p.name, "it would have %d members, at most %d are allowed", row.Total, pawl.MaxGroup)
		}
		if err := p.end(ops, row); err != nil {
			return err
		}
		m.rows = append(m.rows, row)
	}
	return nil
}

// counted returns the row of a group with the counts of the members that the queue has, which are in there. The other
// members succeeded or were removed, as row says. Members that it does not explain count as removed.
func counted(row, there *driver.GroupRow) *driver.GroupRow {
	r := *row
	gone := max(0, row.Total-there.Total)
	succeeded := min(gone-min(gone, row.Removed), row.Succeeded)
	r.Pending, r.Dead = there.Pending, there.Dead
	r.Succeeded, r.Removed = there.Succeeded+succeeded, there.Removed+gone-succeeded
	r.Total = there.Total + gone
	return &r
}

// end enqueues what is due, unless the queue has that job.
func (p *parsed) end(ops driver.Ops, row *driver.GroupRow) error {
	switch {
	case !row.HasEnded():
		row.Ended = 0
	case row.Ended == 0:
		row.Ended = ops.Now().UnixNano()
	}
	for which, e := range p.callbacks {
		if e == nil || !row.Due(which) {
			continue
		}
		row.Fired[which].Waits = false
		if state, err := ops.State(e.ID); err != nil || state != "" {
			if err != nil {
				return err
			}
			continue
		}
		if _, err := ops.Enqueue(e); err != nil {
			return err
		}
	}
	return nil
}

// Apply implements [driver.Mutation].
func (m *restoring) Apply(w driver.Writer) error {
	for i, p := range m.groups {
		if err := driver.DeleteGroup(w, p.name); err != nil { // the callbacks of one that is over
			return err
		}
		for which, f := range m.rows[i].Fired {
			if !f.Waits {
				continue
			}
			if err := driver.PutCallback(w, p.name, which, p.callbacks[which]); err != nil {
				return err
			}
		}
		if err := driver.PutGroup(w, p.name, m.rows[i]); err != nil {
			return err
		}
	}
	return nil
}
