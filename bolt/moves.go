package bolt

import (
	"fmt"
	"time"

	"github.com/gopawl/pawl"
)

// The moves of a job between the states.

// rewrite stores the changed record of a job.
func (t *txn) rewrite(j stored) {
	t.put(t.jobs, j.ID[:], pawl.AppendRecord(nil, j.Envelope, j.apart))
}

// place gives a job that has no row one in ready or delayed, by its NotBefore.
func (t *txn) place(j stored) {
	if !j.NotBefore.After(t.now) {
		t.placeReady(j)
		return
	}
	if t.overdue(j) {
		return
	}
	ln := t.lineOf(j.Envelope)
	var keyBuf [1 + timeWidth + 8]byte
	key := delayedKey(keyBuf[:0], j.Envelope)
	ready := readyKey(make([]byte, 0, readyKeyWidth), ln, j.Envelope)
	row := delayedRow{indexRow{j.ID, j.flags()}, ready}
	t.put(t.delayed, key, seal(key, row.append(t.value(indexWidth+readyKeyWidth+sealWidth))))
	t.counts(ln).Delayed++
}

// placeReady gives a job that has no row one in ready, whatever the clock says: a
// job that was ready before stays so when the clock is set back behind that.
func (t *txn) placeReady(j stored) {
	if t.overdue(j) {
		return
	}
	ln := t.lineOf(j.Envelope)
	t.scratch = readyKey(t.scratch[:0], ln, j.Envelope)
	t.putReady(t.scratch, indexRow{j.ID, j.flags()})
	t.counts(ln).Ready++
}

// promote moves a row from delayed, where it has the key given, to ready.
func (t *txn) promote(key []byte, row delayedRow) {
	t.delete(t.delayed, key)
	t.putReady(row.ready, row.indexRow)
	if key[0] == waitsForTime {
		c := t.counts(row.line())
		c.Delayed--
		c.Ready++
	}
}

// unplace takes away the row of a job that is not leased. The caller gives it
// another, or removes the job.
func (t *txn) unplace(j stored, p place) {
	t.delete(p.table, p.key)
	*t.counts(p.line).Of(p.state)--
	if p.state == pawl.Ready {
		t.nextOf(j)
	}
}

// grantLease moves a row from ready, where it has the key given, to leased.
func (t *txn) grantLease(key []byte, row indexRow, token uint64) {
	ln := lineAt(key)
	t.delete(t.ready, key)
	lease := leaseRow{token: token, line: ln, flags: row.flags, since: t.now}
	t.put(t.leased, row.id[:], seal(row.id[:], lease.append(t.value(leaseWidth+sealWidth))))
	c := t.counts(ln)
	c.Ready--
	c.Leased++
}

// endLease takes the row of a job out of leased. The caller gives the job its next
// row, or removes the job.
func (t *txn) endLease(id pawl.ID, row leaseRow) {
	t.delete(t.leased, id[:])
	t.counts(row.line).Leased--
	t.ended = append(t.ended, holding{id, row.token})
	if row.flags&hasMore != 0 {
		if j, err := t.record(id); err == nil {
			t.freeEffect(j)
		} else {
			t.strays = true // its key cannot be told
		}
	}
}

// remove deletes a job that has no row.
func (t *txn) remove(id pawl.ID, f flags) {
	if f&hasMore != 0 {
		if j, err := t.record(id); err == nil {
			t.forgetDeadline(j)
			t.giveUpUnique(j)
		}
	}
	t.delete(t.jobs, id[:])
	if f&hasPayload != 0 {
		t.delete(t.payloads, id[:])
	}
	if f&hasHistory != 0 {
		c := t.history.Cursor()
		for k, _ := c.Seek(id[:]); len(k) > 16 && pawl.ID(k[:16]) == id; k, _ = c.Seek(id[:]) {
			t.delete(t.history, k)
		}
	}
}

// succeed gives a job that has no row its end: a completed record, or none.
func (t *txn) succeed(j stored) {
	if j.Retain <= 0 {
		t.remove(j.ID, j.flags())
		return
	}
	j.Crashes, j.Cancelled, j.BackoffSince, j.Completed = 0, false, time.Time{}, t.now
	t.forgetDeadline(j)
	t.rewrite(j)
	t.placeCompleted(j)
}

// placeCompleted gives a job that has no row, and whose record says that it succeeded, one
// in completed.
func (t *txn) placeCompleted(j stored) {
	ln := t.lineOf(j.Envelope)
	key := completedKey(nil, j.Envelope)
	t.put(t.completed, key, seal(key, endedRow{indexRow{j.ID, j.flags()}, ln}.append(nil)))
	t.counts(ln).Completed++
}

// crashed puts back a job whose lease ended without a word from its holder, of which
// event tells how: one more crash, and its old place in the order, or the dead letters
// at the cap.
func (t *txn) crashed(id pawl.ID, row leaseRow, event pawl.EventType) {
	t.endLease(id, row)
	j, err := t.record(id)
	if err != nil {
		t.buryDamaged(id, row.line, row.flags, err)
		return
	}
	j.Crashes++
	j.BackoffSince = time.Time{}
	t.tell(pawl.Event{Type: event, Job: j.Envelope})
	switch {
	case j.Cancelled:
		t.bury(j, pawl.ReasonCancelled, run{cause: "it was cancelled, and its run ended without a word"})
	case t.maxCrashes > 0 && j.Crashes >= t.maxCrashes:
		cause := fmt.Sprintf("crashed %d times in a row", j.Crashes)
		t.note(j, j.Attempt(), pawl.Failure{Error: cause})
		t.bury(j, pawl.ReasonPoison, run{cause: cause})
	default:
		t.rewrite(j)
		t.placeReady(j)
	}
}

// failure counts a failed run of j and keeps its cause. The caller rewrites the
// record.
func (t *txn) failure(j stored, f pawl.Failure) {
	j.Attempts = pawl.NextAttempt(j.Attempts)
	t.note(j, j.Attempts, f)
}

// note appends to the history of j: the first HistoryKeepHead entries stay, and
// the last HistoryKeepTail.
func (t *txn) note(j stored, attempt int, f pawl.Failure) {
	n := j.Failures
	j.Failures++
	if old := n - pawl.HistoryKeepTail; old >= pawl.HistoryKeepHead {
		t.delete(t.history, historyKey(nil, j.ID, old))
	}
	key := historyKey(nil, j.ID, n)
	f.Attempt, f.At = attempt, t.now
	t.put(t.history, key, seal(key, appendFailure(nil, f)))
}

// run is what there is to say about a run that ended.
type run struct {
	cause    string
	took     time.Duration
	timedOut bool
}

// bury moves a job that has no row to the dead letters and rewrites its record.
func (t *txn) bury(j stored, reason pawl.Reason, r run) {
	j.Death = &pawl.Death{Reason: reason, At: t.now}
	j.Cancelled, j.BackoffSince = false, time.Time{}
	t.forgetDeadline(j)
	t.rewrite(j)
	t.placeDead(j)
	t.tell(pawl.Event{Type: pawl.EventDied, Job: j.Envelope, Cause: r.cause, Took: r.took, TimedOut: r.timedOut})
}

// placeDead gives a job that has no row, and whose record says of what it died, one in
// failed.
func (t *txn) placeDead(j stored) {
	ln := t.lineOf(j.Envelope)
	key := failedKey(nil, ln.queue, j.Death.At, j.Seq)
	t.put(t.failed, key, seal(key, endedRow{indexRow{j.ID, j.flags()}, ln}.append(nil)))
	t.counts(ln).Dead++
}

// buryDamaged moves a job whose record cannot be read, and which has no row, to
// the dead letters, so that it neither blocks its queue nor disappears. What is
// left of the record stays.
func (t *txn) buryDamaged(id pawl.ID, ln line, f flags, damage error) {
	seq, err := t.failed.NextSequence()
	t.fail(err)
	key := failedKey(nil, ln.queue, t.now, damagedSeq|seq)
	t.put(t.failed, key, seal(key, endedRow{indexRow{id, f}, ln}.append(nil)))
	t.counts(ln).Dead++
	e := damaged(id, t.now)
	e.Queue = t.row(ln.queue).name
	t.tell(pawl.Event{Type: pawl.EventDied, Job: e, Cause: damage.Error()})
}

// condemnReady moves a ready job that cannot be read to the dead letters.
func (t *txn) condemnReady(p choice, damage error) {
	t.delete(t.ready, p.key)
	t.counts(p.line()).Ready--
	t.strays = t.strays || p.row.flags&hasMore != 0
	t.buryDamaged(p.row.id, p.line(), p.row.flags, damage)
}

// damagedSeq keeps the keys of damaged jobs, whose own sequence is unknown, apart
// from those of all others.
const damagedSeq = 1 << 63

// damaged stands for a job whose record cannot be read.
func damaged(id pawl.ID, at time.Time) *pawl.Envelope {
	return &pawl.Envelope{ID: id, Death: &pawl.Death{Reason: pawl.ReasonCorrupt, At: at}}
}

// revive takes a dead letter back to ready. History stays.
func (t *txn) revive(j stored, p place, keepAttempts bool) {
	t.unplace(j, p)
	j.Death = nil
	j.Crashes = 0
	if !keepAttempts {
		j.Attempts = 0
	}
	j.NotBefore = t.now
	t.rewrite(j)
	t.takeUnique(j)
	t.placeReady(j)
	t.tell(pawl.Event{Type: pawl.EventRevived, Job: j.Envelope})
}

// hasten makes a delayed job ready. One that was due already is ready since then.
func (t *txn) hasten(j stored, p place) {
	t.unplace(j, p)
	if j.NotBefore.After(t.now) {
		j.NotBefore = t.now
	}
	t.rewrite(j)
	t.tell(pawl.Event{Type: pawl.EventHastened, Job: j.Envelope})
	t.placeReady(j)
}

// cancel ends a job that waits, and asks one that is leased to end.
func (t *txn) cancel(j stored, at place) {
	switch {
	case at.state != pawl.Leased:
		t.unplace(j, at)
		t.bury(j, pawl.ReasonCancelled, run{cause: "it was cancelled"})
	case !j.Cancelled:
		j.Cancelled = true
		t.rewrite(j)
		if row, ok, err := t.lease(j.ID[:]); err == nil && ok {
			t.cancelled = append(t.cancelled, holding{j.ID, row.token})
		}
		t.tell(pawl.Event{Type: pawl.EventCancelled, Job: j.Envelope})
	}
}
