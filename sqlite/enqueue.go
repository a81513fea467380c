package sqlite

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
	op := &enqueue{jobs: envelopes}
	err := q.submit(ctx, op)
	return op.done, err
}

// enqueue is a call of Enqueue.
type enqueue struct {
	jobs []*pawl.Envelope
	done []pawl.Enqueued // set if the transaction may have been committed
}

func (op *enqueue) bytes() (n int) {
	for _, e := range op.jobs {
		n += len(e.Payload)
	}
	return n
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
			t.store(&n.Envelope, n.replaces)
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
	pawl.Envelope
	state    pawl.State // where it will be
	existing bool       // another job has its unique key, and ID is that of the other job
	dropped  bool       // a later job of the batch replaces it
	replaces bool       // a stored job may have its ID
}

// admit decides for each job of a batch what becomes of it, and changes nothing yet.
func (t *txn) admit(envelopes []*pawl.Envelope) ([]*newcomer, error) {
	batch := make([]*newcomer, len(envelopes))
	earlier := make(map[string]*newcomer) // the holders of keys within the batch
	for i, given := range envelopes {
		n := &newcomer{Envelope: *given, state: pawl.Delayed}
		switch ready := driver.Accept(&n.Envelope, t.now); {
		case !n.Deadline.IsZero() && !n.Deadline.After(t.now):
			n.state = pawl.Dead // as soon as it is stored
		case ready:
			n.state = pawl.Ready
		}
		id, state := t.holder(&n.Envelope)
		before := earlier[uniqueName(&n.Envelope)]
		if before != nil {
			id, state = before.ID, before.state
		}
		switch {
		case state == "" || !driver.BlockedBy(&n.Envelope, state):
			if !given.ID.IsZero() && t.get(n.ID) != nil {
				return nil, fmt.Errorf("job %s: %w: the queue holds a job of this ID already", n.ID, pawl.ErrConflict)
			}
		case n.OnConflict == pawl.UseExisting:
			n.ID, n.existing = id, true
		case n.OnConflict == pawl.Reject || state == pawl.Leased:
			return nil, fmt.Errorf("unique key %q: %w: job %s, which is %s, has it", n.UniqueKey, pawl.ErrConflict, id, state)
		default: // it takes the place of the holder
			n.ID, n.replaces = id, true
			if before != nil {
				before.dropped = true
			}
		}
		if n.UniqueKey != "" && !n.existing {
			earlier[uniqueName(&n.Envelope)] = n
		}
		batch[i] = n
	}
	return batch, nil
}

// sqlHolder reads the job that holds a unique key.
const sqlHolder = `SELECT ` + columns + ` FROM pawl_job WHERE seq = (SELECT seq FROM pawl_uniq WHERE name = ?)`

// holder returns the job that holds the unique key of e, with its state, "" for none. A state that
// has ended by the clock counts as ended.
func (t *txn) holder(e *pawl.Envelope) (pawl.ID, pawl.State) {
	if e.UniqueKey == "" {
		return pawl.ID{}, ""
	}
	j := t.read(sqlHolder, []byte(uniqueName(e)))
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

// store takes in a job that was admitted. If it replaces a job, that one has its ID.
func (t *txn) store(e *pawl.Envelope, replaces bool) {
	event := pawl.EventEnqueued
	if replaces {
		if old := t.get(e.ID); old != nil {
			event = pawl.EventReplaced
			t.remove(old)
		}
	}
	j := &job{Envelope: *e}
	j.OnConflict = pawl.UseExisting // which concerns the enqueue, not the job
	t.number(j)
	t.hold(j)
	t.place(j)
	t.emit(j, pawl.Event{Type: event})
}

// number gives a new job its sequence and its line.
func (t *txn) number(j *job) { j.Seq, j.line = uint64(t.next()), t.lineOf(j.Queue, j.Kind) }
