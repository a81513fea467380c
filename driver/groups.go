package driver

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/gopawl/pawl"
)

// The tables of groups, in docs/internals/format.md. Any mutation may touch them, since members move
// in the transactions of their jobs.
var (
	groupSpace     = NewSpace("pawl.groups")
	tableGroups    = groupSpace.Index("groups")
	tableCallbacks = groupSpace.Index("callbacks")
)

// Standing is where a member of a group stands. Its group counts it there.
type Standing uint8

// The standings of a member.
const (
	NoMember        Standing = iota
	MemberPending            // it has not ended
	MemberSucceeded          // it was acked, or skipped because its idempotency key was done
	MemberDead               // it is dead
	MemberRemoved            // it is gone without a success
)

// StandingOf returns where a job in the given state stands, if it is a member of a group.
func StandingOf(state pawl.State) Standing {
	switch state {
	case pawl.Dead:
		return MemberDead
	case pawl.Completed:
		return MemberSucceeded
	}
	return MemberPending
}

// GroupRow is what a queue stores about a group: counts of its members, and what became of its callbacks.
type GroupRow struct {
	//lint:ignore U1000 msgpack reads its tag
	_msgpack struct{} `msgpack:",as_array"`

	Total     int
	Pending   int
	Succeeded int
	Dead      int
	Removed   int
	Made      bool // false if a restore stored members before their group
	Closed    bool
	Created   int64 // nanoseconds since 1970
	Ended     int64 // when the last member ended while the group was closed; 0 if it has not
	Retain    int64 // nanoseconds from then
	Fired     [Callbacks]Fired
}

// Fired is what became of a callback of a group: nothing if its job has no ID.
type Fired struct {
	//lint:ignore U1000 msgpack reads its tag
	_msgpack struct{} `msgpack:",as_array"`

	Waits bool    // it has not been enqueued; its envelope is in the table of callbacks
	Job   pawl.ID // of the callback, whether enqueued or not
}

// The callbacks of a group.
const (
	OnDone    = iota // once all members have ended
	OnSuccess        // once all members have succeeded
	Callbacks
)

// HasEnded reports whether the group has ended: it is closed, and no member is pending.
func (r *GroupRow) HasEnded() bool { return r.Closed && r.Pending == 0 }

// Due reports whether a callback must be enqueued now: the group has ended as the callback requires, and the callback
// waits.
func (r *GroupRow) Due(which int) bool {
	return r.Made && r.HasEnded() && r.Fired[which].Waits && (which == OnDone || r.Dead+r.Removed == 0)
}

// count returns the count of a standing.
func (r *GroupRow) count(s Standing) *int {
	return [...]*int{new(int), &r.Pending, &r.Succeeded, &r.Dead, &r.Removed}[s]
}

// DeclareGroup declares that a transaction counts members of a group, for an engine that locks the row of the
// group before it reads it.
func DeclareGroup(n *Needs, name string) { n.Row(tableGroups, groupKey(name)) }

func groupKey(name string) []byte { return append([]byte(name), 0) }

func callbackKey(name string, which int) []byte { return append(groupKey(name), byte(which)) }

// ReadGroup returns the row of a group, nil if there is none.
func ReadGroup(r Reader, name string) (*GroupRow, error) {
	key := groupKey(name)
	value, err := r.Get(tableGroups, key)
	if value == nil || err != nil {
		return nil, presentTable(err)
	}
	return parseGroup(key, value)
}

func parseGroup(key, value []byte) (*GroupRow, error) {
	content, err := Unseal(tableGroups, key, value)
	if err != nil {
		return nil, err
	}
	row := new(GroupRow)
	if err := DecodePayload(content, row); err != nil {
		return nil, fmt.Errorf("group %q: %w: %v", groupName(key), pawl.ErrCorrupt, err)
	}
	return row, nil
}

func groupName(key []byte) string { return string(bytes.TrimSuffix(key, []byte{0})) }

// presentTable ignores a missing table, for reads.
func presentTable(err error) error {
	if errors.Is(err, ErrNoTable) {
		return nil
	}
	return err
}

// EachGroup calls fn for the groups whose names follow after, in the order of their names, until fn returns false. A
// damaged row comes with an error, and without a row.
func EachGroup(r Reader, after string, fn func(name string, row *GroupRow, damage error) bool) error {
	var span Span
	if after != "" {
		span.From = After(groupKey(after))
	}
	return presentTable(r.Scan(tableGroups, span, func(key, value []byte) bool {
		row, err := parseGroup(key, value)
		return fn(groupName(key), row, err)
	}))
}

// PutGroup stores the row of a group.
func PutGroup(w Writer, name string, row *GroupRow) error {
	content, err := EncodePayload(row)
	if err != nil {
		return err
	}
	key := groupKey(name)
	return w.Put(tableGroups, key, Seal(tableGroups, key, content))
}

// PutCallback stores a callback that has not fired.
func PutCallback(w Writer, name string, which int, e *pawl.Envelope) error {
	key := callbackKey(name, which)
	return w.Put(tableCallbacks, key, Seal(tableCallbacks, key, AppendRecord(nil, e, 0)))
}

// ReadCallback returns a callback that has not fired.
func ReadCallback(r Reader, name string, which int) (*pawl.Envelope, error) {
	key := callbackKey(name, which)
	value, err := r.Get(tableCallbacks, key)
	if err == nil && value == nil {
		err = fmt.Errorf("%w: it is missing", pawl.ErrCorrupt)
	}
	var content []byte
	if err == nil {
		content, err = Unseal(tableCallbacks, key, value)
	}
	var e *pawl.Envelope
	if err == nil {
		e, _, err = ParseRecord(bytes.Clone(content))
	}
	if err != nil {
		return nil, fmt.Errorf("callback of group %q: %w", name, err)
	}
	return e, nil
}

// DeleteGroup removes the rows of a group.
func DeleteGroup(w Writer, name string) error {
	err := w.Delete(tableGroups, groupKey(name))
	for which := 0; err == nil && which < Callbacks; which++ {
		err = w.Delete(tableCallbacks, callbackKey(name, which))
	}
	return err
}

// Groups counts the members of groups that move in one transaction. A queue with the ability
// [pawl.Groups] has one for each transaction: it calls Admit before it stores jobs, Move for each move
// of a member, and Flush before it commits, and before a [Mutation] reads rows. The zero value is ready.
type Groups struct {
	touched map[string]*GroupRow // nil for a group without a row, or with a damaged one
	order   []string
	damage  []error
}

// Any reports whether there is something to flush.
func (g *Groups) Any() bool { return len(g.order)+len(g.damage) > 0 }

// row returns the row of a group as the transaction has left it.
func (g *Groups) row(r Reader, name string) *GroupRow {
	if row, known := g.touched[name]; known {
		return row
	}
	row, err := ReadGroup(r, name)
	if err != nil {
		g.damage = append(g.damage, fmt.Errorf("the members of group %q are not counted: %w", name, err))
	}
	if g.touched == nil {
		g.touched = make(map[string]*GroupRow)
	}
	g.touched[name], g.order = row, append(g.order, name)
	return row
}

// Admit returns an error if jobs cannot become members of a group: [pawl.ErrNotFound] if nobody made the group,
// [pawl.ErrConflict] if it has ended or would have too many members.
func (g *Groups) Admit(r Reader, name string, n int) error {
	row := g.row(r, name)
	switch {
	case row == nil:
		return fmt.Errorf("%w: make it before its members", NoGroup(name))
	case row.HasEnded():
		return fmt.Errorf("group %q: %w: it has ended, and takes no more members", name, pawl.ErrConflict)
	case row.Total+n > pawl.MaxGroup:
		return fmt.Errorf("group %q: %w: it would have %d members, at most %d are allowed; split it", name, pawl.ErrConflict, row.Total+n, pawl.MaxGroup)
	}
	return nil
}

// Move counts that a job moved. A group whose row is gone counts nothing.
func (g *Groups) Move(r Reader, name string, from, to Standing) {
	row := g.row(r, name)
	if row == nil || from == to {
		return
	}
	if from == NoMember {
		row.Total++
	} else {
		*row.count(from)--
	}
	*row.count(to)++
}

// Restore counts a member that a restore stores. A group without a row gets one, which fires no
// callback before the group itself is restored.
func (g *Groups) Restore(r Reader, name string, to Standing) {
	if g.row(r, name) == nil && len(g.damage) == 0 {
		g.touched[name] = new(GroupRow)
	}
	g.Move(r, name, NoMember, to)
}

// Flush writes the rows that changed, and calls fire with each callback that is due. The queue stores it like any new
// job, unless it holds a job with that ID. Each callback fires at most once ever, because the same transaction notes
// that it fired. Flush calls skipped for each damaged row.
func (g *Groups) Flush(w Writer, now time.Time, fire func(*pawl.Envelope), skipped func(error)) (err error) {
	for _, name := range g.order {
		row := g.touched[name]
		if row == nil {
			continue
		}
		ends, err := EndGroup(w, name, row, now)
		if err != nil {
			g.damage = append(g.damage, err)
		} else if err := ends.Apply(w); err != nil {
			return err
		}
		for _, e := range ends.Due {
			Accept(e, now)
			fire(e)
		}
		if err = PutGroup(w, name, row); err != nil {
			break
		}
	}
	for _, d := range g.damage {
		skipped(d)
	}
	*g = Groups{}
	return err
}

// Ending is what follows from the end of a group.
type Ending struct {
	Due  []*pawl.Envelope // callbacks to enqueue
	name string
	gone []int // callbacks
}

// EndGroup notes in the row of a group that it has ended, if it has, and returns what follows from that.
func EndGroup(r Reader, name string, row *GroupRow, now time.Time) (e Ending, err error) {
	e.name = name
	switch {
	case !row.HasEnded():
		row.Ended = 0
	case row.Ended == 0:
		row.Ended = now.UnixNano()
	}
	for which := range Callbacks {
		if !row.Due(which) {
			continue
		}
		callback, err := ReadCallback(r, name, which)
		if err != nil {
			return Ending{}, err
		}
		row.Fired[which].Waits = false
		e.Due, e.gone = append(e.Due, callback), append(e.gone, which)
	}
	return e, nil
}

// Apply removes the callbacks that are due.
func (e *Ending) Apply(w Writer) (err error) {
	for _, which := range e.gone {
		if err = w.Delete(tableCallbacks, callbackKey(e.name, which)); err != nil {
			break
		}
	}
	return err
}
