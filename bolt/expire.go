package bolt

import (
	"bytes"
	"fmt"
	"time"

	"github.com/gopawl/pawl"
)

// overdue makes a job without a row dead if its deadline has passed. Otherwise it ensures that
// the deadline has a row in expiry, which the scheduler may have removed while the job was
// leased.
func (t *txn) overdue(j stored) bool {
	if j.Deadline.IsZero() {
		return false
	}
	if overdue(j.Envelope, t.now) {
		t.makeDead(j, pawl.ReasonDeadline, run{cause: "its deadline has passed"})
		return true
	}
	key := deadlineKey(nil, j.Envelope)
	t.put(t.expiry, key, seal(key, nil))
	return false
}

// overdue reports whether a job is past its deadline.
func overdue(e *pawl.Envelope, now time.Time) bool {
	return !e.Deadline.IsZero() && !e.Deadline.After(now)
}

func (t *txn) forgetDeadline(j stored) {
	if !j.Deadline.IsZero() {
		t.delete(t.expiry, deadlineKey(nil, j.Envelope))
	}
}

// expireDue does the timed work except promotion: it makes jobs past their deadline dead,
// forgets expired effects, and removes completed records at the end of their retention. It
// handles up to portion rows of each bucket and reports whether that was everything.
func (t *txn) expireDue(portion int) (all bool) {
	ended := t.eachDue(t.expiry, portion, t.expire)
	removed := t.eachDue(t.completed, portion, t.removeCompleted)
	return ended < portion && removed < portion
}

// nextDue returns when the next job is due or the next row expires, or zero for never.
func (t *txn) nextDue() (next time.Time) {
	earliest := func(key []byte) {
		if len(key) < timeWidth {
			return
		}
		if at := timeAt(key); next.IsZero() || at.Before(next) {
			next = at
		}
	}
	for _, b := range [...]*table{t.expiry, t.completed} {
		k, _ := b.Cursor().First()
		earliest(k)
	}
	if k, _ := t.delayed.Cursor().First(); len(k) > 0 && k[0] == waitsForTime {
		earliest(k[1:])
	}
	return next
}

// eachDue calls fn for the first rows whose keys begin with a time that has come.
func (t *txn) eachDue(b *table, portion int, fn func(key, value []byte)) int {
	type row struct{ key, value []byte }
	var due []row
	c := b.Cursor()
	for k, v := c.First(); k != nil && len(due) < portion; k, v = c.Next() {
		if len(k) <= timeWidth {
			t.damagedRow(fmt.Errorf("%w: a key of %d bytes in a bucket of times", pawl.ErrCorrupt, len(k)))
			continue
		}
		if timeAt(k).After(t.now) {
			break
		}
		due = append(due, row{bytes.Clone(k), bytes.Clone(v)})
	}
	for _, row := range due {
		fn(row.key, row.value)
	}
	return len(due)
}

// expire does what a due row of expiry says and removes the row. The deadline of a leased job
// stays in its record, and is checked when the job is settled.
func (t *txn) expire(key, _ []byte) {
	t.delete(t.expiry, key)
	what := key[timeWidth+1:]
	switch key[timeWidth] {
	case endsEffect:
		t.endEffect(what)
	case endsRest:
		t.endRest(timeAt(key), what)
	case endsLife:
		if len(what) == len(pawl.ID{}) {
			t.endLife(pawl.ID(what))
		}
	}
}

// endLife makes a job past its deadline dead, unless it is leased or gone.
func (t *txn) endLife(id pawl.ID) {
	j, err := t.record(id)
	if err != nil || !overdue(j.Envelope, t.now) {
		return
	}
	p, err := t.where(j.Envelope)
	if err != nil {
		t.damagedRow(err)
		return
	}
	switch p.state {
	case pawl.Ready, pawl.Delayed:
		t.unplace(j, p)
		t.overdue(j)
	}
}

// removeCompleted removes a completed record at the end of its retention.
func (t *txn) removeCompleted(key, sealed []byte) {
	t.delete(t.completed, key)
	row, err := parseEndedRow(key, sealed)
	if err == nil {
		err = t.checkLine(row.line)
	}
	if err != nil {
		t.damagedRow(fmt.Errorf("row %x of bucket %s: %w", key, bucketCompleted, err))
		return
	}
	t.counts(row.line).Completed--
	t.remove(row.id, row.flags)
}
