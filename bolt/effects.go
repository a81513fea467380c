package bolt

import (
	"bytes"
	"fmt"
	"time"

	"github.com/gopawl/pawl"
)

// An idempotency key names an effect. The row of an effect says which leased job holds the key, so
// that no other job with the key runs, and until when the effect counts as done.
//
// A ready job whose key is leased under another job is blocked: it moves to delayed, so that
// fetches do not walk over it repeatedly. When the lease ends, the first job of each lane is
// unblocked. When that job leaves ready without a lease, the next one is unblocked. So while no
// job holds the key, each lane with blocked jobs has one of them in ready. If damage breaks
// this chain, the scheduler unblocks the first job of each lane of every key. Jobs whose key is
// leased are blocked again when a fetch reaches them.

// effect reads the row of a key. It returns a zero row if no job holds the key and the effect is
// not done. It ignores a holder that is no longer leased, which only a damaged record can cause.
func (s *store) effect(key []byte) (row effectRow, err error) {
	sealed := s.effects.Get(key)
	if sealed == nil {
		return row, nil
	}
	if row, err = parseEffectRow(key, sealed); err != nil {
		return row, fmt.Errorf("idempotency key %q: %w", key, err)
	}
	if s.leased.Get(row.holder[:]) == nil {
		row.holder = pawl.ID{}
	}
	return row, nil
}

func (t *txn) putEffect(key []byte, row effectRow) {
	if row == (effectRow{}) {
		t.delete(t.effects, key)
	} else {
		t.put(t.effects, key, seal(key, row.append(nil)))
	}
}

// holdEffect records that a job that is being leased holds the key.
func (t *txn) holdEffect(key []byte, id pawl.ID) {
	row, _ := t.effect(key) // a damaged row is rewritten
	row.holder = id
	t.putEffect(key, row)
}

// freeEffect releases the key of a job whose lease has ended.
func (t *txn) freeEffect(j stored) {
	if j.IdempotencyKey == "" {
		return
	}
	key := effectKey(nil, j.Envelope)
	row, _ := t.effect(key)
	row.holder = pawl.ID{}
	t.putEffect(key, row)
	prefix := heldPrefix(nil, key)
	for from := prefix; from != nil; {
		from = t.unblock(prefix, from)
	}
}

// finishEffect records that the effect of a job has taken place.
func (t *txn) finishEffect(j stored) {
	if j.IdempotencyKey == "" {
		return
	}
	ttl := j.IdempotencyTTL
	if ttl == 0 {
		ttl = pawl.DefaultIdempotencyTTL
	}
	key := effectKey(nil, j.Envelope)
	row, _ := t.effect(key)
	if until := t.now.Add(ttl); until.After(row.done) { // a restore during the lease may have set a later time
		t.doneUntil(key, row, until)
	}
}

// doneUntil marks an effect, whose row is given, as done until a time.
func (t *txn) doneUntil(key []byte, row effectRow, until time.Time) {
	row.done = until
	t.putEffect(key, row)
	end := effectEndKey(nil, until, key)
	t.put(t.expiry, end, seal(end, nil))
}

// block blocks a ready job whose key is leased under another job.
func (t *txn) block(c choice, effect []byte) {
	t.delete(t.ready, c.key)
	key := append(heldPrefix(nil, effect), c.key...)
	t.put(t.delayed, key, seal(key, delayedRow{c.row, c.key}.append(nil, key)))
	t.countBlocked(c.line(), 1)
}

// keyLost handles a job with a damaged record that has left ready or leased. Its flags say that it
// may have keys, but the keys are unknown.
func (t *txn) keyLost(n queueNumber, f flags) {
	t.leftBlocked = t.leftBlocked || f&hasMore != 0
	if f&hasKey != 0 && t.limitsOf(n).PerKey() {
		t.recountKeys(n)
	}
}

// unblock unblocks the first sound blocked job at or after key, if its key has the prefix. It
// returns where the jobs of the next lane begin, or nil if there is no such job.
func (t *txn) unblock(prefix, from []byte) (next []byte) {
	c := t.delayed.Cursor()
	for k, v := c.Seek(from); bytes.HasPrefix(k, prefix); k, v = c.Next() {
		row, err := parseDelayedRow(k, v)
		if err != nil {
			t.damagedRow(fmt.Errorf("row %x of bucket %s: %w", k, bucketDelayed, err))
			continue
		}
		k = bytes.Clone(k)
		t.promote(k, row)
		lane := len(k) - orderWidth
		return append(k[:lane:lane], behindLane...)
	}
	return nil
}

// behindLane, appended to the prefix of a lane, makes a key after all keys of the lane.
var behindLane = bytes.Repeat([]byte{0xff}, orderWidth+1)

// allBlocked is the common prefix of the keys of jobs that an effect blocks, and so the first
// possible such key.
var allBlocked = []byte{waitsForKey}

// searchLeftBlocked unblocks the first job of up to portion lanes after damage may have broken the
// chain of unblocking. If this transaction found such damage, the search starts at the first key,
// and otherwise at from. A nil from means that there is no search to continue. The search passes
// each key once, so it ends even if a fetch blocks its jobs again.
func (t *txn) searchLeftBlocked(from []byte, portion int) {
	if t.leftBlocked {
		from, t.leftBlocked = allBlocked, false
	}
	t.searched = from != nil
	for n := 0; from != nil && n < portion; n++ {
		from = t.unblock(allBlocked, from)
	}
	t.unsearched = from
}

// nextOf unblocks the next job with the lane and key of j, because j leaves ready without a lease.
func (t *txn) nextOf(j stored) {
	if j.IdempotencyKey == "" {
		return
	}
	prefix := heldPrefix(nil, effectKey(nil, j.Envelope))
	prefix = appendLane(prefix, t.lineOf(j.Envelope), laneOf(j.Envelope))
	t.unblock(prefix, prefix)
}

// skip removes a ready job whose effect has already taken place.
func (t *txn) skip(j stored, at place) {
	t.unplace(j, at)
	t.succeed(j)
	t.emit(pawl.Event{Type: pawl.EventSkipped, Job: j.Envelope})
}

// endEffect forgets an effect that has expired.
func (t *txn) endEffect(key []byte) {
	row, err := t.effect(key)
	if err != nil {
		t.delete(t.effects, key)
		return
	}
	if !row.done.After(t.now) {
		row.done = time.Time{}
		t.putEffect(key, row)
	}
}
