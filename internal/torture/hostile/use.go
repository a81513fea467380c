package hostile

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/torture/oracle"
	"github.com/gopawl/pawl/internal/withid"
)

// use opens a file for writing and works on it.
func (t *trial) use(path string) {
	var q *bolt.Queue
	t.do("Open", func() (err error) {
		q, err = bolt.Open(path, options())
		return refused(err)
	})
	if q == nil {
		return
	}
	t.do("Fetch", func() error { return t.work(q) })
	t.do("Enqueue", func() error { return answered(withid.Enqueue(t.ctx, q, oracle.JobOf(jobID(t.rand.Uint64(), 1)))) })
	if t.rand.IntN(2) == 0 {
		t.administer(q)
	}
	t.look(q, t.asGiven)
	t.steer(q)
	if t.rand.IntN(8) == 0 {
		t.copies(q)
	}
	t.do("Close", func() error { return answered(q.Close()) })
	t.do("OpenReader of a file that was worked on", func() error {
		r, err := bolt.OpenReader(path)
		if err == nil {
			return r.Close()
		}
		return refused(err)
	})
}

// work fetches jobs and settles them in every way.
func (t *trial) work(q *bolt.Queue) error {
	for range 2 {
		leases, err := q.Fetch(t.ctx, pawl.Request{Queues: oracle.Queues, Max: 8, Wait: pawl.WaitNot})
		if err := answered(err); err != nil {
			return err
		}
		for n, l := range leases {
			if err := t.asGiven(l.Envelope); err != nil {
				return err
			}
			if err := answered(settle(t.ctx, q, l, n)); err != nil {
				return err
			}
		}
	}
	return nil
}

// operation is an operation on a job or a run. Lists of operations are slices, so a seed
// does the same in every run.
type operation struct {
	name string
	run  func(pawl.ID) error
}

// administer does the operations of operators on single jobs.
func (t *trial) administer(q *bolt.Queue) {
	for _, o := range []operation{
		{"Retry", func(id pawl.ID) error { return q.Retry(t.ctx, id, true) }},
		{"Cancel", func(id pawl.ID) error { return q.Cancel(t.ctx, id) }},
		{"Delete", func(id pawl.ID) error { return q.Delete(t.ctx, id) }},
		{"Pause", func(pawl.ID) error { return q.Pause(t.ctx, "a") }},
		{"Resume", func(pawl.ID) error { return q.Resume(t.ctx, "b") }},
		{"Reap", func(pawl.ID) error { _, err := q.Reap(t.ctx); return err }},
	} {
		id := t.anyID()
		t.do(o.name, func() error { return answered(o.run(id)) })
	}
}

// jobsOf lists jobs.
type jobsOf interface {
	Jobs(context.Context, pawl.Filter) iter.Seq2[*pawl.Envelope, error]
}

// mostListed bounds a list. No file has that many jobs, so a longer list is endless.
const mostListed = 20_000

func (t *trial) list(q jobsOf, f pawl.Filter, judge func(*pawl.Envelope, error) error) error {
	n := 0
	for e, err := range q.Jobs(t.ctx, f) {
		if n++; n > mostListed {
			return fmt.Errorf("it has no end: %d jobs so far", n)
		}
		if err := judge(e, err); err != nil {
			return err
		}
		if err == nil && f.State != "" && e.State != f.State {
			return fmt.Errorf("silently wrong: job %s is %s in a list of jobs that are %s", e.ID, e.State, f.State)
		}
	}
	return nil
}

// asStored requires that a job equals the job of the sound file, unless checksums were
// forged.
func (t *trial) asStored(e *pawl.Envelope) error {
	if t.forged {
		return nil
	}
	want := t.jobs[e.ID]
	switch {
	case want == nil:
		return fmt.Errorf("silently wrong: there never was a job %s", e.ID)
	case !bytes.Equal(driver.AppendRecord(nil, e, 0), driver.AppendRecord(nil, want, 0)):
		return fmt.Errorf("silently wrong: job %s is %+v, it was %+v", e.ID, e, want)
	case e.State != want.State:
		return fmt.Errorf("silently wrong: job %s is %s, it was %s", e.ID, e.State, want.State)
	case !slices.EqualFunc(e.History, want.History, sameFailure):
		return fmt.Errorf("silently wrong: the history of job %s is %v, it was %v", e.ID, e.History, want.History)
	}
	return nil
}

func sameFailure(a, b pawl.Failure) bool {
	return a.Attempt == b.Attempt && a.Error == b.Error && a.At.Equal(b.At)
}

// asGiven compares the fields that never change during the life of a job. The content of a
// job of this process follows from its ID.
func (t *trial) asGiven(e *pawl.Envelope) error {
	if t.forged {
		return nil
	}
	if e.Death != nil && e.Death.Reason == pawl.ReasonCorrupt {
		return nil // its damage is reported
	}
	want := t.jobs[e.ID]
	if want == nil {
		if isRun(e) && len(t.runs) > 0 {
			return nil // a child of a run, or a fork of it
		}
		if err := oracle.SameJob(e); err != nil {
			return fmt.Errorf("silently wrong: %w", err)
		}
		return nil
	}
	if !bytes.Equal(e.Payload, want.Payload) || e.Kind != want.Kind || e.Origin != want.Origin || e.Queue != want.Queue ||
		!e.Created.Equal(want.Created) || e.IdempotencyKey != want.IdempotencyKey || e.UniqueKey != want.UniqueKey ||
		e.Priority != want.Priority || e.Retain != want.Retain || !e.Deadline.Equal(want.Deadline) {
		return fmt.Errorf("silently wrong: job %s is %+v, it was given as %+v", e.ID, e, want)
	}
	return nil
}
