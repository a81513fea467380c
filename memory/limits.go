package memory

import (
	"math"

	"github.com/gopawl/pawl"
)

// The limits of a queue. A job that is at one stays in its list, and a fetch passes it over.

// occupy adds n to the leases of a job's key.
func (l *line) occupy(j *job, n int) {
	if j.Key == "" {
		return
	}
	if l.leased[j.Key] += n; l.leased[j.Key] == 0 {
		delete(l.leased, j.Key)
	}
}

// room is how many more jobs with the key of a job may be leased.
func (l *line) room(j *job) int {
	if j.Key == "" || l.limits.RunningPerKey == 0 {
		return math.MaxInt
	}
	return max(0, l.limits.RunningPerKey-l.leased[j.Key])
}

// unblocked are the ready jobs of a queue that have room for their key, and whose effect no other
// job is about to have.
func (q *Queue) unblocked(l *line) (jobs []*job) {
	before := make(map[string]int)
	for _, j := range l.ready.jobs {
		if q.isRunning(j) || before[j.Key] >= l.room(j) {
			continue
		}
		before[j.Key]++
		jobs = append(jobs, j)
	}
	return jobs
}

// countsOf counts the jobs of a queue.
func (q *Queue) countsOf(l *line) pawl.Counts {
	c := l.counts
	c.Blocked = c.Ready - len(q.unblocked(l))
	return c
}
