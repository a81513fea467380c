package memory

import (
	"context"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/core"
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
		batch, err := q.moves.Admit(envelopes)
		if err == nil {
			b := q.moves.Backlog(batch, q.limitsOf)
			err = b.Check(q.backlog)
		}
		if err != nil {
			return err
		}
		q.moves.StoreAll(batch)
		done = core.Results(batch)
		return nil
	})
	return done, err
}
