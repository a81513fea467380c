package memory

import (
	"context"
	"fmt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Enqueue implements [pawl.Queue].
func (q *Queue) Enqueue(ctx context.Context, envelopes ...*pawl.Envelope) ([]pawl.Enqueued, error) {
	switch {
	case len(envelopes) == 0:
		return nil, nil
	case q.err != nil:
		return nil, q.err
	}
	if _, err := driver.CheckBatch(envelopes, q.opts.MaxPayload); err != nil {
		return nil, err
	}
	var done []pawl.Enqueued
	err := q.do(ctx, func() error {
		batch, err := q.admit(envelopes)
		if err != nil {
			return err
		}
		q.storeAll(batch)
		done = results(batch)
		return nil
	})
	return done, err
}

// newcomer is a job of a batch as it is to be stored, but for its sequence.
type newcomer struct {
	pawl.Envelope
	state    pawl.State // where it will be
	existing bool       // another job has its unique key, and ID is that of the other job
	dropped  bool       // a later one of the batch replaces it
}

// admit decides for each job of a batch what becomes of it, and changes nothing yet.
func (q *Queue) admit(envelopes []*pawl.Envelope) ([]*newcomer, error) {
	batch := make([]*newcomer, len(envelopes))
	earlier := make(map[unique]*newcomer) // the holders of keys within the batch
	for i, given := range envelopes {
		n := &newcomer{Envelope: *given, state: pawl.Delayed}
		switch ready := driver.Accept(&n.Envelope, q.now); {
		case !n.Deadline.IsZero() && !n.Deadline.After(q.now):
			n.state = pawl.Dead // as soon as it is stored
		case ready:
			n.state = pawl.Ready
		}
		h, taken := q.holderOf(&n.Envelope)
		before := earlier[uniqueOf(&n.Envelope)]
		if before != nil {
			h, taken = holder{before.ID, before.state}, true
		}
		switch {
		case !taken || !driver.BlockedBy(&n.Envelope, h.state):
			if q.jobs[n.ID] != nil {
				return nil, fmt.Errorf("job %s: %w: the queue holds a job of this ID already", n.ID, pawl.ErrConflict)
			}
		case n.OnConflict == pawl.UseExisting:
			n.ID, n.existing = h.id, true
		case n.OnConflict == pawl.Reject || h.state == pawl.Leased:
			return nil, fmt.Errorf("unique key %q: %w: job %s, which is %s, has it", n.UniqueKey, pawl.ErrConflict, h.id, h.state)
		default: // it takes the place of the holder
			n.ID = h.id
			if before != nil {
				before.dropped = true
			}
		}
		if n.UniqueKey != "" && !n.existing {
			earlier[uniqueOf(&n.Envelope)] = n
		}
		batch[i] = n
	}
	return batch, q.admitMembers(batch)
}

// storeAll takes in a batch that was admitted.
func (q *Queue) storeAll(batch []*newcomer) {
	for _, n := range batch {
		if n.existing {
			continue
		}
		q.seq++
		n.Seq = q.seq
		if !n.dropped {
			q.store(&n.Envelope)
		}
	}
}

// results are the answer to the caller of a batch that was admitted.
func results(batch []*newcomer) []pawl.Enqueued {
	done := make([]pawl.Enqueued, len(batch))
	for i, n := range batch {
		done[i] = pawl.Enqueued{ID: n.ID, Existing: n.existing}
	}
	return done
}

// store takes in a job that was admitted. One that has its ID already is the one that
// it replaces.
func (q *Queue) store(e *pawl.Envelope) {
	event := pawl.EventEnqueued
	q.joins(e, q.jobs[e.ID])
	if old := q.jobs[e.ID]; old != nil {
		event = pawl.EventReplaced
		q.take(old)
		q.forget(old)
	}
	j := &job{Envelope: clone(*e), line: q.line(e.Queue)}
	j.Deadline = j.Deadline.Round(0) // without its monotonic part, as is the clock
	j.OnConflict = pawl.UseExisting  // which says something of an enqueue, not of a job
	q.jobs[j.ID] = j
	q.hold(j)
	q.place(j)
	q.emit(j, pawl.Event{Type: event})
}
