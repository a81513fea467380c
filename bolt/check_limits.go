package bolt

import (
	"bytes"
	"math"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// keyScan is what a scan finds about one key of a queue that limits keys.
type keyScan struct {
	leased  int
	backlog int // waiting jobs, if the queue bounds those of a key
	lanes   map[laneAt]*laneScan
	last    tags // of a queue whose keys take turns

	// Only in a queue that runs the jobs of a key in order:
	holders []pawl.ID // jobs that hold the key by their record
	running []pawl.ID // other jobs that are leased
	ready   []pawl.ID // ready jobs that do not wait for their turn
	waiting int       // jobs that wait for their turn
	first   keyTurn   // turn of the first waiting job
}

type laneScan struct {
	ready   [][]byte // the order of each ready job
	leased  int
	blocked int
	first   []byte // the order of the first blocked job
}

func (s *keyScan) lane(ready []byte) *laneScan {
	at := laneAt(ready)
	if s.lanes[at] == nil {
		s.lanes[at] = new(laneScan)
	}
	return s.lanes[at]
}

// scanOf returns what the scan found of a key so far.
func (c *check) scanOf(n queueNumber, name string) *keyScan {
	key := string(limitKey(nil, n, name))
	if c.keyed[key] == nil {
		c.keyed[key] = &keyScan{lanes: make(map[laneAt]*laneScan)}
	}
	return c.keyed[key]
}

// countBacklog counts a job that waits for its key, if its queue bounds how many do.
func (c *check) countBacklog(j stored, p place) {
	if j.Key == "" || !driver.IsWaiting(p.state) {
		return
	}
	if queue, err := c.queue(p.line.queue); err == nil && queue.limits.MaxWaitingPerKey > 0 {
		c.scanOf(p.line.queue, j.Key).backlog++
	}
}

// countKey counts a job for its key, if its queue limits keys.
func (c *check) countKey(j stored, p place) {
	if j.Key == "" || p.state != pawl.Ready && p.state != pawl.Leased && !j.HoldsKey {
		return
	}
	waits := p.state == pawl.Ready && p.table == c.delayed && (p.key[0] == waitsForLimit || p.key[0] == waitsForTurn)
	queue, err := c.queue(p.line.queue)
	if err != nil || !queue.limits.PerKey() {
		if waits {
			c.wrong("job %s waits for a limit that its queue does not have", j.ID)
		}
		return
	}
	if p.state == pawl.Ready && p.table == c.delayed && p.key[0] == waitsForJobs {
		return // it counts for its key once it no longer waits
	}
	ordered := queue.limits.InOrder != pawl.OrderNone
	if p.state == pawl.Ready && p.table == c.delayed && !waits && !ordered {
		return // it waits for an effect, and counts for its key again when it is ready
	}
	s := c.scanOf(p.line.queue, j.Key)
	if row, ok, _ := c.lease(j.ID[:]); ok && p.state == pawl.Leased { // otherwise its damage is reported with the leases
		at := row.laneAt()
		s.leased++
		s.lane(at[:]).leased++
	}
	if j.FairTag != 0 {
		s.last.set(j.Priority, max(j.FairTag, s.last.of(j.Priority, 0)))
	}
	if ordered {
		s.inOrder(j, p, c)
	}
	switch {
	case j.HoldsKey && !ordered:
		c.wrong("job %s holds its key, and the jobs of its queue do not run in order", j.ID)
	case p.state == pawl.Leased:
	case p.table == c.ready:
		l := s.lane(p.key)
		l.ready = append(l.ready, orderOf(p.key))
	case waits && p.key[0] == waitsForLimit:
		l := s.lane(p.key[len(p.key)-readyKeyWidth:])
		if order := orderOf(p.key); l.blocked == 0 || bytes.Compare(order, l.first) < 0 {
			l.first = order
		}
		l.blocked++
	}
}

// keyRows requires that the rows of keys match a scan. It also requires that as many of the first
// waiting jobs of each lane are in ready as the key has room for. If a rate or a rest leaves less
// room, the key must have a wake.
func (c *check) keyRows() {
	c.values(c.store.keys, -1, func(k, _ []byte) {
		row, err := parseKeyRow(k, c.store.keys.Get(k))
		if err != nil || len(k) < 5 {
			c.wrong("row %x of %s: %w", k, c.store.keys.name, err)
			return
		}
		found := c.keyed[string(k)]
		if found == nil {
			found = new(keyScan)
		}
		delete(c.keyed, string(k))
		row.leased = found.leased
		if row.backlog != found.backlog {
			c.wrong("key %q counts %d waiting jobs, a scan finds %d", k, row.backlog, found.backlog)
		}
		if queue, err := c.queue(queueOf(k)); err == nil {
			limits := queue.limits
			if limits.InOrder != pawl.OrderNone && !isOwn(k) {
				c.keyOrder(k, row, found)
				limits.RunningPerKey = 1
			}
			c.keyLanes(k, row, found, limits)
			c.keyTags(k, row, found, limits)
		}
		if !row.wake.IsZero() && c.store.expiry.Get(restKey(nil, row.wake, k)) == nil {
			c.wrong("key %q says that %s has a row at %v, a scan finds none", k, c.store.expiry.name, row.wake)
		}
	})
	for key := range c.keyed {
		c.wrong("key %q has no row, a scan finds jobs of it", key)
	}
}

func (c *check) keyLanes(key []byte, row *keyRow, found *keyScan, limits pawl.Limits) {
	room := math.MaxInt
	if limits.RunningPerKey > 0 {
		room = max(0, limits.RunningPerKey-row.leased)
	}
	pace := driver.PaceOf(limits.RatePerKey)
	if pace.Limits() {
		room = min(room, pace.Most())
	}
	for at, l := range found.lanes {
		counted := row.lane(at[:])
		before := 0
		for _, order := range l.ready {
			if l.blocked > 0 && bytes.Compare(order, l.first) < 0 {
				before++
			}
			end := counted.last[:]
			if counted.blocked && !counted.mixed {
				end = l.first
			}
			if bytes.Compare(order, end) > 0 {
				c.wrong("key %q says that its ready jobs end at %x, a scan finds one at %x", key, end, order)
			}
		}
		if l.blocked > 0 && before < room && row.wake.IsZero() {
			c.wrong("key %q has room for %d jobs, and one is blocked behind %d", key, room, before)
		}
	}
	for _, counted := range row.lanes {
		l := found.lanes[counted.at]
		if l == nil {
			l = new(laneScan)
		}
		if counted.ready != len(l.ready)+l.leased {
			c.wrong("key %q counts %d ready or leased jobs in a lane, a scan finds %d", key, counted.ready, len(l.ready)+l.leased)
		}
		if counted.blocked != (l.blocked > 0) {
			c.wrong("key %q says that jobs of it are blocked in a lane: %v, a scan finds %d", key, counted.blocked, l.blocked)
		}
	}
}

// keyTags requires that the next tag of a key in a fair queue comes after those of its jobs.
func (c *check) keyTags(key []byte, row *keyRow, found *keyScan, limits pawl.Limits) {
	if !limits.Fair {
		return
	}
	for _, one := range found.last {
		if last := row.last.of(one.priority, 0); last < one.tag {
			c.wrong("key %q says that the last tag of priority %d is %d, a scan finds %d", key, one.priority, last, one.tag)
		}
	}
}
