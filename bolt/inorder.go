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

// In a queue that runs the jobs of a key in order, a key has a head: the job that may run next, or
// that has begun and is not done. It alone is in a lane of the key, as in a queue that limits its keys
// to one lease, so rates hold for it too. The other ready jobs of the key are blocked: they are in
// delayed, under their key, in the order of becoming due.
//
// A job that becomes due first becomes the head. It stays the head over retries, snoozes, releases,
// and crashes. From its first lease on it holds the key: while it is leased its lease says so, and
// later its record, so the rows of keys can be made anew from the jobs. When it is acked or removed, or becomes dead, the first blocked
// job becomes the head. In a queue with [pawl.OrderHold] a dead head stays, and nothing of the key
// runs until it is retried or deleted.

// keyHead is the head of a key.
type keyHead struct {
	id    pawl.ID
	holds bool // its record says that it holds the key; if it neither does nor is leased, a job that was due earlier takes its place
	turn  keyTurn

	unseen bool // it was read from the row of the key, and nobody has looked for its job, see dropLostHead
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

// takeTurn makes a job without a row that is ready the head of its key, or else lets it wait for its
// turn. It reports whether the job is the head.
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

// dropLostHead lets a key go on if damage has removed the job at its head. It looks for that job only if the row of the key counts
// no ready, leased, or blocked job, since the head is one of them otherwise. The job that becomes ready is not looked for.
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

// displace makes the head of a key, which has not begun, wait for its turn. Damage can keep it where
// it is. The fetch that finds the damage counts the keys anew.
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

// nextTurn makes the first job that waits for its turn the head of a key without one.
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

// leads reports whether a leased job holds its key. If the job is not done, its record says so from then on.
// The caller asks before the lease ends: if the row of the key is damaged, the jobs are counted anew, and
// the lease alone says which job holds the key.
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

// leaveKey takes a job without a row, which is done or dead, from the head of its key, so that the
// next job has its turn. It reports whether the job holds the key on, because it is dead.
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

// passKey lets the next job of a key have its turn, if the head is a job that is done or dead.
func (t *txn) passKey(n queueNumber, key string, id pawl.ID) {
	if r := t.orderedKey(n, key); r != nil && r.head != nil && r.head.id == id {
		r.head = nil
		t.refill(r)
	}
}

// claimKey makes a job that holds its key by its record the head of the key, unless another job
// holds it. That is news only for a job of another file, and after damage. It reports whether the job
// holds the key in a state.
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

// keepKey lets a job that gets a row keep its key if it holds it.
func (t *txn) keepKey(j stored, state pawl.State) {
	if j.HoldsKey && !t.claimKey(j, state) {
		j.HoldsKey = false
		t.rewrite(&j)
	}
}
