package bolt

import (
	"bytes"
	"fmt"

	"github.com/gopawl/pawl"
)

// repairStates checks each row that says where a job is. A row whose job has lost its record now
// stands for that job. A row that contradicts the record is removed.
func (s *salvor) repairStates() error {
	for _, bucket := range stateBuckets {
		if err := s.eachKey(bucket, nil, s.repairState); err != nil {
			return err
		}
	}
	return nil
}

func (s *salvor) repairState(t *txn, b *table, key []byte) {
	sealed := bytes.Clone(b.Get(key))
	id, ln, _, err := stateRowOf(b, key, sealed)
	if err != nil {
		t.fail(fmt.Errorf("row %x of bucket %s: %w", key, b.name, err))
		return
	}
	j, err := t.record(id)
	if err != nil {
		t.delete(b, key)
		s.makeLostDead(t, id, ln)
		return
	}
	p, err := t.where(j.Envelope)
	if err != nil || p.table != b || !bytes.Equal(p.key, key) || livesOn(j, p.state) {
		t.delete(b, key)
		s.lost(b.name)
		return
	}
	if row := stateRowFor(j, p, sealed); !bytes.Equal(row, sealed) {
		t.put(b, key, row)
		s.hurt[string(b.name)] = true
	}
}

// livesOn reports whether the record of a job says that the job has ended, and its row says that
// it has not. One of the two is older. To be safe, the job does not run again.
func livesOn(j stored, state pawl.State) bool {
	ended := j.Death != nil || !j.Completed.IsZero()
	return ended && state != pawl.Dead && state != pawl.Completed
}

// stateRowFor returns the row that a job must have in its state. Sealed is the row that it has.
func stateRowFor(j stored, p place, sealed []byte) []byte {
	index := indexRow{j.ID, j.flags()}
	switch p.state {
	case pawl.Leased:
		row, _ := parseLeaseRow(p.key, sealed)
		row.line, row.flags, row.lane, row.priority, row.seq = p.line, j.flags(), laneOf(j.Envelope), j.Priority, j.Seq
		if row.key != "" {
			row.key = j.Key
		}
		return seal(p.key, row.append(nil))
	case pawl.Dead, pawl.Completed:
		return seal(p.key, endedRow{index, p.line}.append(nil))
	}
	if bytes.Equal(p.table.name, bucketDelayed) {
		return seal(p.key, delayedRow{index, readyKey(nil, p.line, j.Envelope)}.append(nil, p.key))
	}
	return seal(p.key, index.append(nil))
}

// unknownKind is the kind of a dead job whose record is lost. No handler has it, so such a job
// stays ready if an operator retries it.
const unknownKind = "unknown"

// makeLostDead makes a dead job for a job with a lost record, from its ID and the queue of its
// line if there is one. It keeps a separate payload and the history.
func (s *salvor) makeLostDead(t *txn, id pawl.ID, ln line) {
	name := pawl.DefaultQueue
	if row, err := t.rowOf(ln.queue); err == nil {
		name = row.name
	}
	j := stored{Envelope: &pawl.Envelope{
		ID: id, Seq: s.nextSequence(t), Kind: unknownKind, Origin: name, Queue: name, Created: s.now, NotBefore: s.now,
	}}
	if payload, err := t.payload(id); err == nil {
		j.apart = len(payload)
	}
	c := t.history.Cursor()
	for k, _ := c.Seek(id[:]); bytes.HasPrefix(k, id[:]); k, _ = c.Next() {
		j.Failures = int(historyNumber(k)) + 1
	}
	s.repairHistory(t, j)
	s.makeDead(t, j, "its record is lost: the file was damaged, and this is what is left")
	s.result.NoRecord++
}

// makeDead makes a job without a row dead.
func (s *salvor) makeDead(t *txn, j stored, cause string) {
	t.note(&j, j.Attempt(), pawl.Failure{Error: cause})
	t.makeDead(j, pawl.ReasonCorrupt, run{cause: cause})
}

// repairBlocked unblocks all jobs that wait for an idempotency key, as the next Open would, since
// the holders of the keys may be lost.
func (s *salvor) repairBlocked() error {
	if !s.hurtAny(append(stateBuckets, bucketJobs, bucketEffects)...) {
		return nil
	}
	return s.eachKey(bucketDelayed, allBlocked, func(t *txn, b *table, key []byte) {
		if row, err := parseDelayedRow(key, b.Get(key)); err == nil && key[0] == waitsForKey {
			row.ready = bytes.Clone(row.ready)
			t.promote(key, row)
		}
	})
}
