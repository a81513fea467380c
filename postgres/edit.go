package postgres

import (
	"context"

	"github.com/gopawl/pawl"
)

// sqlSetPayloads replaces payloads of jobs. The records have the lengths of the payloads.
const sqlSetPayloads = `UPDATE pawl.job j SET payload = t.payload FROM unnest($1::uuid[], $2::bytea[]) AS t(id, payload) WHERE j.id = t.id`

// Edit replaces the payload of a job that waits or is dead, in one transaction. A dead job becomes ready,
// as by [Queue.Retry]. The job keeps its ID and its history, and a header names the old payload; see
// driver.EditsOf.
//
// It returns [pawl.ErrNotFound]; [pawl.ErrNotEligible] for a job that is in another state, is signed, or does not match
// the condition; [pawl.ErrConflict] in the cases of Retry; [pawl.ErrPayloadTooLarge]; and a [*pawl.InvalidError] if the
// headers have no room for that header.
func (q *Queue) Edit(ctx context.Context, id pawl.ID, payload []byte, when pawl.Condition) error {
	c := change{Change: pawl.Change{Verb: pawl.VerbRetry, If: when}, ids: []pawl.ID{id}, body: true}
	return q.submit(ctx, &edit{c, payload, q.opts.MaxPayload})
}

// edit is a call of Edit.
type edit struct {
	change
	payload []byte
	most    int // bytes of a payload
}

func (op *edit) Bytes() int { return len(op.payload) }

// apply leaves the job in its place, unless it is dead. The headers of its record name the old payload.
func (op *edit) apply(t *txn) error {
	if err := t.complement(&op.change); err != nil {
		return err
	}
	id := op.ids[0]
	if err := t.Edit(id, op.payload, op.If, op.most); err != nil {
		return err
	}
	j := t.Get(id)
	j.payload, j.edited = len(op.payload), true
	t.touch(j)
	return nil
}
