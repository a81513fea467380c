package hostile

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/gopawl/pawl"
)

// found is what was found in a file that no process changes.
type found struct {
	counts map[string]pawl.Counts // counts of each queue
	jobs   map[pawl.ID]bool       // listed jobs, and whether they could be read
	cut    bool                   // the list ended with an error
	sound  bool                   // Check found nothing
}

// listed records the next item of a list. No list may have a job twice. A row that does not name its job has no ID.
func (f *found) listed(e *pawl.Envelope, err error) error {
	if e == nil {
		f.cut = true
		return nil
	}
	if _, twice := f.jobs[e.ID]; twice && !e.ID.IsZero() {
		return fmt.Errorf("silently wrong: job %s is listed twice", e.ID)
	}
	f.jobs[e.ID] = err == nil
	return nil
}

// sameJobs checks some jobs. A job must be in the list if it is in the file, damaged or not. A job that the list
// could read must be in the file.
func (t *trial) sameJobs(q looks) error {
	for range 4 {
		id := t.anyID()
		_, err := q.Job(t.ctx, id)
		missing := errors.Is(err, pawl.ErrNotFound)
		if read, listed := t.found.jobs[id]; !t.found.cut && (read && missing || !listed && !missing) {
			return fmt.Errorf("silently wrong: the list has job %s: %t, and the job itself is there: %t", id, listed, !missing)
		}
	}
	return nil
}

func countsOf(s pawl.Stats) map[string]pawl.Counts {
	counts := make(map[string]pawl.Counts)
	for _, q := range s.Queues {
		counts[q.Name] = q.Counts
	}
	return counts
}

// countedIn returns the number of jobs.
func countedIn(counts map[string]pawl.Counts) (jobs int) {
	for _, c := range counts {
		jobs += c.Ready + c.Delayed + c.Leased + c.Dead + c.Completed
	}
	return jobs
}

// whole requires that a file without findings has all jobs and the counts of a sound file that it comes from, unless
// checksums were forged.
func (t *trial) whole() error {
	if t.forged || !t.found.sound {
		return nil
	}
	readable := 0
	for _, ok := range t.found.jobs {
		if ok {
			readable++
		}
	}
	same := func(b *base) bool {
		return slices.Contains(t.sources, b.layout) && readable == len(b.jobs) && maps.Equal(t.found.counts, b.counts)
	}
	if slices.ContainsFunc(t.all, same) {
		return nil
	}
	return fmt.Errorf("silently wrong: Check finds nothing, and it has %d readable jobs and the counts %v, of %d stored jobs", readable, t.found.counts, len(t.jobs))
}
