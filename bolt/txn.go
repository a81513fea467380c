package bolt

import (
	"encoding/binary"
	"fmt"
	"time"
	"unicode/utf8"

	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
)

// txn is one write transaction: the buckets, one now, the queues' counts, and what
// the scheduler must do in memory once it is durable.
//
// Its methods are the moves between the states. Whoever calls them has checked
// that they apply; they keep a row in exactly one state, and the counts right.
type txn struct {
	store
	now        time.Time
	maxCrashes int // 0 means that no number of crashes is too many

	numbers map[string]queueNumber
	rows    map[queueNumber]*queueRow

	changed bool
	err     error // the first failed write; the transaction cannot commit after it

	granted []*grant         // leases that were given
	renewed map[pawl.ID]bool // leases that were extended
	ended   []pawl.ID        // leases that were settled or taken back
	deaths  []*obituary
	damage  []error // rows that were passed over
}

// obituary is what the log says about a job that became a dead letter.
type obituary struct {
	job   *pawl.Envelope
	cause string
}

func begin(tx *bbolt.Tx, now time.Time, maxCrashes int) (*txn, error) {
	s, err := openStore(tx)
	if err != nil {
		return nil, err
	}
	return &txn{
		store: s, now: now, maxCrashes: maxCrashes,
		numbers: make(map[string]queueNumber),
		rows:    make(map[queueNumber]*queueRow),
		renewed: make(map[pawl.ID]bool),
	}, nil
}

// finish writes what was gathered in memory. No move may follow.
func (t *txn) finish() error {
	if !t.changed {
		return t.err
	}
	for n, row := range t.rows {
		var buf [5]byte
		key := numberKey(buf[:0], n)
		t.put(t.queues, key, seal(key, row.append(nil)))
	}
	return t.err
}

func (t *txn) put(b *bbolt.Bucket, key, value []byte) {
	t.changed = true
	t.fail(b.Put(key, value))
}

func (t *txn) delete(b *bbolt.Bucket, key []byte) {
	t.changed = true
	t.fail(b.Delete(key))
}

func (t *txn) fail(err error) {
	if t.err == nil {
		t.err = err
	}
}

// numberOf finds the number of a queue, and gives it one on its first job.
func (t *txn) numberOf(name string) queueNumber {
	if n, ok := t.numbers[name]; ok {
		return n
	}
	n, ok, err := t.number(name)
	t.fail(err)
	if !ok {
		next, err := t.queues.NextSequence()
		t.fail(err)
		n = queueNumber(next)
		t.rows[n] = &queueRow{name: name}
		key := nameKey(nil, name)
		t.put(t.queues, key, seal(key, binary.BigEndian.AppendUint32(nil, uint32(n))))
	}
	t.numbers[name] = n
	return n
}

// counts are those of one queue, to change.
func (t *txn) counts(n queueNumber) *Counts {
	row, ok := t.rows[n]
	if !ok {
		var err error
		if row, err = t.queue(n); err != nil {
			t.fail(err)
			row = new(queueRow)
		}
		t.rows[n] = row
	}
	return &row.counts
}

// insert stores a new job.
func (t *txn) insert(n newJob) {
	j := stored{Envelope: n.Envelope}
	t.put(t.jobs, j.ID[:], n.record)
	if n.payload != nil {
		j.apart = len(j.Payload)
		t.put(t.payloads, j.ID[:], n.payload)
	}
	if j.Seq > t.jobs.Sequence() {
		t.fail(t.jobs.SetSequence(j.Seq))
	}
	if n.ready {
		t.placeReady(j)
	} else {
		t.place(j)
	}
}

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
	n := t.numberOf(j.Queue)
	var keyBuf [1 + timeWidth + 8]byte
	key := delayedKey(keyBuf[:0], j.Envelope)
	ready := readyKey(make([]byte, 0, readyKeyWidth), n, j.Envelope)
	row := delayedRow{indexRow{j.ID, j.flags()}, ready}
	t.put(t.delayed, key, seal(key, row.append(make([]byte, 0, indexWidth+readyKeyWidth+4))))
	t.counts(n).Delayed++
}

// placeReady gives a job that has no row one in ready, whatever the clock says: a
// job that was ready before stays so when the clock is set back behind that.
func (t *txn) placeReady(j stored) {
	n := t.numberOf(j.Queue)
	key := readyKey(make([]byte, 0, readyKeyWidth), n, j.Envelope)
	row := indexRow{j.ID, j.flags()}
	t.put(t.ready, key, seal(key, row.append(make([]byte, 0, indexWidth+4))))
	t.counts(n).Ready++
}

// park gives a job that has no row one in delayed, without a time.
func (t *txn) park(j stored) {
	n := t.numberOf(j.Queue)
	key := parkedKey(nil, j.Envelope)
	row := delayedRow{indexRow{j.ID, j.flags()}, readyKey(nil, n, j.Envelope)}
	t.put(t.delayed, key, seal(key, row.append(nil)))
	t.counts(n).Parked++
}

// promote moves a row from delayed, where it has the key given, to ready.
func (t *txn) promote(key []byte, row delayedRow) {
	t.delete(t.delayed, key)
	t.put(t.ready, row.ready, seal(row.ready, row.indexRow.append(make([]byte, 0, indexWidth+4))))
	c := t.counts(queueNumber(binary.BigEndian.Uint32(row.ready)))
	if key[0] == waitsForKind {
		c.Parked--
	} else {
		c.Delayed--
	}
	c.Ready++
}

// grantLease moves a row from ready, where it has the key given, to leased.
func (t *txn) grantLease(key []byte, row indexRow, token uint64) {
	n := queueNumber(binary.BigEndian.Uint32(key))
	t.delete(t.ready, key)
	lease := leaseRow{token: token, queue: n, flags: row.flags, since: t.now}
	t.put(t.leased, row.id[:], seal(row.id[:], lease.append(make([]byte, 0, leaseWidth+4))))
	c := t.counts(n)
	c.Ready--
	c.Leased++
}

// endLease takes the row of a job out of leased. The caller gives the job its next
// row, or removes the job.
func (t *txn) endLease(id pawl.ID, row leaseRow) {
	t.delete(t.leased, id[:])
	t.counts(row.queue).Leased--
	t.ended = append(t.ended, id)
}

// remove deletes a job that has no row.
func (t *txn) remove(id pawl.ID, f flags) {
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

// crashed puts back a job whose lease ended without a word from its holder: one
// more crash, and its old place in the order, or the dead letters at the cap.
func (t *txn) crashed(id pawl.ID, row leaseRow) {
	t.endLease(id, row)
	j, err := t.record(id)
	if err != nil {
		t.buryDamaged(id, row.queue, row.flags, err)
		return
	}
	j.Crashes++
	if t.maxCrashes > 0 && j.Crashes >= t.maxCrashes {
		cause := fmt.Sprintf("crashed %d times in a row", j.Crashes)
		t.note(j, j.Attempt(), cause)
		t.bury(j, pawl.ReasonPoison, cause)
		return
	}
	t.rewrite(j)
	t.placeReady(j)
}

// failure counts a failed run of j and keeps its cause. The caller rewrites the
// record.
func (t *txn) failure(j stored, cause string) {
	j.Attempts = pawl.NextAttempt(j.Attempts)
	t.note(j, j.Attempts, cause)
}

// note appends to the history of j: the first HistoryKeepHead entries stay, and
// the last HistoryKeepTail.
func (t *txn) note(j stored, attempt int, cause string) {
	n := j.Failures
	j.Failures++
	if old := n - pawl.HistoryKeepTail; old >= pawl.HistoryKeepHead {
		t.delete(t.history, historyKey(nil, j.ID, old))
	}
	key := historyKey(nil, j.ID, n)
	f := pawl.Failure{Attempt: attempt, At: t.now, Error: clip(cause, pawl.MaxErrorText)}
	t.put(t.history, key, seal(key, appendFailure(nil, f)))
}

// bury moves a job that has no row to the dead letters and rewrites its record.
func (t *txn) bury(j stored, reason pawl.Reason, cause string) {
	j.Death = &pawl.Death{Reason: reason, At: t.now}
	t.rewrite(j)
	n := t.numberOf(j.Queue)
	key := failedKey(nil, n, t.now, j.Seq)
	t.put(t.failed, key, seal(key, indexRow{j.ID, j.flags()}.append(nil)))
	t.counts(n).Dead++
	t.deaths = append(t.deaths, &obituary{j.Envelope, cause})
}

// buryDamaged moves a job whose record cannot be read, and which has no row, to
// the dead letters, so that it neither blocks its queue nor disappears. What is
// left of the record stays.
func (t *txn) buryDamaged(id pawl.ID, n queueNumber, f flags, damage error) {
	seq, err := t.failed.NextSequence()
	t.fail(err)
	key := failedKey(nil, n, t.now, damagedSeq|seq)
	t.put(t.failed, key, seal(key, indexRow{id, f}.append(nil)))
	t.counts(n).Dead++
	t.deaths = append(t.deaths, &obituary{damaged(id, t.now), damage.Error()})
}

// condemnReady moves a ready job that cannot be read to the dead letters.
func (t *txn) condemnReady(p choice, damage error) {
	n := queueNumber(binary.BigEndian.Uint32(p.key))
	t.delete(t.ready, p.key)
	t.counts(n).Ready--
	t.buryDamaged(p.row.id, n, p.row.flags, damage)
}

// damagedSeq keeps the keys of damaged jobs, whose own sequence is unknown, apart
// from those of all others.
const damagedSeq = 1 << 63

// damaged stands for a job whose record cannot be read.
func damaged(id pawl.ID, at time.Time) *pawl.Envelope {
	return &pawl.Envelope{ID: id, Death: &pawl.Death{Reason: pawl.ReasonCorrupt, At: at}}
}

// revive takes a dead letter back to ready. History stays.
func (t *txn) revive(j stored, keepAttempts bool) {
	n := t.numberOf(j.Queue)
	t.delete(t.failed, failedKey(nil, n, j.Death.At, j.Seq))
	t.counts(n).Dead--
	j.Death = nil
	j.Crashes = 0
	if !keepAttempts {
		j.Attempts = 0
	}
	j.NotBefore = t.now
	t.rewrite(j)
	t.placeReady(j)
}

// clip shortens a text to at most n bytes, at the end of a character.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	const mark = "…"
	n -= len(mark)
	for range utf8.UTFMax - 1 {
		if utf8.RuneStart(s[n]) {
			break
		}
		n--
	}
	return s[:n] + mark
}
