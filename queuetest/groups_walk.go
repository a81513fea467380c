package queuetest

import (
	"fmt"
	"math/rand/v2"

	"github.com/gopawl/pawl"
)

// modelGroup is what a walk over the jobs does not show of a group.
type modelGroup struct{ succeeded, removed int }

func (m *model) group(e *pawl.Envelope) *modelGroup {
	g := m.groups[e.Group]
	if g == nil {
		g = new(modelGroup)
		m.groups[e.Group] = g
	}
	return g
}

// replaced counts the members that an enqueue has replaced by jobs that are not in their group. Before are
// the jobs before it.
func (m *model) replaced(before []*modelJob) func() {
	return func() {
		for _, old := range before {
			j := m.find(old.ID)
			if j != nil && j != old && old.State != pawl.Completed && j.Group != old.Group {
				m.group(&old.Envelope).removed++
			}
		}
	}
}

// compareGroups compares the counts of the groups with those of a walk over the jobs.
func (w *walker) compareGroups(jobs []*pawl.Envelope) {
	if abilitiesOf(w.q)&pawl.Groups == 0 {
		return
	}
	for _, name := range walkGroups {
		got := w.group(name)
		pending, dead := membersOf(jobs, name)
		g := w.model.group(&pawl.Envelope{Group: name})
		want := [...]int{pending + dead + g.succeeded + g.removed, pending, g.succeeded, dead, g.removed}
		if is := [...]int{got.Total, got.Pending, got.Succeeded, got.Dead, got.Removed}; is != want {
			w.after(fmt.Errorf("group %s counts %d members, pending, succeeded, dead, removed; a walk %d", name, is, want))
		}
	}
}

// membersOf counts the members of a group that have not succeeded.
func membersOf(jobs []*pawl.Envelope, name string) (pending, dead int) {
	for _, e := range jobs {
		switch {
		case e.Group != name || e.State == pawl.Completed:
		case e.State == pawl.Dead:
			dead++
		default:
			pending++
		}
	}
	return pending, dead
}

// walkGroup takes random steps over a group that is closed at some time.
func (f *fixture) walkGroup(random *rand.Rand) {
	f.makeGroup(withCallbacks("g"))
	total, succeeded, removed := 0, 0, 0
	closed, done, success := false, false, false
	var leases []*pawl.Lease
	for step := range 150 {
		f.enqueueOne(&pawl.Envelope{Kind: "k", Group: "other"}, pawl.ErrNotFound)
		jobs := f.list(pawl.Filter{Group: "g"})
		pending, dead := membersOf(jobs, "g")
		if done = done || closed && pending == 0; closed && pending == 0 && dead+removed == 0 {
			success = true
		}
		when := fmt.Sprint("after step ", step)
		f.groupIs("g", fmt.Sprint(total, pending, succeeded, dead, removed), when)
		f.callbacksAre("g", done, success, when)
		var deadJob, waiting pawl.ID
		for _, e := range jobs {
			switch e.State {
			case pawl.Dead:
				deadJob = e.ID
			case pawl.Ready:
				waiting = e.ID
			}
		}
		switch n := random.IntN(12); {
		case n < 4:
			var want error
			if closed && pending == 0 {
				want = pawl.ErrConflict
			} else {
				total++
			}
			f.enqueueOne(&pawl.Envelope{Kind: "k", Group: "g"}, want)
		case n < 6:
			leases = append(leases, f.fetch(2)...)
		case n < 9 && len(leases) > 0:
			l := leases[0]
			if leases = leases[1:]; random.IntN(3) == 0 {
				f.abandon(l)
			} else {
				f.ack(l)
				succeeded++
			}
		case n == 9 && !deadJob.IsZero():
			f.retry(deadJob, false)
		case n == 10 && !deadJob.IsZero() && random.IntN(2) == 0:
			f.remove(deadJob)
			removed++
		case n == 10 && !waiting.IsZero():
			f.cancel(waiting)
		case n == 11 && step > 40:
			f.closeGroup("g")
			closed = true
		}
	}
}

// enqueueOne enqueues a job that is refused or not.
func (f *fixture) enqueueOne(e *pawl.Envelope, want error) {
	f.Helper()
	if err := f.try(e); want != nil {
		f.is(err, want, "enqueue")
	} else {
		f.ok(err, "enqueue")
	}
}
