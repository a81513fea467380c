package bolt

import (
	"bytes"
	"fmt"
	"time"

	"github.com/gopawl/pawl"
)

// Effects are what idempotency keys name. A key's row says which leased job has it,
// so that none runs beside another, and until when it counts as done.
//
// A ready job whose key is leased under another job is put aside, into delayed: a
// fetch does not walk over it again and again. When the lease ends, the first job of
// each lane comes back; whatever it leaves ready for but a lease brings the next. So as
// long as nobody has the key, each lane with jobs aside has one of them in ready. Where
// damage breaks that chain, the scheduler brings back the first job of each lane of every
// key: those whose key is leased go aside again when a fetch comes to them.

// effect reads the row of a key; one that nobody has and that is not done is zero. A
// holder that is not leased any more, of which only a damaged record can be the cause,
// is none.
func (t *txn) effect(key []byte) (row effectRow, err error) {
	sealed := t.effects.Get(key)
	if sealed == nil {
		return row, nil
	}
	if row, err = parseEffectRow(key, sealed); err != nil {
		return row, fmt.Errorf("idempotency key %q: %w", key, err)
	}
	if t.leased.Get(row.holder[:]) == nil {
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

// holdEffect notes that a job which is being leased has the key.
func (t *txn) holdEffect(key []byte, id pawl.ID) {
	row, _ := t.effect(key) // a damaged one is written anew
	row.holder = id
	t.putEffect(key, row)
}

// freeEffect ends the hold of a job whose lease has ended.
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
		from = t.bringBack(prefix, from)
	}
}

// finishEffect notes that the effect of a job has taken place.
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
	t.doneUntil(key, row, t.now.Add(ttl))
}

// doneUntil has an effect, whose row is given, count as done until a time.
func (t *txn) doneUntil(key []byte, row effectRow, until time.Time) {
	row.done = until
	t.putEffect(key, row)
	end := effectEndKey(nil, until, key)
	t.put(t.expiry, end, seal(end, nil))
}

// putAside takes a ready job out of the way whose key is leased under another job.
func (t *txn) putAside(c choice, effect []byte) {
	t.delete(t.ready, c.key)
	key := append(heldPrefix(nil, effect), c.key...)
	t.put(t.delayed, key, seal(key, delayedRow{c.row, c.key}.append(nil)))
}

// bringBack brings back the first sound job from a key on that was put aside, if its key
// has the prefix. It returns where the jobs of the next lane begin, nil without a job.
func (t *txn) bringBack(prefix, from []byte) (next []byte) {
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

// behindLane is behind all keys of a lane, after its prefix.
var behindLane = bytes.Repeat([]byte{0xff}, orderWidth+1)

// allAside is where the jobs that were put aside begin, and what their keys begin with.
var allAside = []byte{waitsForKey}

// searchStrays brings back the first job of up to portion lanes, wherever damage may have
// left nothing that does: from a key on, which is nil when there is no such damage yet, or
// from the first when this very transaction came upon some. What a fetch puts aside again
// is behind the search, so that it ends.
func (t *txn) searchStrays(from []byte, portion int) {
	if t.strays {
		from, t.strays = allAside, false
	}
	t.searched = from != nil
	for n := 0; from != nil && n < portion; n++ {
		from = t.bringBack(allAside, from)
	}
	t.unsearched = from
}

// nextOf brings back the next job of the lane and key of j, which leaves ready without a
// lease.
func (t *txn) nextOf(j stored) {
	if j.IdempotencyKey == "" {
		return
	}
	prefix := heldPrefix(nil, effectKey(nil, j.Envelope))
	prefix = appendLane(prefix, t.lineOf(j.Envelope), laneOf(j.Envelope))
	t.bringBack(prefix, prefix)
}

// skip removes a ready job whose effect has taken place already.
func (t *txn) skip(j stored, at place) {
	t.unplace(j, at)
	t.succeed(j)
	t.tell(pawl.Event{Type: pawl.EventSkipped, Job: j.Envelope})
}

// endEffect forgets an effect whose time is over.
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
