package bolt

import (
	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// The transaction that moves a member of a group also counts the move; see [driver.Groups]. A job
// that is in no group costs nothing.

// member counts the move of a job, if it is a member of a group.
func (t *txn) member(e *pawl.Envelope, from, to driver.Standing) {
	if e.Group != "" && !t.groupless {
		t.groups.Move(t.others(), e.Group, from, to)
		t.changed = true
	}
}

// joins counts a new job. If the new job replaces another one, old and was are that job and its
// state. A success that is replaced still counts.
func (t *txn) joins(e, old *pawl.Envelope, was pawl.State) {
	if was == pawl.Completed {
		old = nil
	}
	if old != nil && old.Group == e.Group {
		t.member(e, driver.StandingOf(was), driver.MemberPending)
		return
	}
	if old != nil {
		t.member(old, driver.StandingOf(was), driver.MemberRemoved)
	}
	t.member(e, driver.NoMember, driver.MemberPending)
}

// admit refuses new jobs that their groups do not accept.
func (t *txn) admit(jobs []newJob) error {
	var joining map[string]int
	for i := range jobs {
		j := &jobs[i]
		if j.Group == "" || j.existing || j.dropped {
			continue
		}
		if j.replaces {
			if old, err := t.record(j.ID); err == nil && old.Group == j.Group && old.Completed.IsZero() {
				continue
			}
		}
		if joining == nil {
			joining = make(map[string]int)
		}
		joining[j.Group]++
	}
	for name, n := range joining {
		if err := t.groups.Admit(t.others(), name, n); err != nil {
			return err
		}
	}
	return nil
}

// finishGroups writes the rows of the groups whose members moved, and stores the callbacks that are
// due.
func (t *txn) finishGroups() {
	if t.groups.Any() {
		t.fail(t.groups.Flush(t.others(), t.now, t.fire, t.damagedRow))
	}
}

// fire stores a callback, unless the queue already has a job with its ID.
func (t *txn) fire(e *pawl.Envelope) {
	if t.jobs.Get(e.ID[:]) != nil {
		return
	}
	e.Seq = t.seq.Add(1)
	n := &newJob{Envelope: *e, ready: !e.NotBefore.After(t.now)}
	n.encode()
	t.insert(n, pawl.EventEnqueued)
}
