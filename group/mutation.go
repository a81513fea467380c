package group

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// rowBytes is roughly how many bytes a change of a group writes.
const rowBytes = 256

// expirePortion is how many groups Make checks for an ended retention, in each of two places.
const expirePortion = 100

// making is the mutation that stores a group.
type making struct {
	name      string
	retain    time.Duration
	callbacks [driver.Callbacks]*pawl.Envelope
	size      int

	row     *driver.GroupRow // set by Check
	expired []string
}

func newMake(g *Group) (*making, error) {
	if err := checkGroupName(g.Name); err != nil {
		return nil, err
	}
	m := &making{name: g.Name, retain: cmp.Or(g.Retain, DefaultRetain), size: rowBytes}
	if g.Retain < 0 {
		return nil, &pawl.InvalidError{Field: "retention of a group", Reason: fmt.Sprintf("%v is negative; leave it out for %v", g.Retain, DefaultRetain)}
	}
	for which, e := range [driver.Callbacks]*pawl.Envelope{driver.OnDone: g.Done, driver.OnSuccess: g.Success} {
		if e == nil {
			continue
		}
		if err := checkCallback(e); err != nil {
			return nil, err
		}
		own := *e
		if own.ID.IsZero() {
			own.ID = pawl.NewID(time.Now())
		}
		m.callbacks[which] = &own
		m.size += len(e.Payload) + rowBytes
	}
	if a, b := m.callbacks[driver.OnDone], m.callbacks[driver.OnSuccess]; a != nil && b != nil && a.ID == b.ID {
		return nil, &pawl.InvalidError{Field: "callback", Reason: fmt.Sprintf("both have the ID %s", a.ID)}
	}
	return m, nil
}

func checkGroupName(name string) error {
	if name == "" {
		return &pawl.InvalidError{Field: "group", Reason: "it is empty; give it a name"}
	}
	return driver.CheckEnvelope(&pawl.Envelope{Kind: "k", Group: name})
}

func checkCallback(e *pawl.Envelope) error {
	if err := driver.CheckEnvelope(e); err != nil {
		return fmt.Errorf("callback: %w", err)
	}
	switch {
	case e.Delay != 0 || e.UniqueKey != "" || e.Group != "" || driver.Waits(e):
		return &pawl.InvalidError{Field: "callback", Reason: "it has a delay, a unique key, a group, or prerequisites; leave them out"}
	case len(e.Payload) > pawl.MaxGroupCallback:
		return &pawl.InvalidError{Field: "callback", Reason: fmt.Sprintf(
			"its payload has %d bytes, at most %d are allowed; pass a reference to the data", len(e.Payload), pawl.MaxGroupCallback)}
	}
	return nil
}

// Check implements [driver.Mutation].
func (m *making) Check(ops driver.Ops) error {
	row, err := driver.ReadGroup(ops, m.name)
	now := ops.Now()
	switch {
	case err != nil:
		return err
	case row != nil && row.Made && !expired(row, now):
		return fmt.Errorf("group %q: %w: it exists already", m.name, pawl.ErrConflict)
	case row == nil || row.Made:
		row = new(driver.GroupRow)
	}
	row.Made, row.Created, row.Retain = true, now.UnixNano(), int64(m.retain)
	for which, e := range m.callbacks {
		if e != nil {
			row.Fired[which] = driver.Fired{Waits: true, Job: e.ID}
		}
	}
	m.row, m.expired = row, m.expired[:0]
	if err := m.look(ops, m.name, now); err != nil {
		return err
	}
	return m.look(ops, "", now) // names often ascend, so the first ones are the oldest
}

// look finds groups whose retention has ended, among those after a name.
func (m *making) look(r driver.Reader, after string, now time.Time) error {
	looked := 0
	return driver.EachGroup(r, after, func(name string, row *driver.GroupRow, damage error) bool {
		if damage == nil && name != m.name && expired(row, now) {
			m.expired = append(m.expired, name)
		}
		looked++
		return looked < expirePortion
	})
}

// expired reports whether the retention of a group has ended. A group of the same name may then be
// made, so no member may be left that a retry could count.
func expired(row *driver.GroupRow, now time.Time) bool {
	return row.Made && row.HasEnded() && row.Dead == 0 && row.Ended != 0 && now.UnixNano()-row.Ended >= row.Retain
}

// Apply implements [driver.Mutation].
func (m *making) Apply(w driver.Writer) error {
	for _, name := range m.expired {
		if err := driver.DeleteGroup(w, name); err != nil {
			return err
		}
	}
	if err := driver.DeleteGroup(w, m.name); err != nil { // the callbacks of an expired group
		return err
	}
	for which, e := range m.callbacks {
		if e == nil {
			continue
		}
		if err := driver.PutCallback(w, m.name, which, e); err != nil {
			return err
		}
	}
	return driver.PutGroup(w, m.name, m.row)
}

// closing is the mutation that closes a group.
type closing struct {
	name string

	row  *driver.GroupRow // set by Check
	ends driver.Ending
}

// Check implements [driver.Mutation].
func (m *closing) Check(ops driver.Ops) (err error) {
	if m.row, err = driver.ReadGroup(ops, m.name); err != nil {
		return err
	}
	if m.row == nil || !m.row.Made {
		return driver.NoGroup(m.name)
	}
	m.row.Closed = true
	m.ends, err = driver.EndGroup(ops, m.name, m.row, ops.Now())
	for _, e := range m.ends.Due {
		if err != nil {
			break
		}
		if state, look := ops.State(e.ID); look != nil || state != "" {
			err = look
			continue
		}
		_, err = ops.Enqueue(e)
	}
	return err
}

// Apply implements [driver.Mutation].
func (m *closing) Apply(w driver.Writer) error {
	return errors.Join(m.ends.Apply(w), driver.PutGroup(w, m.name, m.row))
}
