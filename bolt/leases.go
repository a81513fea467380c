package bolt

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// leaseTable holds the expiry of this process's leases. The file says who holds what. Expiry is
// kept only here, on monotonic time, so neither a clock step nor a heartbeat touches the disk.
// The scheduler's goroutine owns it.
type leaseTable struct {
	length    time.Duration
	lastToken uint64
	byToken   grants

	// All leases have the same length, so the order of grants and renewals is the order of
	// expiry: a ring through head, the earliest first.
	head grant

	// noted is the time up to which callers have been served. A lease that expired later may
	// have been extended or settled by a caller that still waits, perhaps because the app holds
	// the file.
	noted time.Time

	// repeat is the lease of the one leased repeat suspect, or nil. A job that has saved a cursor or
	// a step is no longer a suspect.
	repeat *grant
}

// grant is one lease in the table.
type grant struct {
	id         pawl.ID
	token      uint64
	class      class
	cancelled  driver.Cancellation
	expires    time.Time
	prev, next *grant
}

func newLeaseTable(length time.Duration) *leaseTable {
	lt := &leaseTable{length: length, lastToken: rand.Uint64(), byToken: grants{pages: make(map[uint64]*grantPage)}}
	lt.head.prev, lt.head.next = &lt.head, &lt.head
	return lt
}

// update applies the effect of a committed transaction on the leases. A transaction grants
// leases last.
func (lt *leaseTable) update(t *txn, now time.Time) {
	lt.takeNote(note{ended: t.ended, cancelled: t.cancelled, cleared: t.cleared, renewed: t.renewed}, now)
	for _, g := range t.granted {
		lt.byToken.add(g)
		lt.append(g, now)
		if g.class == repeat {
			lt.repeat = g
		}
	}
}

// takeNote applies the effect of a transaction on leases granted before it.
func (lt *leaseTable) takeNote(n note, now time.Time) {
	for token := range n.renewed {
		if g := lt.byToken.get(token); g != nil {
			lt.unlink(g)
			lt.append(g, now)
		}
	}
	for _, h := range n.ended {
		lt.end(h.token)
	}
	for _, h := range n.cleared {
		if lt.repeat != nil && lt.repeat.token == h.token {
			lt.repeat = nil
		}
	}
	for _, h := range n.cancelled {
		if g := lt.byToken.get(h.token); g != nil {
			g.cancelled.Fire()
		}
	}
}

// end removes a lease from the table.
func (lt *leaseTable) end(token uint64) {
	g := lt.byToken.get(token)
	if g == nil {
		return
	}
	lt.unlink(g)
	lt.byToken.remove(g)
	if g == lt.repeat {
		lt.repeat = nil
	}
}

// repeatFree reports whether t may lease a repeat suspect.
func (lt *leaseTable) repeatFree(t *txn) bool {
	if slices.ContainsFunc(t.granted, func(g *grant) bool { return g.class == repeat }) {
		return false
	}
	if lt.repeat == nil {
		return true
	}
	h := holding{lt.repeat.id, lt.repeat.token}
	return slices.Contains(t.ended, h) || slices.Contains(t.cleared, h)
}

// reap takes back up to portion leases that had expired when callers were last served, except
// those that this transaction renews.
func (lt *leaseTable) reap(t *txn, portion int) (reaped int) {
	for g := lt.head.next; g != &lt.head && reaped < portion && !g.expires.After(lt.noted); g = g.next {
		if t.renewed[g.token] {
			continue
		}
		row, ok, err := t.lease(g.id[:])
		switch {
		case err != nil:
			t.damagedRow(err)
		case !ok || row.token != g.token:
			t.ended = append(t.ended, holding{g.id, g.token}) // this transaction settled it
		default:
			t.crashed(g.id, row, pawl.EventReaped)
			reaped++
		}
	}
	return reaped
}

// next returns when the earliest lease expires. If there is none, ok is false.
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
	g.prev, g.next = nil, nil // a reference to this lease must not keep the later ones alive
}

// newToken returns the token of a new lease. Tokens count up from a random number, so in practice no lease of an
// earlier process has the same one.
func (lt *leaseTable) newToken() uint64 {
	lt.lastToken++
	return lt.lastToken
}

// grants finds leases by token. Leases that were granted together are in one page, so to find them costs
// the same beside a hundred thousand others. In one map of all leases, each search would miss the caches.
type grants struct {
	pages map[uint64]*grantPage
	spare *grantPage // an empty one, or nil
}

// grantPage is small, since a single lease keeps it in memory.
type grantPage struct {
	leases [pageTokens]*grant
	n      int // how many there are
}

const pageTokens = 16

func (gs *grants) get(token uint64) *grant {
	if p := gs.pages[token/pageTokens]; p != nil {
		return p.leases[token%pageTokens]
	}
	return nil
}

func (gs *grants) add(g *grant) {
	p := gs.pages[g.token/pageTokens]
	if p == nil {
		if p, gs.spare = gs.spare, nil; p == nil {
			p = new(grantPage)
		}
		gs.pages[g.token/pageTokens] = p
	}
	p.leases[g.token%pageTokens] = g
	p.n++
}

func (gs *grants) remove(g *grant) {
	p := gs.pages[g.token/pageTokens]
	p.leases[g.token%pageTokens] = nil
	if p.n--; p.n == 0 {
		delete(gs.pages, g.token/pageTokens)
		gs.spare = p
	}
}
