package bolt

import (
	"bytes"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// repairBelongings ensures that the deadline and the keys of a job have their rows. A completed job does not hold its key.
func (s *salvor) repairBelongings(t *txn, j stored, p place) {
	if p.state == pawl.Completed && j.HoldsKey {
		j.HoldsKey = false
		t.rewrite(&j)
	}
	waits := p.state == pawl.Ready || p.state == pawl.Delayed
	if waits && !j.Deadline.IsZero() {
		if key := deadlineKey(nil, j.Envelope); t.expiry.Get(key) == nil {
			t.put(t.expiry, key, seal(key, nil))
		}
	}
	s.repairUniqueOf(t, j, p)
	if p.state != pawl.Leased || j.IdempotencyKey == "" {
		return
	}
	effect := effectKey(nil, j.Envelope)
	switch row, _ := t.effect(effect); row.holder {
	case j.ID:
	case pawl.ID{}:
		t.holdEffect(effect, j.ID)
	default: // another leased job holds it
		t.unplace(j, p)
		t.placeReady(j)
	}
}

// repairUniqueOf ensures that the unique key of a job leads to a job with that key. Even a job that blocks
// no other job now gets the key, since it may block one in its next state. If the row of a key is lost and
// several jobs have the key, a job that blocks others gets it, and among several such jobs the last by ID.
func (s *salvor) repairUniqueOf(t *txn, j stored, p place) {
	blocks := driver.BlockedBy(j.Envelope, p.state)
	ended := p.state == pawl.Dead || p.state == pawl.Completed
	if j.UniqueKey == "" || ended && !blocks {
		return
	}
	key := uniqueKey(nil, p.line.queue, j.Envelope)
	if t.unique.Get(key) == nil || blocks && s.uniqueAgain[string(key)] {
		s.uniqueAgain[string(key)] = true
		t.takeUnique(j)
	}
}

// repairUnique removes the unique keys that lead to no job with that key. repairUniqueOf later
// repairs where they should lead.
func (s *salvor) repairUnique() error {
	return s.eachKey(bucketUnique, nil, func(t *txn, b *table, key []byte) {
		id, err := unseal(key, b.Get(key), len(pawl.ID{}))
		if err == nil {
			var j stored
			if j, err = t.record(pawl.ID(id)); err == nil {
				n, _, _ := t.number(j.Queue)
				if j.UniqueKey != "" && bytes.Equal(key, uniqueKey(nil, n, j.Envelope)) {
					return
				}
			}
		}
		t.delete(b, key)
		s.lost(bucketUnique)
	})
}

// repairKeys repairs the rows that lead to jobs by idempotency key and deadline, the effects that are
// done, and the wakes of keys. It follows repairLimits, which removes keys.
func (s *salvor) repairKeys() error {
	if err := s.eachKey(bucketExpiry, nil, s.repairExpiry); err != nil {
		return err
	}
	return s.eachKey(bucketEffects, nil, s.repairEffect)
}

// repairExpiry removes deadlines that no job has. It copies the time until which an effect
// counts as done from its row of expiry to the row of the effect, which is lost or older. If
// two rows contradict each other, it follows the row that prevents a second attempt.
func (s *salvor) repairExpiry(t *txn, b *table, key []byte) {
	what := key[timeWidth+1:]
	switch key[timeWidth] {
	case endsRest:
		if row, err := parseKeyRow(what, t.keys.Get(what)); err != nil || !row.wake.Equal(timeAt(key)) {
			t.delete(b, key)
		}
		return
	case endsEffect:
		row, err := t.effect(what)
		if t.fail(err); err != nil || !row.done.Before(timeAt(key)) {
			return
		}
		if t.effects.Get(what) != nil || !s.hurtAny(bucketEffects) { // otherwise its loss is counted
			s.lost(bucketEffects)
		}
		row.done = timeAt(key)
		t.putEffect(what, row)
		return
	}
	if j, err := t.record(pawl.ID(what)); err != nil || !bytes.Equal(key, deadlineKey(nil, j.Envelope)) {
		t.delete(b, key)
		s.lost(bucketExpiry)
	}
}

// repairEffect removes the holder of an effect if that job is not leased. It ensures that an effect counts as done for
// as long as intended, and not forever.
func (s *salvor) repairEffect(t *txn, b *table, key []byte) {
	was, err := parseEffectRow(key, b.Get(key))
	if err != nil {
		t.fail(err)
		return
	}
	row := was
	if j, err := t.record(row.holder); err != nil || t.leased.Get(row.holder[:]) == nil || !bytes.Equal(effectKey(nil, j.Envelope), key) {
		row.holder = pawl.ID{}
	}
	if row.holder != was.holder {
		t.putEffect(key, row)
	}
	if row.done != (time.Time{}) {
		if end := effectEndKey(nil, row.done, key); t.expiry.Get(end) == nil {
			t.put(t.expiry, end, seal(end, nil))
		}
	}
}
