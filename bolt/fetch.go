package bolt

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/gopawl/pawl"
)

// fetched is a job as it leaves the transaction: copied, not decoded.
type fetched struct {
	id        pawl.ID
	token     uint64
	cancelled *pawl.Signal
	record    []byte
	payload   []byte // what lies apart from the record
	effect    []byte // the key of its effect, nil when it has none
}

// admit copies a ready job out of the transaction if it may be leased. Moved says that
// it may not, and went where it belongs: a damaged job and one past its deadline to the
// dead letters, one whose effect is done away, one whose effect is leased aside.
func (s *selection) admit(c choice) (_ *fetched, moved bool) {
	job, err := s.t.copyJob(c.row)
	if err != nil {
		s.t.condemnReady(c, err)
		return nil, true
	}
	if c.row.flags&hasMore == 0 {
		return &job, false
	}
	j, err := s.t.record(c.row.id)
	if err != nil {
		s.t.condemnReady(c, err)
		return nil, true
	}
	at := place{pawl.Ready, s.t.ready, c.key, c.queue()}
	if overdue(j.Envelope, s.t.now) {
		s.t.unplace(j, at)
		s.t.overdue(j)
		return nil, true
	}
	if j.IdempotencyKey == "" {
		return &job, false
	}
	job.effect = effectKey(nil, j.Envelope)
	effect, err := s.t.effect(job.effect)
	if err != nil {
		s.t.damagedRow(err)
	}
	switch {
	case effect.done.After(s.t.now):
		s.t.skip(j, at)
		return nil, true
	case effect.holder != pawl.ID{}:
		s.t.putAside(c, job.effect)
		return nil, true
	}
	return &job, false
}

func (t *txn) copyJob(row indexRow) (job fetched, err error) {
	record := t.jobs.Get(row.id[:])
	if record == nil {
		return job, fmt.Errorf("job %s: %w: its record is missing", row.id, pawl.ErrCorrupt)
	}
	if err := pawl.CheckRecord(record); err != nil {
		return job, fmt.Errorf("job %s: %w", row.id, err)
	}
	if row.flags&hasPayload != 0 {
		if job.payload, err = t.payload(row.id); err != nil {
			return job, err
		}
	}
	job.id, job.record = row.id, bytes.Clone(record)
	return job, nil
}

// lend leases the picked jobs.
func (t *txn) lend(chosen []choice, jobs []fetched) {
	for i, p := range chosen {
		job := &jobs[i]
		g := &grant{id: job.id, token: rand.Uint64(), class: p.lane.class()}
		job.token, job.cancelled = g.token, &g.cancelled
		t.grantLease(p.key, p.row, job.token)
		if job.effect != nil {
			t.holdEffect(job.effect, job.id)
		}
		t.granted = append(t.granted, g)
	}
}

// lease makes the lease of a job that was leased at a time, of this length.
func (job *fetched) lease(at time.Time, length time.Duration) (*pawl.Lease, error) {
	e, apart, err := pawl.ParseRecord(job.record)
	switch {
	case err != nil:
		return nil, fmt.Errorf("job %s: %w", job.id, err)
	case e.ID != job.id || apart != len(job.payload):
		return nil, fmt.Errorf("job %s: %w: its record does not fit its row", job.id, pawl.ErrCorrupt)
	case apart != 0:
		e.Payload = job.payload
	}
	return &pawl.Lease{Envelope: e, Token: job.token, Cancelled: job.cancelled, Length: length, Expires: at.Add(length)}, nil
}
