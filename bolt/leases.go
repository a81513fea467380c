package bolt

import (
	"slices"
	"time"

	"github.com/gopawl/pawl"
)

// leaseTable knows when the leases of this process expire. The file knows who
// holds what; expiry is kept here alone, on monotonic time, so that neither a
// clock step nor a heartbeat touches the disk. The scheduler's goroutine owns it.
type leaseTable struct {
	length time.Duration
	byID   map[pawl.ID]*grant

	// All leases have the same length, so the order of giving and renewing is the
	// order of expiry: a ring through head, the earliest first.
	head grant

	// heard is until when callers were heard. What expired since may have been extended
	// or settled by somebody who still waits, perhaps because the app holds the file.
	heard time.Time

	// repeat is the one lease of a job that crashed twice or more, or nil.
	repeat *grant
}

// grant is one lease in the table.
type grant struct {
	id         pawl.ID
	token      uint64
	class      class
	cancelled  pawl.Signal
	expires    time.Time
	prev, next *grant
}

func newLeaseTable(length time.Duration) *leaseTable {
	lt := &leaseTable{length: length, byID: make(map[pawl.ID]*grant)}
	lt.head.prev, lt.head.next = &lt.head, &lt.head
	return lt
}

// update takes over what a committed transaction did to the leases. Within one
// transaction leases are given last.
func (lt *leaseTable) update(t *txn, now time.Time) {
	lt.takeNote(note{t.ended, t.cancelled, t.renewed, nil}, now)
	for _, g := range t.granted {
		if old := lt.byID[g.id]; old != nil { // an app's transaction ended it, and the note is on its way
			lt.end(holding{old.id, old.token})
		}
		lt.byID[g.id] = g
		lt.append(g, now)
		if g.class == repeat {
			lt.repeat = g
		}
	}
}

// takeNote takes over what a transaction did to leases that were given before it.
func (lt *leaseTable) takeNote(n note, now time.Time) {
	for id := range n.renewed {
		if g := lt.byID[id]; g != nil {
			lt.unlink(g)
			lt.append(g, now)
		}
	}
	for _, h := range n.ended {
		lt.end(h)
	}
	for _, h := range n.cancelled {
		if g := lt.byID[h.id]; g != nil && g.token == h.token {
			g.cancelled.Fire()
		}
	}
}

// end forgets a lease.
func (lt *leaseTable) end(h holding) {
	g := lt.byID[h.id]
	if g == nil || g.token != h.token {
		return
	}
	lt.unlink(g)
	delete(lt.byID, h.id)
	if g == lt.repeat {
		lt.repeat = nil
	}
}

// repeatFree says whether t may lease a job that crashed twice or more.
func (lt *leaseTable) repeatFree(t *txn) bool {
	if slices.ContainsFunc(t.granted, func(g *grant) bool { return g.class == repeat }) {
		return false
	}
	return lt.repeat == nil || slices.Contains(t.ended, holding{lt.repeat.id, lt.repeat.token})
}

// reap takes back up to portion leases that had expired when callers were last heard,
// unless this very transaction renews them.
func (lt *leaseTable) reap(t *txn, portion int) (reaped int) {
	for g := lt.head.next; g != &lt.head && reaped < portion && !g.expires.After(lt.heard); g = g.next {
		if t.renewed[g.id] {
			continue
		}
		row, ok, err := t.lease(g.id[:])
		switch {
		case err != nil:
			t.damagedRow(err)
		case !ok || row.token != g.token:
			t.ended = append(t.ended, holding{g.id, g.token}) // settled in this very transaction
		default:
			t.crashed(g.id, row, pawl.EventReaped)
			reaped++
		}
	}
	return reaped
}

// next is when the earliest lease expires; ok is false when there is none.
func (lt *leaseTable) next() (expires time.Time, ok bool) {
	return lt.head.next.expires, lt.head.next != &lt.head
}

func (lt *leaseTable) append(g *grant, now time.Time) {
	g.expires = now.Add(lt.length)
	g.prev, g.next = lt.head.prev, &lt.head
	g.prev.next, g.next.prev = g, g
}

func (lt *leaseTable) unlink(g *grant) {
	g.prev.next, g.next.prev = g.next, g.prev
	g.prev, g.next = nil, nil // a lease that somebody keeps must not keep those behind it
}
