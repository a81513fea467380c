package bolt

import (
	"bytes"

	"github.com/gopawl/pawl"
)

// keyLeases counts the leased jobs of each lane of a key, in the queues that limit keys. The rows of keys
// do not have these counts: they count a leased job in the lane that it was leased from. So a lease
// changes no row of a key.
//
// The counts follow from the leases, and are valid for one state of the file. The sequence of
// bucketLeased identifies that state: a transaction that changes the counts raises the sequence. If
// the transaction is rolled back, the sequence in the file differs from the one here, and the leases
// are recounted. The holder of the write transaction owns the counts, even if that is the app.
type keyLeases struct {
	counts map[string]*leaseCount // by limit key and lane; nil if unknown
	idle   int                    // how many of the counts are zero
	state  uint64                 // the sequence of bucketLeased for which they are valid
}

// leaseCount is how many jobs of a lane of a key are leased. The row of a key in memory points to it, so a busy key
// needs no lookup. A count that falls to zero stays for a while.
type leaseCount struct {
	n    int
	gone bool // it is no longer one of the counts
}

// forget drops all counts.
func (c *keyLeases) forget() {
	for _, count := range c.counts {
		count.gone = true
	}
	c.counts, c.idle = nil, 0
}

// at returns the count of a lane of a key.
func (c *keyLeases) at(lane []byte) *leaseCount {
	count := c.counts[string(lane)]
	if count == nil {
		count = new(leaseCount)
		c.counts[string(lane)] = count
		c.idle++
	}
	return count
}

// set changes a count. It drops the counts that are zero once there are more than maxCachedKeys of them, and more
// than half of all counts are zero.
func (c *keyLeases) set(count *leaseCount, n int) {
	switch was := count.n; {
	case was == 0 && n > 0:
		c.idle--
	case was > 0 && n == 0:
		c.idle++
	}
	if count.n = n; c.idle <= max(maxCachedKeys, len(c.counts)/2) {
		return
	}
	for lane, count := range c.counts {
		if count.n == 0 {
			count.gone = true
			delete(c.counts, lane)
		}
	}
	c.idle = 0
}

// leasesByKey returns the counts for the state of the transaction. A caller that ends a lease must call it first, so
// that no recount runs while the lease is half ended.
func (t *txn) leasesByKey() *keyLeases {
	c := t.keyLeases
	if c == nil { // in a salvage, or in a dry run
		c = new(keyLeases)
		t.keyLeases = c
	}
	if c.counts == nil || c.state != t.leased.Sequence() {
		most := len(c.counts)
		c.forget()
		c.counts, c.state = make(map[string]*leaseCount, most), t.leased.Sequence()
		t.eachKeyedLease(func(_ pawl.ID, row leaseRow) {
			if n := row.line.queue; t.limitsOf(n).PerKey() {
				at := row.laneAt()
				t.laneAt = append(limitKey(t.laneAt[:0], n, row.key), at[:]...)
				count := c.at(t.laneAt)
				c.set(count, count.n+1)
			}
		})
	}
	return c
}

// recountLeases makes the transaction recount the leases when it needs the counts next.
func (t *txn) recountLeases() {
	if t.keyLeases != nil {
		t.keyLeases.forget()
	}
}

// takeLeases separates the leased jobs from the ready ones in the lanes of a row that was just read.
func (t *txn) takeLeases(r *keyRow) {
	for i := range r.lanes {
		c, l := t.leasesByKey(), &r.lanes[i]
		t.laneAt = append(append(t.laneAt[:0], r.key...), l.at[:]...)
		if l.count = c.counts[string(t.laneAt)]; l.count != nil {
			l.leased = l.count.n
		}
		l.ready = max(0, l.ready-l.leased)
		r.leased += l.leased
	}
}

// countLeases adds n to the leased jobs of a lane of a key.
func (t *txn) countLeases(r *keyRow, l *keyLane, n int) {
	n = max(n, -l.leased)
	l.leased += n
	r.leased += n
	c := t.leasesByKey()
	if !t.leasesCounted {
		t.leasesCounted = true
		c.state++
		t.fail(t.leased.SetSequence(c.state))
	}
	if l.count == nil || l.count.gone {
		t.laneAt = append(append(t.laneAt[:0], r.key...), l.at[:]...)
		l.count = c.at(t.laneAt)
	}
	c.set(l.count, l.leased)
}

// leaseKey counts a job that is leased now, given the row of its key, its key in ready, and its cost.
func (t *txn) leaseKey(r *keyRow, ready []byte, cost int) {
	l := r.lane(ready)
	l.leave()
	r.leaveBacklog()
	t.countLeases(r, l, 1)
	r.start(t.now, cost)
}

// addLease counts a lease in a row that is being recounted. A nil row is ignored.
func (r *keyRow) addLease(row leaseRow) {
	if r != nil {
		at := row.laneAt()
		r.lane(at[:]).leased++
		r.leased++
	}
}

// freeKey counts the end of a lease and unblocks the jobs that have room now.
func (t *txn) freeKey(row leaseRow, key string) {
	if r := t.left(row.line.queue, key); r != nil {
		at := row.laneAt()
		t.countLeases(r, r.lane(at[:]), -1)
		t.refill(r)
	}
}

// eachKeyedLease calls fn for each lease of a job with a key, whose row then has the key. It skips a lease whose key
// is unknown because its row and the record are damaged.
func (s *store) eachKeyedLease(fn func(id pawl.ID, row leaseRow)) {
	c := s.leased.Cursor()
	var last []byte
	for k, v := c.First(); k != nil && (last == nil || bytes.Compare(k, last) > 0); k, v = c.Next() { // in a damaged file, pages can form a cycle
		last = k
		row, err := s.readLease(k, v)
		if err != nil || row.flags&hasKey == 0 {
			continue
		}
		if row.key == "" {
			if j, err := s.listed(pawl.ID(k)); err == nil {
				row.key = j.Key
			}
		}
		if row.key != "" {
			fn(pawl.ID(k), row)
		}
	}
}
