package memory

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// job is one job in the queue. Its State names the list that it is in.
type job struct {
	pawl.Envelope
	line    *line                // the queue that it is on
	token   uint64               // of its lease, while it is leased
	signal  *driver.Cancellation // to the holder of that lease
	expires time.Time            // when the lease ends, by the monotonic clock
}

// detach copies an envelope with everything that it points to.
func detach(e *pawl.Envelope) *pawl.Envelope {
	e.Payload = bytes.Clone(e.Payload)
	e.Signature = bytes.Clone(e.Signature)
	e.Result = bytes.Clone(e.Result)
	e.Cursor = bytes.Clone(e.Cursor)
	e.After = slices.Clone(e.After)
	e.AfterAny = slices.Clone(e.AfterAny)
	e.UniqueIn = slices.Clone(e.UniqueIn)
	e.Headers = maps.Clone(e.Headers)
	e.History = slices.Clone(e.History)
	if e.Policy != nil {
		policy := *e.Policy
		e.Policy = &policy
	}
	if e.Death != nil {
		death := *e.Death
		e.Death = &death
	}
	return e
}

// copy returns a complete copy of a job, for a caller to keep.
func (j *job) copy() *pawl.Envelope {
	e := j.Envelope
	return detach(&e)
}

// list has jobs in an order. The fields that the order compares must not change
// while a job is in the list.
type list struct {
	compare func(a, b *job) int
	jobs    []*job
}

func (l *list) add(j *job) {
	i, _ := slices.BinarySearchFunc(l.jobs, j, l.compare)
	l.jobs = slices.Insert(l.jobs, i, j)
}

func (l *list) remove(j *job) {
	if l.jobs[0] == j { // this moves no other
		l.jobs[0], l.jobs = nil, l.jobs[1:]
		return
	}
	i, _ := slices.BinarySearchFunc(l.jobs, j, l.compare)
	l.jobs = slices.Delete(l.jobs, i, i+1)
}

// The orders of the lists. All end with the sequence, which no two jobs share.

// byRank is the order in which ready jobs are fetched. NotBefore is the time since
// when a ready job is ready; see [job.since].
func byRank(a, b *job) int {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), a.since().Compare(b.since()), cmp.Compare(a.Seq, b.Seq))
}

func byDue(a, b *job) int {
	return cmp.Or(a.NotBefore.Compare(b.NotBefore), cmp.Compare(a.Seq, b.Seq))
}

func byExpiry(a, b *job) int {
	return cmp.Or(a.expires.Compare(b.expires), cmp.Compare(a.Seq, b.Seq))
}

func byDeath(a, b *job) int {
	return cmp.Or(a.Death.At.Compare(b.Death.At), cmp.Compare(a.Seq, b.Seq))
}

func byRetention(a, b *job) int {
	return cmp.Or(a.retainedUntil().Compare(b.retainedUntil()), cmp.Compare(a.Seq, b.Seq))
}

func byDeadline(a, b *job) int {
	return cmp.Or(a.Deadline.Compare(b.Deadline), cmp.Compare(a.Seq, b.Seq))
}
