package workflow

import (
	"errors"
	"sync"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// An Append between the calls of a run is counted, as a [Publish] is, in the commit of its item. So it writes
// nothing when the function runs again. An Append in a step stores its item immediately, even if the attempt fails
// later.

// appends is what an attempt of a step has appended.
type appends struct {
	mu    sync.Mutex
	first map[string]uint64 // the number of its first item in each stream
}

// attempting says whether an attempt of the step runs, and so may append. A [StepTx] holds the transaction that an
// append would need.
func (c *call) attempting(works bool) {
	c.x.mu.Lock()
	defer c.x.mu.Unlock()
	c.e.works, c.e.appends = works && c.e.Kind != KindStepTx, nil
}

// append appends an item, which is MessagePack.
func (r *Run) append(name string, value []byte) error {
	e, of := r.s.atWork()
	if e == nil {
		return r.s.append(name, value)
	}
	of.mu.Lock() // other Appends wait for the number of the first item
	defer of.mu.Unlock()
	m := &appendItem{run: r.x.run, name: name, step: stepName(e.Scope, e.Name, e.Occurrence), attempt: of.first[name]}
	if err := r.x.append(m, value); err != nil {
		return err
	}
	if of.first[name] == 0 {
		of.first[name] = m.stream.Last + 1
	}
	return nil
}

// atWork returns the running step of the scope, nil if there is none, and what its attempt has appended.
func (s *scope) atWork() (*entry, *appends) {
	s.x.mu.Lock()
	defer s.x.mu.Unlock()
	for _, e := range [...]*entry{s.current, s.undoing} {
		if e == nil || !e.works {
			continue
		}
		if e.appends == nil {
			e.appends = &appends{first: make(map[string]uint64)}
		}
		return e, e.appends
	}
	return nil, nil
}

// append appends an item between the calls of the scope.
func (s *scope) append(name string, value []byte) error {
	x := s.x
	s.spin()
	x.mu.Lock()
	err := s.mayCall()
	x.mu.Unlock()
	if err != nil {
		return err
	}
	key, n, fresh := s.nextAppend(name)
	if !fresh {
		return nil
	}
	return x.append(&appendItem{run: x.run, name: name, key: key, n: n}, value)
}

// append carries out an append.
func (x *execution) append(m *appendItem, value []byte) (err error) {
	if m.value, err = x.engine.fits("the item", value); err != nil {
		return x.codecStops(err)
	}
	x.mu.Lock()
	if err = x.stopped; err == nil {
		m.checkpoint = checkpoint{x.lease, x.take()} // the item may depend on the backlog
	}
	x.mu.Unlock()
	if err != nil {
		return err
	}
	err = x.mutate(x.writing(), m, m.journal.bytes+len(m.value))
	switch {
	case errors.Is(err, ErrTooMany):
		return err
	case err != nil:
		return x.stop(err)
	}
	x.engine.hub.published(x.run)
	return nil
}

// appendItem is the mutation that appends an item to a stream.
type appendItem struct {
	checkpoint
	run   pawl.ID
	name  string
	value []byte

	step    string // "" for none
	attempt uint64 // the number of the first item of its attempt, 0 if this is the first

	key [countKey]byte
	n   uint64 // position of the call, 0 within a step

	stream streamRow // before this item
	now    time.Time
}

// Declare declares the run and its streams.
func (a *appendItem) Declare(n *driver.Needs) {
	a.checkpoint.Declare(n)
	n.Span(tableStreams, driver.Span{Prefix: a.run[:]})
}

// Check requires the lease and room for the stream.
func (a *appendItem) Check(ops driver.Ops) (err error) {
	if a.stream, err = rowsOf(ops).findStream(a.run, a.name); err != nil {
		return err
	}
	a.now = ops.Now()
	return a.checkpoint.Check(ops)
}

// Apply stores the item and counts the call.
func (a *appendItem) Apply(tx driver.Writer) error {
	if err := a.checkpoint.Apply(tx); err != nil {
		return err
	}
	r := rowsTo(tx)
	if a.n != 0 {
		if err := r.putPublished(a.run, a.key, a.n); err != nil {
			return err
		}
	}
	item := &itemRow{Value: a.value, At: unixNano(a.now), Step: a.step, Attempt: a.attempt}
	if a.step != "" && a.attempt == 0 {
		item.Attempt = a.stream.Last + 1
	}
	return r.putItem(a.run, a.name, a.stream, item)
}

// nextAppend returns the position of a call of Append and whether it is new.
func (s *scope) nextAppend(name string) (key [countKey]byte, n uint64, fresh bool) {
	x := s.x
	x.mu.Lock()
	defer x.mu.Unlock()
	key = callKey('a', x.row.Journal, s.name, name)
	_, n, fresh = s.position(key)
	if s.name == "" {
		x.tail, x.tailPublished = nil, nil // the append has taken effect
	}
	return key, n, fresh
}
