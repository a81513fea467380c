package memory

import (
	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Members of groups are counted in the transition that moves them; see [driver.Groups].

// member counts the move of a job, if it is a member of a group.
func (q *Queue) member(e *pawl.Envelope, from, to driver.Standing) {
	if e.Group != "" {
		q.groups.Move(q.snapshot(), e.Group, from, to)
	}
}

// joins counts a new job, which may take the place of another one. A success that is replaced still
// counts.
func (q *Queue) joins(e *pawl.Envelope, old *job) {
	if old != nil && old.State == pawl.Completed {
		old = nil
	}
	if old != nil && old.Group == e.Group {
		q.member(e, driver.StandingOf(old.State), driver.MemberPending)
		return
	}
	if old != nil {
		q.member(&old.Envelope, driver.StandingOf(old.State), driver.MemberRemoved)
	}
	q.member(e, driver.NoMember, driver.MemberPending)
}

// admitMembers refuses new jobs whose groups do not take them.
func (q *Queue) admitMembers(batch []*newcomer) error {
	joining := make(map[string]int)
	for _, n := range batch {
		if n.Group == "" || n.existing || n.dropped {
			continue
		}
		if old := q.jobs[n.ID]; old == nil || old.Group != n.Group || old.State == pawl.Completed {
			joining[n.Group]++
		}
	}
	for name, n := range joining {
		if err := q.groups.Admit(q.snapshot(), name, n); err != nil {
			return err
		}
	}
	return nil
}

// finishGroups stores the counts of the groups whose members moved, and the callbacks that are due.
func (q *Queue) finishGroups() {
	if !q.groups.Any() {
		return
	}
	rs := q.snapshot()
	var due []*pawl.Envelope
	err := q.groups.Flush(rs, q.now, func(e *pawl.Envelope) { due = append(due, e) }, func(error) {})
	if err != nil {
		panic(err) // rows in memory are never damaged
	}
	q.tables = rs.tables
	for _, e := range due {
		if q.jobs[e.ID] != nil {
			continue
		}
		q.seq++
		e.Seq = q.seq
		q.store(e)
	}
}
