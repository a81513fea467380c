package bolt

import (
	"bytes"
	"fmt"
	"math"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// A queue may limit how many jobs of one key run at a time. Then each key with leased or waiting jobs
// has a row. The row has, for each lane, how many jobs are leased or in ready, and whether others are
// blocked. A blocked job is in delayed, under its key, so no fetch walks over it.
//
// A key has room for as many more leases as its limit allows. The invariant: if a key has room for
// n jobs, the first n waiting jobs of each of its lanes are in ready. So a fetch of any kinds finds
// each job that may run, in order. A fetch that meets a job of a key without room blocks it. A job
// that becomes ready is blocked immediately if a blocked job of its lane, or n ready ones, come
// before it. So a fetch meets few jobs of each key, however many there are. The transaction that
// ends a lease unblocks the jobs that have room. A rate also limits the room: see rates.go.

// limitsOf returns the limits of a queue. A queue with a damaged row has none.
func (t *txn) limitsOf(n queueNumber) *pawl.Limits {
	if !t.keyless {
		if row, err := t.rowOf(n); err == nil {
			return &row.limits
		}
	}
	return new(pawl.Limits)
}

// keyOf returns the row of a job's key in a queue, or nil if nothing limits the job by key. If counted is
// true, the row was damaged, and keyOf has just recounted the jobs in their current places.
func (t *txn) keyOf(n queueNumber, key string) (_ *keyRow, counted bool) {
	if key == "" {
		return nil, false
	}
	if !t.limitsOf(n).PerKey() {
		return nil, false
	}
	t.limitAt = limitKey(t.limitAt[:0], n, key)
	return t.keyRow(t.limitAt)
}

// queueRow returns the row of a queue itself.
func (t *txn) queueRow(n queueNumber) *keyRow {
	t.limitAt = limitKey(t.limitAt[:0], n, "")
	r, _ := t.keyRow(t.limitAt)
	return r
}

// keyRow returns the row with a limit key. Counted is as for keyOf.
func (t *txn) keyRow(key []byte) (_ *keyRow, counted bool) {
	if r := t.keyRows[string(key)]; r != nil {
		if !r.used {
			t.settleClock(r)
			t.useKey(r)
		}
		return r, false
	}
	n, key := queueOf(key), bytes.Clone(key)
	r := new(keyRow)
	if sealed := t.keys.Get(key); sealed != nil {
		var err error
		if r, err = parseKeyRow(key, sealed); err != nil {
			t.damagedRow(fmt.Errorf("row %x of bucket %s: %w", key, bucketKeys, err))
			t.recountKeys(n)
			return t.keyRows[string(key)], true
		}
		r.stored = bytes.Clone(sealed[:len(sealed)-sealWidth])
	}
	r = t.addKey(key, r)
	t.takeLeases(r)
	return r, false
}

// left returns the row of the key of a job whose row was just removed, so that the caller can update the
// counts. It returns nil if nothing limits the job by key, or if the counts are right already.
func (t *txn) left(n queueNumber, key string) *keyRow {
	if r, counted := t.keyOf(n, key); !counted {
		return r
	}
	return nil
}

func (t *txn) addKey(key []byte, r *keyRow) *keyRow {
	if t.keyRows == nil {
		t.keyRows = make(map[string]*keyRow)
	}
	r.key, r.woken = key, r.wake
	t.limit(r)
	t.keyRows[string(key)] = r
	t.useKey(r)
	return r
}

// limit gives the row of a key the limits of its queue.
func (t *txn) limit(r *keyRow) {
	of := t.limitsOf(queueOf(r.key))
	limits := *of
	if isOwn(r.key) {
		limits = pawl.Limits{RatePerKey: limits.Rate}
	}
	if r.limit, r.order = limits.RunningPerKey, limits.InOrder; r.order != pawl.OrderNone {
		r.limit = 1
	}
	if !limits.PerKey() {
		r.rests = time.Time{} // nothing would end the rest
	}
	if r.pace = driver.PaceOf(limits.RatePerKey); !of.Fair {
		r.fair = fair{}
	}
	t.settleClock(r)
}

// finishKeys writes the rows of keys that have changed. It removes the row of a key that has no jobs,
// does not rest, and has used up no part of its rate. The own row of a queue whose keys take turns stays.
func (t *txn) finishKeys() {
	t.setWakes()
	for _, r := range t.usedKeys {
		r.used = false
		if r.lanes = trimmed(r.lanes); r.leased == 0 && len(r.lanes) == 0 && r.head == nil && r.waiting == 0 && r.backlog == 0 && r.fronts == nil && !r.busy(t.now) {
			if r.stored != nil {
				t.delete(t.keys, r.key)
			}
			delete(t.keyRows, string(r.key))
			if !r.woken.IsZero() {
				t.delete(t.expiry, restKey(nil, r.woken, r.key))
			}
		} else if t.encoded = r.append(t.encoded[:0]); !bytes.Equal(t.encoded, r.stored) {
			r.stored = append(r.stored[:0], t.encoded...)
			t.put(t.keys, r.key, seal(r.key, append(t.value(len(t.encoded)+sealWidth), t.encoded...)))
		}
	}
	t.usedKeys = t.usedKeys[:0]
}

// takes is how much of the room of a key the jobs that a fetch chose use: leases, and starts of its rate.
type takes struct{ jobs, starts int }

// fits reports whether one more job of the key may be leased now.
func (t *txn) fits(r *keyRow) bool {
	return !r.rests.After(t.now) && (r.limit == 0 || r.leased+r.taken.jobs < r.limit) && (!r.pace.Limits() || r.taken.starts < r.pace.Left(r.tat, t.now))
}

// room returns how many more jobs of the key may be leased now, if each counts as one start.
func (t *txn) room(r *keyRow) int {
	room := math.MaxInt
	if r.rests.After(t.now) {
		return 0
	}
	if r.limit > 0 {
		room = max(0, r.limit-r.leased)
	}
	if r.pace.Limits() {
		room = min(room, r.pace.Left(r.tat, t.now))
	}
	return room
}

// comesLater reports whether a job that becomes ready can be blocked immediately, because as many jobs as
// the key has room for come before it. Ready is the job's key in ready.
func (t *txn) comesLater(r *keyRow, l *keyLane, ready []byte) bool {
	if l.blocked {
		if first, _, ok := t.firstBlocked(r, l); ok {
			return bytes.Compare(orderOf(ready), orderOf(first)) > 0
		}
	}
	return l.ready >= t.room(r) && l.comesLast(orderOf(ready))
}

// becomeReady gives a job without a row a row in ready under key, or blocks the job. The counts of its
// line include the job as ready already.
func (t *txn) becomeReady(key []byte, row indexRow, e *pawl.Envelope) {
	r, _ := t.keyOf(queueOf(key), e.Key)
	if r == nil {
		t.putReady(key, row)
		return
	}
	r.restoreTag(e)
	if r.order == pawl.OrderNone || t.takeTurn(r, key, row, e) {
		t.enterLane(r, key, row)
	}
}

// enterLane gives a job that has its turn a row in ready under key, or blocks it.
func (t *txn) enterLane(r *keyRow, key []byte, row indexRow) {
	l := r.lane(key)
	if t.comesLater(r, l, key) {
		l.blocked = true // the job comes after all ready ones, unless the lane was mixed before
		t.putBlocked(r, key, row)
		return
	}
	l.enter(key)
	t.putReady(key, row)
}

// putBlocked gives a job a row among the blocked jobs of its key. The caller updates the lane.
func (t *txn) putBlocked(r *keyRow, ready []byte, row indexRow) {
	t.countBlocked(lineAt(ready), 1)
	t.behind = append(blockedPrefix(t.behind[:0], r.key), ready...)
	t.put(t.delayed, t.behind, seal(t.behind, delayedRow{row, ready}.append(t.value(indexWidth+sealWidth), t.behind)))
}

// mayRun reports whether a ready job has room for its key, and its turn.
func (t *txn) mayRun(r *keyRow, e *pawl.Envelope) bool {
	if r.order != pawl.OrderNone && r.head == nil && r.leased == 0 { // which only damage can cause
		r.head = &keyHead{id: e.ID, turn: turnOf(e)}
	}
	return t.room(r) > 0 && r.hasTurn(e.ID)
}

// hasTurn reports whether no other job of the key must run first.
func (r *keyRow) hasTurn(id pawl.ID) bool {
	return r.order == pawl.OrderNone || r.head != nil && r.head.id == id
}

// blockKey blocks a ready job that may not run.
func (t *txn) blockKey(c choice, r *keyRow, j stored) {
	t.delete(t.ready, c.key)
	l := r.lane(c.key)
	l.leave()
	if r.hasTurn(j.ID) {
		l.block(orderOf(c.key), t.readyEnd(r, l))
		t.putBlocked(r, c.key, c.row)
	} else { // which only damage can cause
		t.putTurn(r, turnOf(j.Envelope), delayedRow{c.row, bytes.Clone(c.key)})
	}
	t.nextOf(j)
}

// readyEnd returns an order such that no ready job of a lane comes after it.
func (t *txn) readyEnd(r *keyRow, l *keyLane) []byte {
	if l.blocked && !l.mixed {
		if first, _, ok := t.firstBlocked(r, l); ok {
			return orderOf(first)
		}
	}
	return l.last[:]
}

// firstBlocked finds the first sound blocked job of a key in one lane. If only damaged ones are left, ready
// jobs may come before or after them.
func (t *txn) firstBlocked(r *keyRow, l *keyLane) (key []byte, row delayedRow, ok bool) {
	t.behind = append(blockedPrefix(t.behind[:0], r.key), l.at[:]...)
	prefix := t.behind
	for k, v := t.delayed.first(prefix); bytes.HasPrefix(k, prefix); k, v = t.delayed.next() {
		row, err := parseDelayedRow(k, v)
		if err == nil && len(k) == len(prefix)+orderWidth {
			return k, row, true
		}
		t.damagedRow(fmt.Errorf("row %x of bucket %s: %w", k, bucketDelayed, err))
	}
	l.unblock(bytes.Repeat([]byte{0xff}, orderWidth), false)
	return nil, row, false
}

// refill unblocks jobs of a key until as many of the first jobs of each lane are in ready as there is
// room for. If the jobs run in order and the key has no head, the next job becomes the head.
func (t *txn) refill(r *keyRow) {
	if r.order != pawl.OrderNone && r.head == nil && r.leased == 0 {
		t.nextTurn(r)
	}
	room := t.room(r)
	for i := range r.lanes {
		l := &r.lanes[i]
		for n := 0; n < room && l.blocked; n++ {
			key, row, ok := t.firstBlocked(r, l)
			if !ok || l.ready >= room && l.comesLast(orderOf(key)) {
				break
			}
			t.countBlocked(row.line(), -1)
			left := t.delayed.followed(key[:len(key)-orderWidth])
			t.delete(t.delayed, key)
			l.unblock(orderOf(row.ready), left)
			l.enter(row.ready)
			t.putReady(row.ready, row.indexRow)
		}
	}
}

// leaveReady stops counting a job that leaves ready without a lease, and unblocks the next job of its
// lane. R is the row of the job's key, nil if there is none. Key is the job's key in ready.
func (t *txn) leaveReady(r *keyRow, key []byte) {
	if r != nil {
		r.lane(key).leave()
		t.refill(r)
	}
}

// leaveBlocked stops counting a blocked job that has left the queue, given its key in delayed.
func (t *txn) leaveBlocked(r *keyRow, key []byte) {
	switch {
	case r == nil:
	case key[0] == waitsForTurn:
		r.waiting = max(0, r.waiting-1)
	default:
		lane := key[:len(key)-orderWidth]
		first, _ := t.delayed.first(lane)
		r.lane(key[len(key)-readyKeyWidth:]).unblock(orderOf(key), bytes.HasPrefix(first, lane))
	}
}

// running returns how many jobs of a queue are leased. If a count is damaged, it counts the leases.
func (t *txn) running(n queueNumber) (leased int) {
	for ln, row := range t.lines {
		if ln.queue == n {
			leased += row.counts.Leased
		}
	}
	err := t.eachLine(n, func(ln line, row *lineRow) error {
		if t.lines[ln] == nil {
			leased += row.counts.Leased
		}
		return nil
	})
	if err != nil {
		t.damagedRow(err)
		leased = 0
		eachRow(t.leased, nil, func(k, v []byte) {
			if row, err := parseLeaseRow(k, v); err == nil && row.line.queue == n {
				leased++
			}
		})
	}
	return leased
}

// freed records that a queue that limits its leases has one lease less. So the fetches that wait for that
// queue, or for another queue of its pool, look again.
func (t *txn) freed(n queueNumber) {
	limits := t.limitsOf(n)
	if limits.Running > 0 {
		t.resume(n)
	}
	t.resumePool(limits.Pool)
}
