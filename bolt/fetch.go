package bolt

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// fetched is a chosen job, copied out of the transaction but not decoded.
type fetched struct {
	choice
	grant   grant
	record  []byte
	payload []byte  // a payload that is stored apart from the record
	effect  []byte  // key of its effect; nil if it has none
	limit   *keyRow // row of its key; nil if nothing limits the key
	parsed  stored  // the record, if the admission of the job read it
}

// cost returns how many starts the job counts as. A job whose record was not read has no cost of its
// own, so it counts as one.
func (job *fetched) cost() int {
	if job.parsed.Envelope == nil {
		return 1
	}
	return job.parsed.Cost
}

// admit copies a ready job out of the transaction if it may be leased. Otherwise moved is true,
// and the job went where it belongs: a damaged or overdue job became dead, a job whose effect
// is done was removed, and a job whose effect is leased or whose key has no room was blocked.
func (s *selection) admit(c choice) (_ *fetched, moved bool) {
	job := &fetched{choice: c}
	if err := s.t.copyOut(job); err != nil {
		s.t.abandonDamagedReady(c, err)
		return nil, true
	}
	if c.row.flags&(hasMore|hasKey) == 0 {
		return job, false
	}
	j, err := parseStored(c.row.id, job.record)
	if err != nil {
		s.t.abandonDamagedReady(c, err)
		return nil, true
	}
	job.parsed = j
	at := place{pawl.Ready, s.t.ready, c.key, c.line()}
	if overdue(j.Envelope, s.t.now) {
		s.t.unplace(j, at)
		s.t.overdue(j)
		return nil, true
	}
	if s.blocks(job, j, at) {
		return nil, true
	}
	return job, false
}

// blocks reports whether the keys of a job keep it from being leased. If they do, blocks moves the
// job where it belongs.
func (s *selection) blocks(job *fetched, j stored, at place) bool {
	c := job.choice
	if j.IdempotencyKey != "" {
		job.effect = effectKey(nil, j.Envelope)
		effect, err := s.t.effect(job.effect)
		if err != nil {
			s.t.damagedRow(err)
		}
		switch {
		case effect.done.After(s.t.now):
			s.t.skip(j, at)
			return true
		case effect.holder != pawl.ID{}:
			s.t.block(c, job.effect)
			s.t.leaveReady(s.t.left(c.line().queue, j.Key), c.key)
			return true
		}
	}
	var counted bool
	job.limit, counted = s.t.keyOf(c.line().queue, j.Key)
	if counted && s.t.ready.Get(c.key) == nil {
		return true // the recount moved it
	}
	if job.limit != nil && !s.t.mayRun(job.limit, j.Envelope) {
		s.t.blockKey(c, job.limit, j)
		return true
	}
	return false
}

// copyOut copies the record and the payload of a job.
func (t *txn) copyOut(job *fetched) (err error) {
	id := job.row.id
	record := t.jobs.Get(id[:])
	if record == nil {
		return fmt.Errorf("job %s: %w: its record is missing", id, pawl.ErrCorrupt)
	}
	_, last, err := cutRecent(id, record)
	if err == nil {
		err = driver.CheckRecord(last)
	}
	if err != nil {
		return fmt.Errorf("job %s: %w", id, err)
	}
	if job.row.flags&hasPayload != 0 {
		if job.payload, err = t.payload(id); err != nil {
			return err
		}
	}
	job.record = bytes.Clone(record)
	return nil
}

// grantJobs leases the chosen jobs. It deletes their rows from the last to the first, because bbolt
// moves all rows of a page that follow a deleted one.
func (t *txn) grantJobs(jobs []*fetched, leases *leaseTable) {
	for _, job := range slices.Backward(jobs) {
		t.delete(t.ready, job.key)
	}
	for _, job := range jobs {
		g := &job.grant
		g.id, g.token, g.class = job.row.id, leases.newToken(), job.lane.class()
		t.grantLease(job)
		if job.effect != nil {
			t.holdEffect(job.effect, g.id)
		}
		if job.limit != nil {
			t.leaseKey(job.limit, job.key, job.cost())
		}
		if own := t.ownRow(queueOf(job.key)); own != nil {
			own.start(t.now, job.cost())
		}
		t.passFront(job.key)
		t.granted = append(t.granted, g)
		job.key, job.effect, job.limit = nil, nil, nil // they belong to the transaction
	}
}

// lease returns the lease of a job that was leased at a time, for a duration.
func (job *fetched) lease(at time.Time, length time.Duration) (*pawl.Lease, error) {
	j, err := job.parsed, error(nil)
	if j.Envelope == nil {
		j, err = parseStored(job.row.id, job.record)
	}
	e := j.Envelope
	switch {
	case err != nil:
		return nil, err
	case j.apart != len(job.payload):
		return nil, fmt.Errorf("job %s: %w: its record does not fit its row", job.row.id, pawl.ErrCorrupt)
	case j.apart != 0:
		e.Payload = job.payload
	}
	e.HoldsKey, e.FairTag = false, 0
	job.record, job.payload, job.parsed = nil, nil, stored{} // the lease table keeps the job, and these may be large
	return &pawl.Lease{Envelope: e, Token: job.grant.token, Cancelled: &job.grant.cancelled, Length: length, Expires: at.Add(length)}, nil
}
