package bolt

import (
	"encoding/binary"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// In a queue with [pawl.Limits.Fair], a job that becomes ready gets a tag (see [driver.NextTag]). The
// record of the job has the tag. So does its key in ready, in place of the time when the job became
// ready. The row of a key has the last tags of the key, and is removed when the key has no more jobs.
// The queue's own row has the fronts of the queue, and the last tags of its jobs without a key.
//
// Tags are nanoseconds since 1970. The first tag is the time when it is given. Tags advance slower than
// the clock, unless a key gets 400 000 jobs each second. So when a queue becomes fair, or stops being
// fair, the jobs that were ready before the change precede those that become ready after it.

// fair is the part of the row of a key that exists only if the keys of its queue take turns.
type fair struct {
	last   tags // of the key
	fronts tags // of the queue; nil in the rows of other keys
}

// tags has one tag for each priority. Most queues use one.
type tags []tagOf

type tagOf struct {
	priority int8
	tag      int64
}

const tagWidth = 1 + 8

// of returns the tag of a priority, or another value for none.
func (s tags) of(priority int8, none int64) int64 {
	for _, one := range s {
		if one.priority == priority {
			return one.tag
		}
	}
	return none
}

// set changes the tag of a priority.
func (s *tags) set(priority int8, tag int64) {
	for i := range *s {
		if one := &(*s)[i]; one.priority == priority {
			one.tag = tag
			return
		}
	}
	*s = append(*s, tagOf{priority, tag})
}

// append writes the tags as fields, one for each priority.
func (f *fair) append(b []byte) []byte {
	var buf [tagWidth]byte
	write := func(field byte, all tags) {
		for _, one := range all {
			b = appendField(b, field, binary.BigEndian.AppendUint64(append(buf[:0], byte(one.priority)), uint64(one.tag)))
		}
	}
	write(keyFieldLast, f.last)
	write(keyFieldFront, f.fronts)
	return b
}

// field reads a field that append wrote.
func (f *fair) field(field byte, value []byte) {
	to := &f.last
	if field == keyFieldFront {
		to = &f.fronts
	}
	to.set(int8(value[0]), int64(binary.BigEndian.Uint64(value[1:])))
}

// fairRow returns a queue's own row if its keys take turns, or nil.
func (t *txn) fairRow(n queueNumber) *keyRow {
	if !t.limitsOf(n).Fair {
		return nil
	}
	return t.queueRow(n)
}

// giveTag gives a job that becomes ready its tag, and rewrites its record, if its queue is fair.
func (t *txn) giveTag(j *stored, n queueNumber) {
	if t.tag(j, n) {
		t.rewrite(j)
	}
}

// tagNew is giveTag for a new job that has no delay, before its record is stored.
func (t *txn) tagNew(j *stored) (given bool) {
	n := t.lineOf(j.Envelope).queue
	return t.limitsOf(n).Fair && !overdue(j.Envelope, t.now) && !t.waits(j.ID) && t.tag(j, n)
}

// tag gives a job its tag, if its queue is fair. A job that has kept its tag does not get another.
func (t *txn) tag(j *stored, n queueNumber) (given bool) {
	if j.FairTag != 0 {
		return false
	}
	own := t.fairRow(n)
	if own == nil {
		return false
	}
	r := own
	if j.Key != "" {
		r, _ = t.keyOf(n, j.Key)
	}
	tagged := *j.Envelope // the operation may run again
	front := own.fronts.of(j.Priority, driver.FirstFront(t.now))
	tagged.FairTag = driver.NextTag(front, r.last.of(j.Priority, 0), j.Weight)
	own.fronts.set(j.Priority, front)
	r.last.set(j.Priority, tagged.FairTag)
	j.Envelope = &tagged
	return true
}

// promoteTagged makes a due job ready and gives it a tag, if its queue is fair.
func (t *txn) promoteTagged(row delayedRow) bool {
	ln := row.line()
	if !t.limitsOf(ln.queue).Fair {
		return false
	}
	j, err := t.record(row.id)
	if err != nil {
		return false // a fetch finds the damage
	}
	t.giveTag(&j, ln.queue)
	t.becomeReady(readyKey(nil, ln, j.Envelope), indexRow{j.ID, j.flags()}, j.Envelope)
	return true
}

// returnTag moves the last tag of the jobs without a key back when one of them leaves ready without a lease.
// Jobs with a key do not need this: the tags of a key without jobs are removed.
func (t *txn) returnTag(j stored, n queueNumber) {
	if j.Key != "" || j.FairTag == 0 {
		return
	}
	if own := t.fairRow(n); own != nil {
		own.last.set(j.Priority, own.last.of(j.Priority, 0)-driver.FairPart(j.Weight))
	}
}

// passFront moves the front of a queue past a job that starts, given its key in ready.
func (t *txn) passFront(ready []byte) {
	own := t.fairRow(queueOf(ready))
	if own == nil {
		return
	}
	priority, tag := tagAt(ready)
	own.fronts.set(priority, driver.NextFront(own.fronts.of(priority, driver.FirstFront(t.now)), tag))
}

// restoreTag updates the last tags in the row of a key, perhaps a new row, from one of its jobs: a job that
// an idempotency key blocked, or that a scan finds.
func (r *keyRow) restoreTag(e *pawl.Envelope) {
	if e.FairTag != 0 {
		r.last.set(e.Priority, max(e.FairTag, r.last.of(e.Priority, 0)))
	}
}

// restoreFronts restores the fronts of a queue whose own row is lost, and the last tags of its jobs without
// a key. It derives them from the ready jobs.
func (t *txn) restoreFronts(n queueNumber) {
	own := t.fairRow(n)
	if own == nil || own.fronts != nil {
		return
	}
	eachRow(t.ready, own.key[:queueWidth], func(k, v []byte) {
		row, err := parseIndexRow(k, v)
		if err != nil || len(k) != readyKeyWidth || row.flags&hasTag == 0 {
			return
		}
		priority, tag := tagAt(k)
		own.fronts.set(priority, min(tag-driver.FairStep, own.fronts.of(priority, tag)))
		if row.flags&hasKey == 0 {
			own.last.set(priority, max(tag, own.last.of(priority, 0)))
		}
	})
}

// tagAt reads the priority and the tag in a key in ready.
func tagAt(ready []byte) (priority int8, tag int64) {
	order := orderOf(ready)
	return priorityAt(order), timeAt(order[1:]).UnixNano()
}
