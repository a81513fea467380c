package core

import (
	"fmt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Changes carries out a change on each job, unless it is dry. It returns one result for each ID, in order.
func (m *Moves[J]) Changes(c *pawl.Change, ids []pawl.ID, dry bool) []error {
	errs := make([]error, len(ids))
	claims := make(map[string]pawl.ID) // the unique keys that jobs of a dry run would take
	for i, id := range ids {
		j, err := m.Decide(c, id, claims)
		switch errs[i] = err; {
		case err != nil:
		case !dry:
			m.Change(c, j)
		case c.Verb == pawl.VerbRetry && j.Base().UniqueKey != "":
			claims[UniqueName(j.Base())] = id
		}
	}
	return errs
}

// Decide reports why a change does not apply to a job.
func (m *Moves[J]) Decide(c *pawl.Change, id pawl.ID, claims map[string]pawl.ID) (none J, err error) {
	j := m.txn.Get(id)
	if j == none {
		return none, fmt.Errorf("job %s: %w", id, pawl.ErrNotFound)
	}
	e := j.Base()
	if err := driver.Refuses(c, id, e.State, e.HoldsKey); err != nil {
		return none, err
	}
	if c.If != nil && !m.txn.Meets(c.If, j) {
		return none, driver.NotEligible(id, "it does not match any more")
	}
	if c.Verb != pawl.VerbRetry {
		return j, nil
	}
	if m.IsLate(e) {
		return none, fmt.Errorf("job %s: %w: its deadline %v has passed, it would die again at once", id, pawl.ErrConflict, e.Deadline)
	}
	holder, state := m.holder(e)
	if claimer, claimed := claims[UniqueName(e)]; claimed {
		holder, state = claimer, pawl.Ready
	}
	if state != "" && holder != id && driver.BlockedBy(e, state) {
		return none, fmt.Errorf("job %s: %w: job %s, which is %s, has its unique key", id, pawl.ErrConflict, holder, state)
	}
	return j, nil
}

// Change carries out a change that applies to a job.
func (m *Moves[J]) Change(c *pawl.Change, j J) {
	e := j.Base()
	switch c.Verb {
	case pawl.VerbRetry:
		m.revive(j, c.KeepAttempts)
	case pawl.VerbRunNow:
		m.runNow(j)
	case pawl.VerbReleaseKey:
		m.txn.Take(j)
		e.HoldsKey = false
		m.txn.Put(j, pawl.Dead)
	case pawl.VerbDelete:
		if e.State == pawl.Dead {
			m.member(e, driver.MemberDead, driver.MemberRemoved)
		}
		m.txn.Take(j)
		m.txn.Remove(j)
		m.txn.Emit(j, pawl.Event{Type: pawl.EventDeleted})
	case pawl.VerbCancel:
		switch {
		case e.State != pawl.Leased:
			m.txn.Take(j)
			m.MakeDead(j, pawl.ReasonCancelled, pawl.Event{Cause: "it was cancelled"})
		case !e.Cancelled:
			e.Cancelled = true
			m.txn.Mark(j)
			m.txn.Emit(j, pawl.Event{Type: pawl.EventCancelled})
		}
	}
}

// Edit replaces the payload of a waiting or dead job. The engine stores the new payload and headers from
// the envelope of the job.
func (m *Moves[J]) Edit(id pawl.ID, payload []byte, when pawl.Condition, maxPayload int) error {
	var none J
	j := m.txn.Get(id)
	if j == none {
		return fmt.Errorf("job %s: %w", id, pawl.ErrNotFound)
	}
	e := j.Base()
	if err := driver.CheckEdit(e, payload, maxPayload); err != nil {
		return err
	}
	if e.State == pawl.Dead {
		if _, err := m.Decide(&pawl.Change{Verb: pawl.VerbRetry, If: when}, id, nil); err != nil {
			return err
		}
	} else if when != nil && !m.txn.Meets(when, j) {
		return driver.NotEligible(id, "it does not match any more")
	}
	if err := driver.Edit(e, payload, m.Now); err != nil {
		return err
	}
	m.txn.Emit(j, pawl.Event{Type: pawl.EventEdited})
	if e.State == pawl.Dead {
		m.revive(j, false)
	}
	return nil
}

// Transfer replaces the dead job that has the ID of an envelope. It does not change the envelope.
func (m *Moves[J]) Transfer(given *pawl.Envelope, when pawl.Condition) error {
	var none J
	switch j := m.txn.Get(given.ID); {
	case j == none:
		return fmt.Errorf("job %s: %w", given.ID, pawl.ErrNotFound)
	case j.Base().State != pawl.Dead:
		return driver.NotEligible(given.ID, "it is %s, not dead", j.Base().State)
	case when != nil && !m.txn.Meets(when, j):
		return driver.NotEligible(given.ID, "it does not match any more")
	}
	n := &Newcomer{Envelope: *given, replaces: true}
	driver.Accept(&n.Envelope, m.Now)
	if err := m.admitCost(n); err != nil {
		return err
	}
	if err := m.admitWaiting([]*Newcomer{n}); err != nil {
		return err
	}
	if err := m.admitMembers([]*Newcomer{n}); err != nil {
		return err
	}
	m.Store(&n.Envelope, true)
	return nil
}
