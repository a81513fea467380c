package bolt

import (
	"bytes"
	"time"

	"github.com/gopawl/pawl"
)

// mendBelongings sees to it that the deadline and the keys of a job have their rows.
func (s *salvor) mendBelongings(t *txn, j stored, p place) {
	waits := p.state == pawl.Ready || p.state == pawl.Delayed || p.state == pawl.Parked
	if waits && !j.Deadline.IsZero() {
		if key := deadlineKey(nil, j.Envelope); t.expiry.Get(key) == nil {
			t.put(t.expiry, key, seal(key, nil))
		}
	}
	if j.UniqueKey != "" && j.BlockedBy(p.state) {
		key := uniqueKey(nil, p.queue, j.Envelope)
		if t.unique.Get(key) == nil || s.uniqueAgain[string(key)] { // the last of several, by their IDs
			s.uniqueAgain[string(key)] = true
			t.takeUnique(j)
		}
	}
	if p.state != pawl.Leased || j.IdempotencyKey == "" {
		return
	}
	effect := effectKey(nil, j.Envelope)
	switch row, _ := t.effect(effect); row.holder {
	case j.ID:
	case pawl.ID{}:
		t.holdEffect(effect, j.ID)
	default: // another leased job has it
		t.unplace(j, p)
		t.placeReady(j)
	}
}

// mendUnique removes the unique keys that lead to no job which has them. What they should
// lead to is seen to when the jobs are looked at.
func (s *salvor) mendUnique() error {
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

// mendKeys looks at what leads to jobs by their idempotency keys and deadlines, and at what
// is done.
func (s *salvor) mendKeys() error {
	if err := s.eachKey(bucketExpiry, nil, s.mendExpiry); err != nil {
		return err
	}
	return s.eachKey(bucketEffects, nil, s.mendEffect)
}

// mendExpiry removes the deadline of a job that has none of that time, and takes from the
// end of an effect whose row is lost until when it is done.
func (s *salvor) mendExpiry(t *txn, b *table, key []byte) {
	what := key[timeWidth+1:]
	if key[timeWidth] == endsEffect {
		if row, err := t.effect(what); err == nil && s.hurtAny(bucketEffects) && row.done.Before(timeAt(key)) {
			row.done = timeAt(key)
			t.putEffect(what, row)
		}
		return
	}
	if j, err := t.record(pawl.ID(what)); err != nil || !bytes.Equal(key, deadlineKey(nil, j.Envelope)) {
		t.delete(b, key)
		s.lost(bucketExpiry)
	}
}

// mendEffect takes a key from a job that is not leased, and sees to it that what is done is
// done for as long as it was meant to be, and not for ever.
func (s *salvor) mendEffect(t *txn, b *table, key []byte) {
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
