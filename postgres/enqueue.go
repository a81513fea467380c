package postgres

import (
	"context"
	"fmt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Enqueue implements [pawl.Queue].
func (q *Queue) Enqueue(ctx context.Context, envelopes ...*pawl.Envelope) ([]pawl.Enqueued, error) {
	if len(envelopes) == 0 {
		return nil, nil
	}
	if err := driver.SupportsJobs(abilities, envelopes...); err != nil {
		return nil, err
	}
	if _, err := driver.CheckBatch(envelopes, q.opts.MaxPayload); err != nil {
		return nil, err
	}
	op := newEnqueue(envelopes)
	err := q.submit(ctx, op)
	return op.done, err
}

// enqueue is a call of Enqueue.
type enqueue struct {
	jobs  []*pawl.Envelope
	size  int             // of the payloads
	names bool            // a job has an ID or a unique key
	done  []pawl.Enqueued // set if the transaction may have been committed
}

func newEnqueue(jobs []*pawl.Envelope) *enqueue {
	op := &enqueue{jobs: jobs}
	for _, e := range jobs {
		op.size += len(e.Payload)
		op.names = op.names || !e.ID.IsZero() || e.UniqueKey != ""
	}
	return op
}

func (op *enqueue) bytes() int { return op.size }

func (op *enqueue) needs(n *needs) {
	for _, e := range op.jobs {
		n.member(e)
		if !e.ID.IsZero() {
			n.ids = append(n.ids, e.ID)
		}
		if e.UniqueKey != "" {
			n.keys = append(n.keys, []byte(uniqueName(withQueue(e))))
		}
	}
}

// withQueue returns an envelope of which the queue is filled in.
func withQueue(e *pawl.Envelope) *pawl.Envelope {
	if e.Queue != "" {
		return e
	}
	c := *e
	c.Queue = pawl.DefaultQueue
	return &c
}

func (op *enqueue) apply(t *txn) error {
	batch, err := t.admit(op.jobs)
	if err != nil {
		return err
	}
	t.storeAll(batch)
	t.results = append(t.results, func() { op.done = results(batch) })
	return nil
}

// storeAll takes in the jobs of a batch that are new.
func (t *txn) storeAll(batch []*newcomer) {
	for _, n := range batch {
		if !n.existing && !n.dropped {
			n.Seq = 0
			t.store(&n.job)
		}
	}
}

// results returns what became of the jobs of a batch.
func results(batch []*newcomer) []pawl.Enqueued {
	done := make([]pawl.Enqueued, len(batch))
	for i, n := range batch {
		done[i] = pawl.Enqueued{ID: n.ID, Existing: n.existing}
	}
	return done
}

// newcomer is a job of a batch as it is to be stored, but for its sequence.
type newcomer struct {
	job
	state    pawl.State // where it will be
	existing bool       // another job has its unique key, and ID is that of the other job
	dropped  bool       // a later job of the batch replaces it
}

// admit decides for each job of a batch what becomes of it, and changes nothing yet.
func (t *txn) admit(envelopes []*pawl.Envelope) ([]*newcomer, error) {
	batch := make([]*newcomer, len(envelopes))
	earlier := make(map[string]*newcomer) // the holders of keys within the batch
	for i, given := range envelopes {
		n := &newcomer{job: job{Envelope: *given}, state: pawl.Delayed}
		switch ready := driver.Accept(&n.Envelope, t.now); {
		case !n.Deadline.IsZero() && !n.Deadline.After(t.now):
			n.state = pawl.Dead // as soon as it is stored
		case ready:
			n.state = pawl.Ready
		}
		id, state := t.holder(&n.Envelope)
		var before *newcomer
		if n.UniqueKey != "" {
			if before = earlier[uniqueName(&n.Envelope)]; before != nil {
				id, state = before.ID, before.state
			}
		}
		switch {
		case state == "" || !driver.BlockedBy(&n.Envelope, state):
			if t.get(n.ID) != nil {
				return nil, fmt.Errorf("job %s: %w: the queue holds a job of this ID already", n.ID, pawl.ErrConflict)
			}
		case n.OnConflict == pawl.UseExisting:
			n.ID, n.existing = id, true
		case n.OnConflict == pawl.Reject || state == pawl.Leased:
			return nil, fmt.Errorf("unique key %q: %w: job %s, which is %s, has it", n.UniqueKey, pawl.ErrConflict, id, state)
		default: // it takes the place of the holder
			n.ID = id
			if before != nil {
				before.dropped = true
			}
		}
		if n.UniqueKey != "" && !n.existing {
			earlier[uniqueName(&n.Envelope)] = n
		}
		batch[i] = n
	}
	return batch, t.admitMembers(batch)
}

// holder returns the job that holds the unique key of e, with its state, "" for none. A state that
// has ended by the clock counts as ended.
func (t *txn) holder(e *pawl.Envelope) (pawl.ID, pawl.State) {
	if e.UniqueKey == "" {
		return pawl.ID{}, ""
	}
	j := t.get(t.holders[uniqueName(e)])
	if j == nil {
		return pawl.ID{}, ""
	}
	waits := j.State == pawl.Ready || j.State == pawl.Delayed
	switch {
	case waits && t.isLate(j):
		return j.ID, pawl.Dead
	case j.State == pawl.Delayed && !j.NotBefore.After(t.now):
		return j.ID, pawl.Ready
	}
	return j.ID, j.State
}

// store takes in a job that was admitted. A job that has its ID already is the one that it
// replaces.
func (t *txn) store(j *job) {
	event := pawl.EventEnqueued
	old := t.get(j.ID)
	t.joins(&j.Envelope, old)
	if old != nil {
		event = pawl.EventReplaced
		t.remove(old)
	}
	j.OnConflict = pawl.UseExisting // which concerns the enqueue, not the job
	t.jobs[j.ID] = j
	t.hold(j)
	t.place(j)
	t.emit(j, pawl.Event{Type: event})
}
