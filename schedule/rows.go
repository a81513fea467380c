package schedule

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/workflow"
)

// The tables of docs/internals/format.md. The row of a schedule owns its history.
var (
	space         = driver.NewSpace("pawl.schedule")
	tableRows     = space.Table("schedules")
	tableHistory  = space.Table("history")
	tableDue      = space.Index("due")
	tableBuffered = space.Index("buffered")
)

// row is the row of one schedule. Times are nanoseconds since 1970, and 0 is none.
type row struct {
	//lint:ignore U1000 msgpack reads its tag
	_msgpack struct{} `msgpack:",as_array"`

	Group    string // group of the program that defines it; "" if an operator does
	Terms    Terms  // as defined
	Override *Terms // terms that an operator has set instead
	Action   action
	Created  int64
	Retired  int64  // since when the program does not define it
	Broken   string // why its times cannot be computed
	Paused   *pause

	Last int64 // every tick up to here is decided
	Next int64 // the first tick after Last
	Due  int64 // when Next is decided; 0 while the schedule is paused, retired, or broken

	Alive    []pawl.ID  // its latest jobs that had not ended at the last decision
	Buffered []buffered // ticks that wait for the end of these jobs
	Entries  uint64     // the number of its newest entry in the history
	Tail     *entry     // that entry, if the next decision can join it
	Missed   int        // ticks since the last one that fired
	Counts   Counts
	Changes  uint64 // how often the row was written
}

// action is what a tick does. It has a job or a run.
type action struct {
	//lint:ignore U1000 msgpack reads its tag
	_msgpack struct{} `msgpack:",as_array"`

	Job []byte // a record of package driver
	Run *workflow.Template
}

type pause struct {
	//lint:ignore U1000 msgpack reads its tag
	_msgpack struct{} `msgpack:",as_array"`

	Since int64
	Note  string
}

// buffered is a tick that waits.
type buffered struct {
	//lint:ignore U1000 msgpack reads its tag
	_msgpack struct{} `msgpack:",as_array"`

	Nominal int64
	Entry   uint64 // in the history
}

// entry is a row of the history.
type entry struct {
	//lint:ignore U1000 msgpack reads its tag
	_msgpack struct{} `msgpack:",as_array"`

	Decision Decision
	First    int64 // nominal times
	Last     int64
	Ticks    int
	At       int64
	Job      pawl.ID
	Why      string
	Manual   bool
}

// terms returns the terms in force.
func (r *row) terms() *Terms {
	if r.Override != nil {
		return r.Override
	}
	return &r.Terms
}

// active reports whether the schedule decides its ticks.
func (r *row) active() bool { return r.Paused == nil && r.Retired == 0 && r.Broken == "" }

// waits reports whether buffered ticks may fire.
func (r *row) waits() bool { return r.active() && len(r.Buffered) > 0 }

// clone returns a copy that can change without the original.
func (r *row) clone() *row {
	c := *r
	c.Alive, c.Buffered = slices.Clone(r.Alive), slices.Clone(r.Buffered)
	if r.Tail != nil {
		tail := *r.Tail
		c.Tail = &tail
	}
	if r.Override != nil {
		override := *r.Override
		c.Override = &override
	}
	return &c
}

// plan computes the next tick.
func (r *row) plan(name string) {
	r.Next, r.Due, r.Broken = 0, 0, ""
	c, err := r.terms().calendar(name)
	if err != nil {
		r.Broken = err.Error()
		return
	}
	if r.Next = c.next(r.Last); r.Next != 0 && r.active() {
		r.Due = c.actual(r.Next)
	}
}

// nameKey is the key of a schedule. No such key is a prefix of another.
func nameKey(name string) []byte { return append([]byte(name), 0) }

func nameOf(key []byte) string { return string(key[:max(len(key)-1, 0)]) }

func entryKey(name string, n uint64) []byte {
	return binary.BigEndian.AppendUint64(nameKey(name), n)
}

// dueKey sorts by time.
func dueKey(due int64, name string) []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, 9+len(name)), uint64(due)^1<<63)
	return append(b, nameKey(name)...)
}

func parseDueKey(key []byte) (due int64, name string, err error) {
	if len(key) < 10 {
		return 0, "", fmt.Errorf("%w: key %x of table %s", pawl.ErrCorrupt, key, tableDue)
	}
	return int64(binary.BigEndian.Uint64(key) ^ 1<<63), nameOf(key[8:]), nil
}

// read returns the row of a schedule, nil if there is none.
func read(r driver.Reader, name string) (*row, error) {
	key := nameKey(name)
	value, err := r.Get(tableRows, key)
	if value == nil || err != nil {
		return nil, present(err)
	}
	return decode(key, value)
}

func decode(key, value []byte) (*row, error) {
	content, err := driver.Unseal(tableRows, key, value)
	if err != nil {
		return nil, err
	}
	r := new(row)
	if err := driver.DecodePayload(content, r); err != nil {
		return nil, fmt.Errorf("schedule %q: %w: %v", nameOf(key), pawl.ErrCorrupt, err)
	}
	return r, nil
}

// present ignores a missing table, for reads.
func present(err error) error {
	if errors.Is(err, driver.ErrNoTable) {
		return nil
	}
	return err
}

// each calls fn for all schedules in the order of their names, beginning after the name after.
// Fn returns false to end.
func each(r driver.Reader, after string, fn func(name string, r *row, damage error) bool) error {
	var span driver.Span
	if after != "" {
		span.From = driver.After(nameKey(after))
	}
	return present(r.Scan(tableRows, span, func(key, value []byte) bool {
		r, err := decode(key, value)
		return fn(nameOf(key), r, err)
	}))
}

func put(w driver.Writer, t *driver.Table, key []byte, v any) error {
	content, err := driver.EncodePayload(v)
	if err != nil {
		return err
	}
	return w.Put(t, key, driver.Seal(t, key, content))
}

func timeOf(nanos int64) time.Time {
	if nanos == 0 {
		return time.Time{}
	}
	return time.Unix(0, nanos)
}

// parseEntry reads an entry of the history, and returns its number.
func parseEntry(key, value []byte, e *entry) (n uint64, err error) {
	content, err := driver.Unseal(tableHistory, key, value)
	if err != nil {
		return 0, err
	}
	if len(key) < 9 {
		return 0, fmt.Errorf("%w: key %x of table %s", pawl.ErrCorrupt, key, tableHistory)
	}
	if err := driver.DecodePayload(content, e); err != nil {
		return 0, fmt.Errorf("history of schedule %q: %w: %v", nameOf(key[:len(key)-8]), pawl.ErrCorrupt, err)
	}
	return binary.BigEndian.Uint64(key[len(key)-8:]), nil
}
