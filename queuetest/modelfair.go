package queuetest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// The model takes the tags of jobs from the queue, since the contract leaves open when the queue forgets
// the last tag of a key that has no more jobs. It checks that a job has a tag while it is ready or leased,
// that it keeps it, and that a new tag comes after the front and after the other jobs of its key. A fetch
// must follow the tags.

// modelTag is a priority of a queue, or of a key of it.
type modelTag struct {
	queue, key string
	priority   int8
}

func (m *model) anyFair() bool {
	for _, l := range m.limits {
		if l.Fair {
			return true
		}
	}
	return false
}

// takeTags takes the tags of jobs that became ready since the last call.
func (m *model) takeTags(jobs []*pawl.Envelope) error {
	jobs = slices.SortedFunc(slices.Values(jobs), func(a, b *pawl.Envelope) int { return cmp.Compare(a.FairTag, b.FairTag) })
	before := maps.Clone(m.lasts)
	for _, e := range jobs {
		j := m.find(e.ID)
		if j == nil {
			continue // which compare reports
		}
		if has := m.limits[j.Queue].Fair && (j.State == pawl.Ready || j.State == pawl.Leased); has != (e.FairTag != 0) {
			return fmt.Errorf("job %s is %s, and has the tag %d", j.ID, j.State, e.FairTag)
		}
		if e.FairTag == j.FairTag {
			continue
		}
		if j.FairTag != 0 {
			return fmt.Errorf("job %s, %s, changed its tag from %d to %d", j.ID, j.State, j.FairTag, e.FairTag)
		}
		front, last := modelTag{e.Queue, "", e.Priority}, modelTag{e.Queue, "key " + e.Key, e.Priority}
		if _, begun := m.fronts[front]; !begun {
			m.fronts[front] = e.FairTag - 2*mostJobs*driver.FairStep // others may have come and gone before it
		}
		if e.FairTag <= m.fronts[front] {
			return fmt.Errorf("job %s has the tag %d, and the front is %d", j.ID, e.FairTag, m.fronts[front])
		}
		for _, other := range m.jobs {
			// A job that its idempotency key blocks lets the others of its key pass.
			if other.Queue == e.Queue && other.Key == e.Key && other.Priority == e.Priority && e.Key != "" && other.IdempotencyKey == "" &&
				other.FairTag >= e.FairTag && other.FairTag <= before[last] {
				return fmt.Errorf("job %s has the tag %d, and job %s, which was there before, has %d", j.ID, e.FairTag, other.ID, other.FairTag)
			}
		}
		j.FairTag, m.lasts[last] = e.FairTag, max(m.lasts[last], e.FairTag)
	}
	return nil
}

// startFair moves the front past a job that starts.
func (m *model) startFair(j *modelJob) {
	if j.FairTag != 0 {
		front := modelTag{j.Queue, "", j.Priority}
		m.fronts[front] = driver.NextFront(m.fronts[front], j.FairTag)
	}
}
