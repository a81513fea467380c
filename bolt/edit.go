package bolt

import (
	"context"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Edit replaces the payload of a waiting or dead job, in one transaction. A dead job becomes ready, as by
// [Queue.Retry]. The job keeps its ID and its history, and a header names the old payload; see [driver.EditsOf].
//
// It returns [pawl.ErrNotFound]; [pawl.ErrNotEligible] for a job that is in another state, is signed, or does not match
// the condition; [pawl.ErrConflict] in the cases of Retry; [pawl.ErrPayloadTooLarge]; and a [*pawl.InvalidError] if the
// headers have no room for that header.
func (q *Queue) Edit(ctx context.Context, id pawl.ID, payload []byte, when pawl.Condition) error {
	return q.scheduler.intake.do(ctx, &edit{id: id, payload: payload, when: when, most: q.opts.MaxPayload}, len(payload))
}

// edit is the operation that replaces the payload of a job.
type edit struct {
	id      pawl.ID
	payload []byte
	when    pawl.Condition
	most    int // bytes of a payload

	job     stored
	at      place
	headers map[string]string // of the edited job
}

func (op *edit) check(t *txn) (err error) {
	if op.job, op.at, err = t.find(op.id); err != nil {
		return err
	}
	own, whole := *op.job.Envelope, op.job // complete changes the envelope
	whole.Envelope = &own
	e, err := t.complete(whole, op.at, driver.PartPayload)
	if err == nil {
		err = driver.CheckEdit(e, op.payload, op.most)
	}
	if err == nil && op.at.state == pawl.Dead {
		_, _, err = t.decide(&pawl.Change{Verb: pawl.VerbRetry, If: op.when}, op.id)
	} else if err == nil {
		err = t.meets(op.when, op.job, op.at)
	}
	if err == nil {
		err = driver.Edit(e, op.payload, t.now)
		op.headers = e.Headers
	}
	return err
}

// apply stores the new payload where the old one was, in the record or apart from it. It keeps the recent failures in
// front of the record. So the row of a waiting job stays correct, and the job keeps its turn.
func (op *edit) apply(t *txn) {
	replace := func(j *stored) {
		j.Headers = op.headers
		if j.apart == 0 {
			j.Payload = op.payload
			return
		}
		j.apart = len(op.payload)
		t.put(t.payloads, op.id[:], seal(op.id[:], append(make([]byte, 0, j.apart+sealWidth), op.payload...)))
	}
	j := op.job
	replace(&j)
	t.emit(pawl.Event{Type: pawl.EventEdited, Job: j.Envelope})
	if op.at.state == pawl.Dead {
		t.revive(j, op.at, false)
		return
	}
	value := t.jobs.Get(op.id[:])
	_, record, err := cutRecent(op.id, value)
	if err != nil {
		t.fail(err)
		return
	}
	before := stored{}
	if before.Envelope, before.apart, err = driver.ParseRecord(record); err != nil {
		t.fail(err)
		return
	}
	replace(&before)
	front := append([]byte(nil), value[:len(value)-len(record)]...)
	t.put(t.jobs, op.id[:], append(front, driver.AppendRecord(nil, before.Envelope, before.apart)...))
}
