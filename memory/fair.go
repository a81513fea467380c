package memory

import (
	"maps"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// fair is what a queue knows about its keys if they take turns. Jobs without a key belong to the key "".
type fair struct {
	fronts map[int8]int64 // by priority
	keys   map[string]*fairKey
}

// fairKey is a key whose jobs are ready or leased.
type fairKey struct {
	jobs int
	last map[int8]int64 // the last tag of each priority
}

func newFair() fair { return fair{make(map[int8]int64), make(map[string]*fairKey)} }

// front returns the front of a priority.
func (f *fair) front(priority int8, now time.Time) int64 {
	if at, ok := f.fronts[priority]; ok {
		return at
	}
	return driver.FirstFront(now)
}

// tag gives a job that becomes ready its tag, unless it has kept one.
func (l *line) tag(j *job, now time.Time) {
	if !l.limits.Fair || j.FairTag != 0 {
		return
	}
	k := l.fair.keys[j.Key]
	if k == nil || k.jobs == 0 {
		k = &fairKey{last: make(map[int8]int64)}
		l.fair.keys[j.Key] = k
	}
	front := l.fair.front(j.Priority, now)
	j.FairTag = driver.NextTag(front, k.last[j.Priority], j.Weight)
	l.fair.fronts[j.Priority], k.last[j.Priority] = front, j.FairTag
}

// countTagged counts n more jobs of a key that are ready or leased and have a tag.
func (l *line) countTagged(j *job, n int) {
	if k := l.fair.keys[j.Key]; k != nil && j.FairTag != 0 && (j.State == pawl.Ready || j.State == pawl.Leased) {
		k.jobs += n
	}
}

// startFair moves the front past a job that starts.
func (l *line) startFair(j *job, now time.Time) {
	if j.FairTag == 0 {
		return
	}
	l.fair.fronts[j.Priority] = driver.NextFront(l.fair.front(j.Priority, now), j.FairTag)
	if n := len(l.fair.keys); n >= 1000 && n&(n-1) == 0 {
		maps.DeleteFunc(l.fair.keys, func(_ string, k *fairKey) bool { return k.jobs == 0 })
	}
}

// since returns when a ready job became ready, or its tag in a queue whose keys take turns.
func (j *job) since() time.Time {
	if j.FairTag != 0 {
		return time.Unix(0, j.FairTag)
	}
	return j.NotBefore
}
