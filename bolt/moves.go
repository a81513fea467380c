package bolt

import (
	"bytes"
	"fmt"
	"math"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Moves of jobs between states.

// rewrite stores the changed record of a job.
func (t *txn) rewrite(j *stored) {
	t.flush(j)
	t.put(t.jobs, j.ID[:], driver.AppendRecord(nil, j.Envelope, j.apart))
}

// place gives a job without a row one in ready or delayed, depending on its NotBefore.
func (t *txn) place(j stored) {
	if !j.NotBefore.After(t.now) {
		t.placeReady(j)
		return
	}
	if t.overdue(j) {
		return
	}
	t.keepKey(j, pawl.Delayed)
	ln := t.lineOf(j.Envelope)
	t.joinBacklog(ln.queue, j.Envelope)
	t.putDelayed(ln, j.Envelope, indexRow{j.ID, j.flags()})
}

// putDelayed gives a job that waits for a time its row. Of e it needs only the fields that make up
// the job's key in ready.
func (t *txn) putDelayed(ln line, e *pawl.Envelope, index indexRow) {
	var keyBuf [1 + timeWidth + 8]byte
	key := delayedKey(keyBuf[:0], e)
	ready := readyKey(make([]byte, 0, readyKeyWidth), ln, e)
	row := delayedRow{index, ready}
	t.put(t.delayed, key, seal(key, row.append(t.value(indexWidth+readyKeyWidth+sealWidth), key)))
	t.counts(ln).Delayed++
}

// placeReady gives a job without a row one in ready, whatever the clock says. A job that was
// ready stays ready when the clock is set back.
func (t *txn) placeReady(j stored) {
	if t.overdue(j) {
		return
	}
	t.keepKey(j, pawl.Ready)
	ln := t.lineOf(j.Envelope)
	t.joinBacklog(ln.queue, j.Envelope)
	t.counts(ln).Ready++
	if t.waits(j.ID) {
		t.await(readyKey(nil, ln, j.Envelope), indexRow{j.ID, j.flags()})
		return
	}
	t.giveTag(&j, ln.queue)
	t.scratch = readyKey(t.scratch[:0], ln, j.Envelope)
	t.becomeReady(t.scratch, indexRow{j.ID, j.flags()}, j.Envelope)
}

// promote moves the row at key from delayed to ready. A job whose time has come may be blocked
// instead, by a limit of its key.
func (t *txn) promote(key []byte, row delayedRow) {
	what := key[0]
	t.delete(t.delayed, key)
	if what == waitsForTime {
		c := t.counts(row.line())
		c.Delayed--
		c.Ready++
		if t.waits(row.id) {
			t.await(row.ready, row.indexRow)
			return
		}
		if t.promoteTagged(row) {
			return
		}
	} else {
		t.countBlocked(row.line(), -1)
	}
	if row.flags&hasKey != 0 && t.limitsOf(queueOf(row.ready)).PerKey() {
		if j, err := t.record(row.id); err == nil && (what == waitsForTime || t.limitsOf(queueOf(row.ready)).InOrder != pawl.OrderNone) {
			t.becomeReady(row.ready, row.indexRow, j.Envelope)
			return
		} else if err == nil {
			r, _ := t.keyOf(queueOf(row.ready), j.Key)
			r.restoreTag(j.Envelope)
			l := r.lane(row.ready)
			l.mixed = l.mixed || l.blocked && bytes.Compare(orderOf(row.ready), t.readyEnd(r, l)) > 0
			l.enter(row.ready)
		}
	}
	t.putReady(row.ready, row.indexRow)
}

// unplace removes the row of a job that is not leased. The caller gives the job another row or
// removes the job.
func (t *txn) unplace(j stored, p place) {
	t.delete(p.table, p.key)
	*driver.CountOf(t.counts(p.line), p.state)--
	switch {
	case p.state == pawl.Ready:
		t.returnTag(j, p.line.queue)
	case p.state == pawl.Dead && j.HoldsKey:
		t.counts(p.line).Held--
	}
	var r *keyRow
	if p.state == pawl.Ready || p.state == pawl.Delayed && t.limitsOf(p.line.queue).MaxWaitingPerKey > 0 {
		if r = t.left(p.line.queue, j.Key); r != nil {
			r.leaveBacklog()
		}
	}
	switch {
	case p.state != pawl.Ready:
	case p.table == t.ready:
		t.leaveReady(r, p.key)
		t.nextOf(j)
	case p.key[0] == waitsForLimit || p.key[0] == waitsForTurn:
		t.countBlocked(p.line, -1)
		t.leaveBlocked(r, p.key)
	default:
		t.countBlocked(p.line, -1)
	}
}

// grantLease gives a job its row in leased. The caller has deleted its row from ready.
func (t *txn) grantLease(job *fetched) {
	ln := job.line()
	lease := leaseRow{token: job.grant.token, line: ln, flags: job.row.flags, lane: job.lane, since: t.now}
	lease.priority, lease.seq = orderAt(job.key[lanePrefix:])
	if job.parsed.Envelope != nil {
		lease.key = job.parsed.Key
	}
	t.put(t.leased, job.row.id[:], lease.seal(t, job.row.id[:]))
	c := t.counts(ln)
	c.Ready--
	c.Leased++
}

// endLease removes the row of a job from leased. The caller gives the job its next row or removes
// the job. If the job is done or dead, the caller also calls passKey or leaveKey. endLease returns
// the job if it has read its record.
func (t *txn) endLease(id pawl.ID, row leaseRow) (j stored) {
	if row.flags&hasKey != 0 && t.limitsOf(row.line.queue).PerKey() {
		t.leasesByKey() // counts this lease, too
	}
	t.delete(t.leased, id[:])
	t.counts(row.line).Leased--
	t.ended = append(t.ended, holding{id, row.token})
	t.freed(row.line.queue)
	switch {
	case row.flags&(hasMore|hasKey) == 0:
		return j
	case row.flags&hasMore == 0 && row.key != "":
		t.freeKey(row, row.key)
		return j
	}
	j, err := t.record(id)
	if err != nil { // its keys are unknown
		t.keyLost(row.line.queue, row.flags)
		return stored{}
	}
	t.freeKey(row, j.Key) // first, because freeEffect may recount the leases of all keys
	t.freeEffect(j)
	return j
}

// remove deletes a job that has no row.
func (t *txn) remove(id pawl.ID, f flags) {
	if f&hasMore != 0 {
		if j, err := t.record(id); err == nil {
			t.forgetDeadline(j)
			t.giveUpUnique(j)
		}
	}
	t.forgetPrerequisites(id)
	t.delete(t.jobs, id[:])
	if f&hasPayload != 0 {
		t.delete(t.payloads, id[:])
	}
	if f&hasHistory != 0 {
		for k, _ := t.history.first(id[:]); len(k) > 16 && pawl.ID(k[:16]) == id; k, _ = t.history.first(id[:]) {
			t.delete(t.history, k)
		}
	}
}

// succeed ends a job that has no row: it becomes a completed record or is removed.
func (t *txn) succeed(j stored) {
	j.HoldsKey = t.leaveKey(j, false)
	t.member(j.Envelope, driver.MemberPending, driver.MemberSucceeded)
	t.hasEnded(j.ID, pawl.Completed)
	if j.Retain <= 0 {
		t.remove(j.ID, j.flags())
		return
	}
	j.Crashes, j.Cancelled, j.BackoffSince, j.Cursor, j.Completed, j.FairTag = 0, false, time.Time{}, nil, t.now, 0
	t.forgetDeadline(j)
	t.rewrite(&j)
	t.placeCompleted(j)
}

// placeCompleted gives a succeeded job without a row one in completed.
func (t *txn) placeCompleted(j stored) {
	ln := t.lineOf(j.Envelope)
	key := completedKey(nil, j.Envelope)
	t.put(t.completed, key, seal(key, endedRow{indexRow{j.ID, j.flags()}, ln}.append(nil)))
	t.counts(ln).Completed++
}

// crashed handles a job whose lease ended without a settlement, for the reason given by event.
// It counts one more crash and puts the job back in its old place, or makes it dead at the
// crash cap.
func (t *txn) crashed(id pawl.ID, row leaseRow, event pawl.EventType) {
	leads := t.leads(id, row)
	t.endLease(id, row)
	j, err := t.record(id)
	if err != nil {
		t.leaseDamaged(id, row, err)
		return
	}
	j.HoldsKey = j.HoldsKey || leads
	if j.Crashes < math.MaxInt { // the count of a damaged record would overflow, and the record could not be read again
		j.Crashes++
	}
	j.BackoffSince = time.Time{}
	t.emit(pawl.Event{Type: event, Job: j.Envelope})
	switch {
	case j.Cancelled:
		t.makeDead(j, pawl.ReasonCancelled, run{cause: "it was cancelled, and its run ended without a word"})
	case t.maxCrashes > 0 && j.Crashes >= t.maxCrashes:
		cause := fmt.Sprintf("crashed %d times in a row", j.Crashes)
		t.note(&j, j.Attempt(), pawl.Failure{Error: cause})
		t.makeDead(j, pawl.ReasonPoison, run{cause: cause})
	default:
		t.rewrite(&j)
		t.placeReady(j)
	}
}

// failure counts a failed attempt of j and keeps its cause. The caller rewrites the record.
func (t *txn) failure(j *stored, f pawl.Failure) {
	j.Attempts = driver.NextAttempt(j.Attempts)
	t.note(j, j.Attempts, f)
}

// note appends to the history of j. The caller rewrites the record.
func (t *txn) note(j *stored, attempt int, f pawl.Failure) {
	t.flush(j)
	n := j.Failures
	j.Failures++
	f.Attempt, f.At = attempt, t.now
	t.keepFailure(j.ID, n, f)
}

// keepFailure stores entry n of the history of a job. It keeps the first HistoryKeepHead and the
// last HistoryKeepTail entries.
func (t *txn) keepFailure(id pawl.ID, n int, f pawl.Failure) {
	if old := n - pawl.HistoryKeepTail; old >= pawl.HistoryKeepHead {
		t.delete(t.history, historyKey(nil, id, old))
	}
	t.scratch = historyKey(t.scratch[:0], id, n)
	t.put(t.history, t.scratch, seal(t.scratch, appendFailure(t.value(failureWidth(f)+sealWidth), f)))
}

// run describes an attempt that has ended.
type run struct {
	cause    string
	took     time.Duration
	timedOut bool
}

// makeDead makes a job without a row dead and rewrites its record.
func (t *txn) makeDead(j stored, reason pawl.Reason, r run) {
	j.Death = &pawl.Death{Reason: reason, At: t.now}
	j.Cancelled, j.BackoffSince, j.FairTag = false, time.Time{}, 0
	t.forgetDeadline(j)
	j.HoldsKey = t.leaveKey(j, true)
	t.rewrite(&j)
	t.placeDead(j)
	t.member(j.Envelope, driver.MemberPending, driver.MemberDead)
	t.hasEnded(j.ID, pawl.Dead)
	t.emit(pawl.Event{Type: pawl.EventDied, Job: j.Envelope, Cause: r.cause, Took: r.took, TimedOut: r.timedOut})
}

// placeDead gives a dead job without a row one in failed. Its record has the reason of its
// death.
func (t *txn) placeDead(j stored) {
	ln := t.lineOf(j.Envelope)
	key := failedKey(nil, ln.queue, j.Death.At, j.Seq)
	t.put(t.failed, key, seal(key, endedRow{indexRow{j.ID, j.flags()}, ln}.append(nil)))
	c := t.counts(ln)
	if c.Dead++; j.HoldsKey {
		c.Held++
	}
}

// makeDamagedDead makes a job without a row and with an unreadable record dead, so that the job
// neither blocks its queue nor disappears. It keeps the rest of the record.
func (t *txn) makeDamagedDead(id pawl.ID, ln line, f flags, damage error) {
	seq, err := t.failed.NextSequence()
	t.fail(err)
	key := failedKey(nil, ln.queue, t.now, damagedSeq|seq)
	t.put(t.failed, key, seal(key, endedRow{indexRow{id, f}, ln}.append(nil)))
	t.counts(ln).Dead++
	e := damaged(id, t.now)
	e.Queue = t.row(ln.queue).name
	t.hasEnded(id, pawl.Dead)
	t.emit(pawl.Event{Type: pawl.EventDied, Job: e, Cause: damage.Error()})
}

// leaseDamaged makes a job whose lease has ended dead, because its record is damaged.
func (t *txn) leaseDamaged(id pawl.ID, row leaseRow, damage error) {
	t.passKey(row.line.queue, row.key, id)
	t.makeDamagedDead(id, row.line, row.flags, damage)
}

// abandonDamagedReady makes an unreadable ready job dead.
func (t *txn) abandonDamagedReady(p choice, damage error) {
	t.delete(t.ready, p.key)
	t.counts(p.line()).Ready--
	t.keyLost(p.line().queue, p.row.flags)
	t.makeDamagedDead(p.row.id, p.line(), p.row.flags, damage)
}

// damagedSeq separates the keys of damaged jobs, whose sequence is unknown, from all other
// keys.
const damagedSeq = 1 << 63

// damaged returns an envelope for a job whose record cannot be read.
func damaged(id pawl.ID, at time.Time) *pawl.Envelope {
	return &pawl.Envelope{ID: id, Death: &pawl.Death{Reason: pawl.ReasonCorrupt, At: at}}
}

// revive changes a dead job to ready. Its history stays.
func (t *txn) revive(j stored, p place, keepAttempts bool) {
	t.unplace(j, p)
	j.Death = nil
	j.Crashes = 0
	if !keepAttempts {
		j.Attempts = 0
	}
	j.NotBefore = t.now
	t.rewrite(&j)
	t.takeUnique(j)
	t.member(j.Envelope, driver.MemberDead, driver.MemberPending)
	t.placeReady(j)
	t.emit(pawl.Event{Type: pawl.EventRevived, Job: j.Envelope})
}

// runNow makes a delayed job ready. A job that was due already keeps the time it became due.
func (t *txn) runNow(j stored, p place) {
	t.unplace(j, p)
	if j.NotBefore.After(t.now) {
		j.NotBefore = t.now
	}
	t.rewrite(&j)
	t.emit(pawl.Event{Type: pawl.EventRunNow, Job: j.Envelope})
	t.placeReady(j)
}

// cancel ends a waiting job and asks the holder of a leased job to end it.
func (t *txn) cancel(j stored, at place) {
	switch {
	case at.state != pawl.Leased:
		t.unplace(j, at)
		t.makeDead(j, pawl.ReasonCancelled, run{cause: "it was cancelled"})
	case !j.Cancelled:
		j.Cancelled = true
		t.rewrite(&j)
		if row, ok, err := t.lease(j.ID[:]); err == nil && ok {
			row.flags = j.flags()
			t.put(t.leased, j.ID[:], row.seal(t, j.ID[:]))
			t.cancelled = append(t.cancelled, holding{j.ID, row.token})
		}
		t.emit(pawl.Event{Type: pawl.EventCancelled, Job: j.Envelope})
	}
}
