package bolt

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/gopawl/pawl"
)

// In a queue that runs the jobs of a key in order, a key has a head: the job that has begun and is not
// done, or else the job that may run next. The head is the only job in a lane of the key, as in a
// queue that limits its keys to one lease. So rates apply to it, too. The other ready jobs of the key
// are blocked: they are in delayed, under their key, in the order in which they became due.
//
// The job that became due first becomes the head. It stays the head through retries, snoozes, releases, and crashes.
// From its first lease it holds the key. The lease says so while the job is leased, and the record after that, so the
// rows of keys can be restored from the jobs. When the head is acked or removed, or becomes dead, the first blocked job
// becomes the head. In a queue with [pawl.OrderHold] a dead head stays, and no job of the key runs until the head is
// retried or deleted.

// keyHead is the head of a key.
type keyHead struct {
	id    pawl.ID
	holds bool // its record says that it holds the key; if not, and if it is not leased either, a job that was due earlier takes its place
	turn  keyTurn

	unseen bool // it was read from the row of the key, and no one has checked that its job exists; see dropLostHead
}

// keyTurn is the order of the jobs of a key: when a job became due, then its sequence.
type keyTurn [turnWidth]byte

const turnWidth = timeWidth + 8

func turnOf(e *pawl.Envelope) (turn keyTurn) {
	binary.BigEndian.AppendUint64(appendTime(turn[:0], e.NotBefore), e.Seq)
	return turn
}

// before reports whether a turn comes before another.
func (t *keyTurn) before(other *keyTurn) bool { return bytes.Compare(t[:], other[:]) < 0 }

// keyHeadWidth is the size of a head in the row of its key.
const keyHeadWidth = 16 + 1 + turnWidth

func (h *keyHead) append(b []byte) []byte {
	var holds byte
	if h.holds {
		holds = 1
	}
	return append(append(append(b, h.id[:]...), holds), h.turn[:]...)
}

func parseKeyHead(b []byte) *keyHead {
	return &keyHead{id: pawl.ID(b), holds: b[16] != 0, turn: keyTurn(b[17:]), unseen: true}
}

// turnPrefix returns the prefix of the delayed keys of jobs that wait for their turn.
func turnPrefix(b, limit []byte) []byte { return append(append(b, waitsForTurn), limit...) }

// turnKey returns the delayed key of a job that waits for its turn.
func turnKey(b []byte, n queueNumber, e *pawl.Envelope) []byte {
	turn := turnOf(e)
	return append(turnPrefix(b, limitKey(nil, n, e.Key)), turn[:]...)
}

// orderedKey returns the row of a job's key if its queue runs the jobs of a key in order, or nil.
func (t *txn) orderedKey(n queueNumber, key string) *keyRow {
	if t.limitsOf(n).InOrder == pawl.OrderNone {
		return nil
	}
	if r, _ := t.keyOf(n, key); r != nil && r.order != pawl.OrderNone {
		return r
	}
	return nil
}

// takeTurn makes a ready job without a row the head of its key, or else lets it wait for its turn. It reports whether
// the job is the head.
func (t *txn) takeTurn(r *keyRow, key []byte, row indexRow, e *pawl.Envelope) bool {
	turn := turnOf(e)
	t.dropLostHead(r, row.id)
	if r.head != nil && !r.isHeld() && turn.before(&r.head.turn) {
		t.displace(r)
	}
	if r.head == nil && r.leased == 0 {
		r.head = &keyHead{id: row.id, turn: turn}
	}
	if r.head != nil && r.head.id == row.id {
		return true
	}
	t.putTurn(r, turn, delayedRow{row, key})
	return false
}

// dropLostHead gives a key a new head if damage has removed the job at its head. It looks for that job only if the row
// of the key counts no ready, leased, or blocked job: otherwise the head is one of those. It does not look for the job
// that becomes ready now.
func (t *txn) dropLostHead(r *keyRow, becomes pawl.ID) {
	placed := func(l keyLane) bool { return l.ready > 0 || l.blocked }
	if r.head == nil || !r.head.unseen || r.head.id == becomes || r.leased > 0 || slices.ContainsFunc(r.lanes, placed) {
		return
	}
	r.head.unseen = false
	if _, err := t.record(r.head.id); errors.Is(err, pawl.ErrNotFound) {
		t.damagedRow(fmt.Errorf("%w: row %x of bucket %s: job %s, whose turn it is, is not in the file", pawl.ErrCorrupt, r.key, bucketKeys, r.head.id))
		r.head = nil
		t.refill(r)
	}
}

func (t *txn) putTurn(r *keyRow, turn keyTurn, row delayedRow) {
	r.waiting++
	t.countBlocked(row.line(), 1)
	t.behind = append(turnPrefix(t.behind[:0], r.key), turn[:]...)
	key := t.behind
	t.put(t.delayed, key, seal(key, row.append(t.value(indexWidth+readyKeyWidth+sealWidth), key)))
}

// displace makes the head of a key, which has not begun, wait for its turn. A head that displace cannot move because
// of damage stays; the fetch that finds the damage recounts the keys.
func (t *txn) displace(r *keyRow) {
	j, at, err := t.find(r.head.id)
	if err != nil || at.state != pawl.Ready || at.key[0] == waitsForTurn && at.table == t.delayed {
		return
	}
	t.unplace(j, at)
	t.joinBacklog(at.line.queue, j.Envelope)
	t.counts(at.line).Ready++
	t.putTurn(r, r.head.turn, delayedRow{indexRow{j.ID, j.flags()}, readyKey(nil, at.line, j.Envelope)})
	r.head = nil
}

// nextTurn gives a key without a head a new one: the first job that waits for its turn.
func (t *txn) nextTurn(r *keyRow) {
	t.behind = turnPrefix(t.behind[:0], r.key)
	prefix := t.behind
	for k, v := t.delayed.first(prefix); bytes.HasPrefix(k, prefix); k, v = t.delayed.next() {
		row, err := parseDelayedRow(k, v)
		if err != nil || len(k) != len(prefix)+turnWidth {
			t.damagedRow(fmt.Errorf("row %x of bucket %s: %w", k, bucketDelayed, cmp.Or(err, pawl.ErrCorrupt)))
			continue
		}
		r.head = &keyHead{id: row.id, turn: keyTurn(k[len(prefix):])}
		r.waiting = max(0, r.waiting-1)
		t.countBlocked(row.line(), -1)
		t.delete(t.delayed, k)
		t.enterLane(r, row.ready, row.indexRow)
		return
	}
	r.waiting = 0
}

// isHeld reports whether the head of a key holds it.
func (r *keyRow) isHeld() bool { return r.head != nil && (r.head.holds || r.leased > 0) }

// leads reports whether a leased job holds its key. If the lease ends before the job is done, the caller
// writes that to the record. Call leads before the lease ends: if the row of the key is damaged, leads
// recounts the jobs, and only the lease says which job holds the key.
func (t *txn) leads(id pawl.ID, row leaseRow) bool {
	if row.flags&hasKey == 0 || t.limitsOf(row.line.queue).InOrder == pawl.OrderNone {
		return false
	}
	key := row.key
	if key == "" {
		key = t.keyNameOf(id)
	}
	r := t.orderedKey(row.line.queue, key)
	return r != nil && r.head != nil && r.head.id == id
}

// holdsKey reports whether a leased job holds its key. If the row of the key is damaged, lost, or without a head,
// the lease alone says so. If the row of the queue is damaged, nothing says whether its jobs run in order.
func (s *store) holdsKey(n queueNumber, e *pawl.Envelope) (bool, error) {
	if e.HoldsKey || e.Key == "" {
		return e.HoldsKey, nil
	}
	row, err := s.queue(n)
	if err == nil && row.name != e.Queue {
		err = fmt.Errorf("%w: its lease is of queue %q", pawl.ErrCorrupt, row.name)
	}
	if err != nil {
		return false, fmt.Errorf("job %s of queue %q: %w", e.ID, e.Queue, err)
	}
	if row.limits.InOrder == pawl.OrderNone {
		return false, nil
	}
	key := limitKey(nil, n, e.Key)
	r, err := parseKeyRow(key, s.keys.Get(key))
	return err != nil || r.head == nil || r.head.id == e.ID, nil
}

// leaveKey handles a job without a row that is done or dead. If the job is the head of its key, the next job becomes
// the head. leaveKey reports whether the job still holds the key, as a dead job may.
func (t *txn) leaveKey(j stored, isDead bool) (holds bool) {
	if j.Key == "" || t.keyless {
		return j.HoldsKey
	}
	if isDead && j.HoldsKey && t.claimKey(j, pawl.Dead) {
		return true
	}
	t.passKey(t.numberOf(j.Queue), j.Key, j.ID)
	return false
}

// passKey makes the next job of a key the head, if the head is the job with this ID, which is done or dead.
func (t *txn) passKey(n queueNumber, key string, id pawl.ID) {
	if r := t.orderedKey(n, key); r != nil && r.head != nil && r.head.id == id {
		r.head = nil
		t.refill(r)
	}
}

// claimKey makes a job whose record says that it holds its key the head of the key, unless another
// job holds the key. It changes something only for a job from another file, and after damage. It
// reports whether the job holds the key in the given state.
func (t *txn) claimKey(j stored, state pawl.State) bool {
	if t.keyless {
		return true // a recount follows
	}
	n := t.numberOf(j.Queue)
	r := t.orderedKey(n, j.Key)
	if r == nil || state == pawl.Completed || state == pawl.Dead && r.order != pawl.OrderHold {
		return false
	}
	if r.head == nil || r.head.id != j.ID {
		if r.head != nil && !r.isHeld() {
			t.displace(r)
		}
		if r.leased > 0 || r.head != nil {
			return false
		}
		r.head = &keyHead{id: j.ID, turn: turnOf(j.Envelope)}
	}
	r.head.holds = true
	return true
}

// keepKey lets a job that is about to get a row keep its key. If the job cannot hold the key, keepKey removes that
// from its record.
func (t *txn) keepKey(j stored, state pawl.State) {
	if j.HoldsKey && !t.claimKey(j, state) {
		j.HoldsKey = false
		t.rewrite(&j)
	}
}
