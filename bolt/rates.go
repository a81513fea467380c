package bolt

import (
	"encoding/binary"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// A rate is stored as one time in the row of a key: the time until which the starts so far use up
// the rate. The rate of a queue is in the queue's own row, whose limit key has an empty key.
//
// The room of a key grows as time passes. If the rate of a key blocks jobs, a row of bucketExpiry
// says when the next job has room. The scheduler unblocks the job then, as it promotes a delayed
// job. If a key has no jobs, such a row says when its rate is no longer used up, and the scheduler
// removes the row of the key. The jobs of a queue that reached its rate are not blocked: fetches
// skip the queue. While a fetch waits for it, the scheduler knows when to let the fetch look again.

// times are the times in the row of a key. A zero time is not stored.
type times struct {
	tat   time.Time // the theoretical arrival time of its rate
	rests time.Time // no job of the key starts before this time; see rests.go
	wake  time.Time // when to look at the key again; bucketExpiry has a row for it
}

// Tags of the fields in the row of a key.
const (
	keyFieldTAT   byte = 16 + iota // a time
	keyFieldWake                   // a time
	keyFieldRests                  // a time
)

// append writes the times as fields.
func (w *times) append(b []byte) []byte {
	var buf [timeWidth]byte
	if !w.tat.IsZero() {
		b = appendField(b, keyFieldTAT, appendTime(buf[:0], w.tat))
	}
	if !w.wake.IsZero() {
		b = appendField(b, keyFieldWake, appendTime(buf[:0], w.wake))
	}
	if !w.rests.IsZero() {
		b = appendField(b, keyFieldRests, appendTime(buf[:0], w.rests))
	}
	return b
}

// field reads a field that append wrote.
func (w *times) field(tag byte, value []byte) (known bool) {
	switch {
	case len(value) != timeWidth:
		return false
	case tag == keyFieldTAT:
		w.tat = timeAt(value)
	case tag == keyFieldWake:
		w.wake = timeAt(value)
	case tag == keyFieldRests:
		w.rests = timeAt(value)
	default:
		return false
	}
	return true
}

// busy reports whether a key rests, or its rate is used up, in whole or in part.
func (r *keyRow) busy(now time.Time) bool { return r.tat.After(now) || r.rests.After(now) }

// start counts a start of a job with a cost.
func (r *keyRow) start(now time.Time, cost int) {
	if r.pace.Limits() {
		r.tat = r.pace.Start(r.tat, now, cost)
	}
}

// admitCost refuses a job that costs more than a rate of its queue allows.
func (t *txn) admitCost(e *pawl.Envelope) error {
	n, ok, err := t.number(e.Queue)
	if !ok || err != nil {
		return nil // it has no limits, or a later step finds the damage
	}
	return driver.CheckCost(*t.limitsOf(n), e)
}

// settleClock corrects the times of a key if the clock was set back or if the key has no rate. It
// ends a rest that is over.
func (t *txn) settleClock(r *keyRow) {
	if !r.rests.After(t.now) {
		r.rests = time.Time{}
	}
	last := r.pace.Last(t.now)
	switch {
	case !r.pace.Limits():
		r.tat = time.Time{}
	case r.tat.After(last):
		r.tat, t.changed = last, true
	}
}

// ownRow returns the row for the rate of a queue, or nil if it has none.
func (t *txn) ownRow(n queueNumber) *keyRow {
	if t.limitsOf(n).Rate.Starts == 0 {
		return nil
	}
	return t.queueRow(n)
}

// setWakes ensures that the scheduler looks at each key again when its rate has room for a blocked
// job, or when its row can be removed. It keeps a wake that is too early: the scheduler looks at
// the key at that time, and sets the next wake.
func (t *txn) setWakes() {
	for _, r := range t.usedKeys {
		if want := t.wakeOf(r); !want.IsZero() && (r.wake.IsZero() || want.Before(r.wake)) {
			r.wake = want
		}
		if r.wake.Equal(r.woken) {
			continue
		}
		if !r.woken.IsZero() {
			t.delete(t.expiry, restKey(nil, r.woken, r.key))
		}
		if r.woken = r.wake; !r.wake.IsZero() {
			key := restKey(nil, r.wake, r.key)
			t.put(t.expiry, key, seal(key, nil))
		}
	}
}

// wakeOf returns when a key must be looked at, or zero for never. A key at its limit of leases is
// looked at when a lease ends.
func (t *txn) wakeOf(r *keyRow) (at time.Time) {
	if !r.pace.Limits() && r.rests.IsZero() {
		return at
	}
	jobs := r.leased > 0 || r.head != nil || r.waiting > 0
	for i := range r.lanes {
		l := &r.lanes[i]
		jobs = jobs || l.ready > 0 || l.blocked
		need := t.neededRoom(r, l)
		if need == 0 || r.pace.Limits() && need > r.pace.Most() || r.limit > 0 && r.limit-r.leased < need {
			continue
		}
		fits := r.rests
		if r.pace.Limits() {
			fits = later(fits, r.pace.When(r.tat, need))
		}
		if at.IsZero() || fits.Before(at) {
			at = fits
		}
	}
	if !jobs && r.busy(t.now) {
		at = later(r.tat, r.rests)
	}
	return at
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// neededRoom returns how much room a key must have before refill unblocks the next job of a lane, or
// 0 if none is blocked.
func (t *txn) neededRoom(r *keyRow, l *keyLane) int {
	if !l.blocked {
		return 0
	}
	first, _, ok := t.firstBlocked(r, l)
	switch {
	case !ok:
		return 0
	case !l.comesLast(orderOf(first)):
		return 1
	}
	return l.ready + 1
}

// endRest looks at a key again when its wake is due. It ignores a wake that differs from the one in
// the row of the key: that wake is out of date.
func (t *txn) endRest(at time.Time, limit []byte) {
	if len(limit) < 5 || !isOwn(limit) && !t.limitsOf(queueOf(limit)).PerKey() {
		return
	}
	r, _ := t.keyRow(limit)
	if r.wake.Equal(at) {
		r.wake, r.woken = time.Time{}, time.Time{}
	}
	t.refill(r)
}

// Tags of the fields in the row of a queue.
const (
	queueFieldRate       byte = 16 + iota // starts (4), period in nanoseconds (8), burst (4), and the highest cost (4) if it is set
	queueFieldRatePerKey                  // the same
)

const (
	rateWidth = 4 + 8 + 4
	costWidth = 4
)

// appendRate writes a rate as a field, unless it is zero.
func appendRate(b []byte, tag byte, r pawl.Rate) []byte {
	if r == (pawl.Rate{}) {
		return b
	}
	var buf [rateWidth + costWidth]byte
	v := binary.BigEndian.AppendUint32(buf[:0], uint32(r.Starts))
	v = binary.BigEndian.AppendUint64(v, uint64(r.Per))
	v = binary.BigEndian.AppendUint32(v, uint32(r.Burst))
	if r.MaxCost != 0 {
		v = binary.BigEndian.AppendUint32(v, uint32(r.MaxCost))
	}
	return appendField(b, tag, v)
}

// readRate reads a field that appendRate wrote. It reports whether the field is one.
func readRate(l *pawl.Limits, tag byte, value []byte) (known bool) {
	if len(value) != rateWidth && len(value) != rateWidth+costWidth {
		return false
	}
	r := pawl.Rate{
		Starts: int(binary.BigEndian.Uint32(value)),
		Per:    time.Duration(binary.BigEndian.Uint64(value[4:])),
		Burst:  int(binary.BigEndian.Uint32(value[12:])),
	}
	if len(value) > rateWidth {
		r.MaxCost = int(binary.BigEndian.Uint32(value[rateWidth:]))
	}
	read := pawl.Limits{}
	switch tag {
	case queueFieldRate:
		l.Rate, read.Rate = r, r
	case queueFieldRatePerKey:
		l.RatePerKey, read.Rate = r, r
	default:
		return false
	}
	return read.Validate() == nil
}
