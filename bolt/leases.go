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
	for id := range t.renewed {
		if g := lt.byID[id]; g != nil {
			lt.unlink(g)
			lt.append(g, now)
		}
	}
	for _, id := range t.ended {
		lt.end(id)
	}
	for _, id := range t.cancelled {
		lt.cancel(id)
	}
	for _, g := range t.granted {
		lt.byID[g.id] = g
		lt.append(g, now)
		if g.class == repeat {
			lt.repeat = g
		}
	}
}

// takeNotes takes over what transactions of the app's did.
func (lt *leaseTable) takeNotes(notes []note) {
	for _, n := range notes {
		for _, id := range n.ended {
			lt.end(id)
		}
		for _, id := range n.cancelled {
			lt.cancel(id)
		}
	}
}

// end forgets a lease.
func (lt *leaseTable) end(id pawl.ID) {
	if g := lt.byID[id]; g != nil {
		lt.unlink(g)
		delete(lt.byID, id)
		if g == lt.repeat {
			lt.repeat = nil
		}
	}
}

// cancel tells the holder of a lease that its job is to end.
func (lt *leaseTable) cancel(id pawl.ID) {
	if g := lt.byID[id]; g != nil {
		g.cancelled.Fire()
	}
}

// repeatFree says whether t may lease a job that crashed twice or more.
func (lt *leaseTable) repeatFree(t *txn) bool {
	if slices.ContainsFunc(t.granted, func(g *grant) bool { return g.class == repeat }) {
		return false
	}
	return lt.repeat == nil || slices.Contains(t.ended, lt.repeat.id)
}

// reap takes back up to portion leases that have expired, unless this very
// transaction renews them.
func (lt *leaseTable) reap(t *txn, portion int) (reaped int) {
	now := time.Now()
	for g := lt.head.next; g != &lt.head && reaped < portion && !g.expires.After(now); g = g.next {
		if t.renewed[g.id] {
			continue
		}
		row, ok, err := t.lease(g.id)
		switch {
		case err != nil:
			t.damagedRow(err)
		case !ok || row.token != g.token:
			t.ended = append(t.ended, g.id) // settled in this very transaction
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
}
