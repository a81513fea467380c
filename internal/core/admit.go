package core

import (
	"fmt"
	"maps"
	"slices"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Newcomer is a job of a batch as it will be stored, except for its sequence.
type Newcomer struct {
	pawl.Envelope
	Existing bool       // another job has its unique key, and ID is that of the other job
	dropped  bool       // a later job of the batch replaces it
	replaces bool       // a stored job may have its ID
	state    pawl.State // where it will be
}

// Results returns what happened to each job of a batch.
func Results(batch []*Newcomer) []pawl.Enqueued {
	done := make([]pawl.Enqueued, len(batch))
	for i, n := range batch {
		done[i] = pawl.Enqueued{ID: n.ID, Existing: n.Existing}
	}
	return done
}

// Admit decides what happens to each job of a batch. It changes nothing yet.
func (m *Moves[J]) Admit(envelopes []*pawl.Envelope) ([]*Newcomer, error) {
	var none J
	batch := make([]*Newcomer, len(envelopes))
	all := make([]Newcomer, len(envelopes)) // one allocation for all
	earlier := make(map[string]*Newcomer)   // holders of unique keys within the batch
	for i, given := range envelopes {
		n := &all[i]
		n.Envelope, n.state = *given, pawl.Delayed
		switch ready := driver.Accept(&n.Envelope, m.Now); {
		case m.IsLate(&n.Envelope):
			n.state = pawl.Dead // it becomes dead when it is stored
		case ready:
			n.state = pawl.Ready
		}
		id, state := m.holder(&n.Envelope)
		var before *Newcomer
		if n.UniqueKey != "" {
			if before = earlier[UniqueName(&n.Envelope)]; before != nil {
				id, state = before.ID, before.state
			}
		}
		switch {
		case state == "" || !driver.BlockedBy(&n.Envelope, state):
			if !given.ID.IsZero() && m.txn.Get(n.ID) != none {
				return nil, fmt.Errorf("job %s: %w: the queue holds a job of this ID already", n.ID, pawl.ErrConflict)
			}
		case n.OnConflict == pawl.UseExisting:
			n.ID, n.Existing = id, true
		case n.OnConflict == pawl.Reject || state == pawl.Leased:
			return nil, fmt.Errorf("unique key %q: %w: job %s, which is %s, has it", n.UniqueKey, pawl.ErrConflict, id, state)
		default: // it replaces the holder
			n.ID, n.replaces = id, true
			if before != nil {
				before.dropped = true
			}
		}
		if err := m.admitCost(n); err != nil {
			return nil, err
		}
		if n.UniqueKey != "" && !n.Existing {
			earlier[UniqueName(&n.Envelope)] = n
		}
		batch[i] = n
	}
	if err := m.admitWaiting(batch); err != nil {
		return nil, err
	}
	return batch, m.admitMembers(batch)
}

// Backlog sums up how many more jobs wait once an admitted batch is stored.
func (m *Moves[J]) Backlog(batch []*Newcomer, limits func(queue string) pawl.Limits) driver.Backlog {
	var none J
	b := driver.NewBacklog(limits)
	for _, n := range batch {
		if n.Existing || n.dropped {
			continue
		}
		if driver.IsWaiting(n.state) {
			b.Add(&n.Envelope, 1)
		}
		if !n.replaces {
			continue
		}
		if old := m.txn.Get(n.ID); old != none && driver.IsWaiting(old.Base().State) {
			b.Add(old.Base(), -1)
		}
	}
	return b
}

// admitCost refuses a new job that costs more than a rate of its queue allows.
func (m *Moves[J]) admitCost(n *Newcomer) error {
	if n.Cost <= 1 || n.Existing {
		return nil
	}
	return driver.CheckCost(m.txn.Limits(n.Queue), &n.Envelope)
}

// admitWaiting refuses new jobs that wait for jobs that do not exist.
func (m *Moves[J]) admitWaiting(batch []*Newcomer) error {
	if !slices.ContainsFunc(batch, func(n *Newcomer) bool { return driver.Waits(&n.Envelope) }) {
		return nil
	}
	var none J
	earlier := make(map[pawl.ID]bool)
	for _, n := range batch {
		if !n.Existing && !n.dropped {
			known := func(id pawl.ID) bool { return earlier[id] || m.txn.Get(id) != none }
			if err := driver.CheckPrerequisites(&n.Envelope, known, m.txn.Awaited); err != nil {
				return err
			}
		}
		earlier[n.ID] = true
	}
	return nil
}

// admitMembers refuses new jobs that their groups do not accept.
func (m *Moves[J]) admitMembers(batch []*Newcomer) error {
	var none J
	joining := make(map[string]int)
	for _, n := range batch {
		if n.Group == "" || n.Existing || n.dropped {
			continue
		}
		old := none
		if n.replaces {
			old = m.txn.Get(n.ID)
		}
		if old == none || old.Base().Group != n.Group || old.Base().State == pawl.Completed {
			joining[n.Group]++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(joining)) {
		if err := m.txn.Join(name, joining[name]); err != nil {
			return err
		}
	}
	return nil
}

// joins counts a new job, which may replace another one. A success that is replaced still counts.
func (m *Moves[J]) joins(e, old *pawl.Envelope) {
	if old != nil && old.State == pawl.Completed {
		old = nil
	}
	if old != nil && old.Group == e.Group {
		m.member(e, driver.StandingOf(old.State), driver.MemberPending)
		return
	}
	if old != nil {
		m.member(old, driver.StandingOf(old.State), driver.MemberRemoved)
	}
	m.member(e, driver.NoMember, driver.MemberPending)
}

// holder returns the job that holds the unique key of e, with its state, or "" if there is none. A
// state that has ended by the clock counts as ended, even if the job has not moved yet.
func (m *Moves[J]) holder(e *pawl.Envelope) (pawl.ID, pawl.State) {
	if e.UniqueKey == "" {
		return pawl.ID{}, ""
	}
	var none J
	found := m.txn.HolderOf(e)
	if found == none {
		return pawl.ID{}, ""
	}
	j := found.Base()
	waits := j.State == pawl.Ready || j.State == pawl.Delayed
	switch {
	case waits && m.IsLate(j):
		return j.ID, pawl.Dead
	case j.State == pawl.Delayed && !j.NotBefore.After(m.Now):
		return j.ID, pawl.Ready
	}
	return j.ID, j.State
}

// StoreAll stores the jobs of a batch that are new.
func (m *Moves[J]) StoreAll(batch []*Newcomer) {
	for _, n := range batch {
		if !n.Existing && !n.dropped {
			m.Store(&n.Envelope, n.replaces)
		}
	}
}

// Store stores an admitted job. If replaces is set, it replaces the stored job with its ID.
func (m *Moves[J]) Store(e *pawl.Envelope, replaces bool) {
	var old, none J
	event := pawl.EventEnqueued
	if replaces {
		old = m.txn.Get(e.ID)
	}
	if old != none {
		event = pawl.EventReplaced
		m.joins(e, old.Base())
		m.txn.Take(old)
		m.txn.Remove(old)
	} else {
		m.joins(e, nil)
	}
	j := m.txn.New(e)
	j.Base().OnConflict = pawl.UseExisting // an option of the enqueue, not of the job
	m.txn.Number(j)
	m.txn.Hold(j)
	m.txn.Await(j)
	m.place(j)
	m.txn.Emit(j, pawl.Event{Type: event})
}

// Arrive returns the jobs of a restore, unless one of them cannot be stored. It changes nothing yet.
func (m *Moves[J]) Arrive(jobs []*pawl.Envelope) ([]J, error) {
	var none J
	arrived := make([]J, len(jobs))
	for i, given := range jobs {
		j := m.txn.New(given)
		e := j.Base()
		driver.Arrive(e, m.Now)
		if m.txn.Get(e.ID) != none {
			return nil, fmt.Errorf("restore: job %d, %s: %w: the queue holds a job of this ID already", i, e.ID, pawl.ErrConflict)
		}
		if id, state := m.holder(e); m.takes(e, state) && m.blocks(e) {
			return nil, fmt.Errorf("restore: job %d, %s: %w: job %s, which is %s, has its unique key %q", i, e.ID, pawl.ErrConflict, id, state, e.UniqueKey)
		}
		arrived[i] = j
	}
	return arrived, nil
}

// takes reports whether a job in the given state that holds the unique key of e keeps out other jobs
// with that key.
func (m *Moves[J]) takes(e *pawl.Envelope, state pawl.State) bool {
	return state != "" && driver.BlockedBy(e, state)
}

// blocks reports whether an arriving job keeps out other jobs with its unique key.
func (m *Moves[J]) blocks(e *pawl.Envelope) bool {
	return driver.BlockedBy(e, driver.Arrival(e, m.Now))
}

// Restore stores a job that has arrived.
func (m *Moves[J]) Restore(j J) {
	e := j.Base()
	m.txn.Number(j)
	if _, state := m.holder(e); !m.takes(e, state) || m.blocks(e) {
		m.txn.Hold(j)
	}
	state := e.State
	e.State = ""
	m.txn.Await(j)
	m.txn.Emit(j, pawl.Event{Type: pawl.EventEnqueued})
	switch state {
	case pawl.Delayed:
		m.place(j)
	case pawl.Leased:
		m.MakeDead(j, pawl.ReasonCancelled, pawl.Event{Cause: "it was cancelled, and restored without its run"})
	default:
		m.txn.Put(j, state)
	}
	switch state {
	case pawl.Completed:
		m.txn.FallsDue(e.Completed.Add(e.Retain))
		m.txn.Ended(e.ID, state)
	case pawl.Dead:
		m.txn.Ended(e.ID, state)
	}
}
