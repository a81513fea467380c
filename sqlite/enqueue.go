package sqlite

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
	op := &enqueue{jobs: envelopes}
	err := q.submit(ctx, op)
	return op.done, err
}

// enqueue is a call of Enqueue.
type enqueue struct {
	jobs []*pawl.Envelope
	done []pawl.Enqueued // set if the transaction may have been committed
}

func (op *enqueue) Bytes() (n int) {
	for _, e := range op.jobs {
		n += len(e.Payload)
	}
	return n
}

func (op *enqueue) apply(t *txn) error {
	batch, err := t.Admit(op.jobs)
	if err != nil {
		return err
	}
	t.StoreAll(batch)
	t.results = append(t.results, func() { op.done = core.Results(batch) })
	return nil
}

// sqlHolder reads the job that holds a unique key.
const sqlHolder = `SELECT ` + columns + ` FROM pawl_job WHERE seq = (SELECT seq FROM pawl_uniq WHERE name = ?)`

// HolderOf returns the job that holds the unique key of e.
func (t *txn) HolderOf(e *pawl.Envelope) *job { return t.read(sqlHolder, []byte(core.UniqueName(e))) }
