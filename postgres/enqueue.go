package postgres

import (
	"context"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/core"
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
	size  int             // bytes of the payloads
	names bool            // a job has an ID, a unique key, or a prerequisite
	keyed map[string]bool // the queues of jobs with keys
	done  []pawl.Enqueued // set if the transaction may have been committed
}

func newEnqueue(jobs []*pawl.Envelope) *enqueue {
	op := &enqueue{jobs: jobs}
	for _, e := range jobs {
		op.size += len(e.Payload)
		if e.Key != "" {
			if op.keyed == nil {
				op.keyed = make(map[string]bool)
			}
			op.keyed[withQueue(e).Queue] = true
		}
		op.names = op.names || !e.ID.IsZero() || e.UniqueKey != "" || driver.Waits(e)
	}
	return op
}

func (op *enqueue) Bytes() int { return op.size }

func (op *enqueue) needs(n *needs) {
	for _, e := range op.jobs {
		n.newJob(e)
	}
}

// withQueue returns an envelope with its queue filled in.
func withQueue(e *pawl.Envelope) *pawl.Envelope {
	if e.Queue != "" {
		return e
	}
	c := *e
	c.Queue = pawl.DefaultQueue
	return &c
}

func (op *enqueue) apply(t *txn) error {
	batch, err := t.Admit(op.jobs)
	if err == nil {
		err = t.fits(batch)
	}
	if err != nil {
		return err
	}
	t.StoreAll(batch)
	t.results = append(t.results, func() { op.done = core.Results(batch) })
	return nil
}
