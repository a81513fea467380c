package postgres

import (
	"context"
	"fmt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Enqueue implements [pawl.Queue].
func (q *Queue) Enqueue(ctx context.Context, envelopes ...*pawl.Envelope) error {
	if len(envelopes) == 0 {
		return nil
	}
	if _, err := driver.CheckBatch(envelopes, q.opts.MaxPayload); err != nil {
		return err
	}
	return q.submit(ctx, enqueue(envelopes))
}

// enqueue is a call of Enqueue.
type enqueue []*pawl.Envelope

func (op enqueue) needs(n *needs) {
	for _, e := range op {
		if !e.ID.IsZero() && !e.Existing {
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

func (op enqueue) apply(t *txn) error {
	batch, err := t.admit(op)
	if err != nil {
		return err
	}
	for i, n := range batch {
		switch {
		case n.Existing:
			n.result = &n.Envelope
		case n.dropped:
			// A later job of the batch replaces it. It has a sequence like any other.
			n.result = &n.Envelope
			if n.Seq, err = t.nextSequence(); err != nil {
				return err
			}
		default:
			if err := n.number(t, batch); err != nil {
				return err
			}
			n.result = t.result(t.store(&n.Envelope), &n.Envelope)
		}
		t.results = append(t.results, func() { *op[i] = *n.result })
	}
	return nil
}

// newcomer is a job of a batch: as it is to be stored, but for its sequence, or as it came, with
// Existing set.
type newcomer struct {
	pawl.Envelope
	state   pawl.State     // where it will be
	dropped bool           // a later one of the batch replaces it
	result  *pawl.Envelope // what the caller gets
}

// number gives a job of a batch that has a dropped job its sequence now, so that the sequences of
// the batch grow.
func (n *newcomer) number(t *txn, batch []*newcomer) (err error) {
	for _, other := range batch {
		if other.dropped {
			n.Seq, err = t.nextSequence()
			return err
		}
	}
	n.Seq = 0
	return nil
}

// nextSequence takes a sequence.
func (t *txn) nextSequence() (seq uint64, err error) {
	err = t.tx.QueryRow(t.ctx, t.q.sql(sqlSequence)).Scan(&seq)
	return seq, err
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
			if t.get(n.ID) != nil {
				return nil, fmt.Errorf("job %s: %w: the queue holds a job of this ID already", n.ID, pawl.ErrConflict)
			}
		case n.OnConflict == pawl.UseExisting:
			n.Envelope = *given
			n.ID, n.Existing = id, true
		case n.OnConflict == pawl.Reject || state == pawl.Leased:
			return nil, fmt.Errorf("unique key %q: %w: job %s, which is %s, has it", n.UniqueKey, pawl.ErrConflict, id, state)
		default: // it takes the place of the holder
			n.ID = id
			if before != nil {
				before.dropped = true
			}
		}
		if n.UniqueKey != "" && !n.Existing {
			earlier[uniqueName(&n.Envelope)] = n
		}
		batch[i] = n
	}
	return batch, nil
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
func (t *txn) store(e *pawl.Envelope) *job {
	event := pawl.EventEnqueued
	if old := t.get(e.ID); old != nil {
		event = pawl.EventReplaced
		t.remove(old)
	}
	j := &job{Envelope: *e}
	j.OnConflict = pawl.UseExisting // which says something of an enqueue, not of a job
	t.jobs[j.ID] = j
	t.hold(j)
	t.place(j)
	t.emit(j, pawl.Event{Type: event})
	return j
}
