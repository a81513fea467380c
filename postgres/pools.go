package postgres

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gopawl/pawl"
)

// Queues of one pool share a limit on their leases. The row of limits of each queue has the name of the pool, and how
// many jobs may run. A fetch locks the row of the pool, after the limits of its queues, and then counts the leases of
// all queues of the pool. So the fetches of all processes from queues of the pool take turns.
//
// A process that ends a lease could always give the room to one of its own fetches. So a fetch that waits for room
// stores, in the row of its queue, since when it waits. The fetches of the other queues leave room for one job to each
// queue that waits longer. Such a note counts for a few seconds, in case its process is gone. See
// docs/internals/postgres.md.

const (
	// sqlAddPool adds a pool, unless its name is empty, and removes the pools that no queue uses.
	sqlAddPool = `WITH unused AS (
	DELETE FROM pawl.pool p WHERE name <> $1::bytea AND NOT EXISTS (SELECT FROM pawl.limits l WHERE l.pool = p.name AND l.pool_running > 0))
INSERT INTO pawl.pool (name) SELECT $1::bytea WHERE $1::bytea <> ''::bytea ON CONFLICT (name) DO NOTHING`

	sqlLockPools = `SELECT name FROM pawl.pool WHERE name = ANY($1) ORDER BY name FOR UPDATE`

	// sqlPools reads the queues of pools, and which of them wait for room.
	sqlPools = `SELECT pool, queue, pool_running, pool_since, pool_until FROM pawl.limits WHERE pool = ANY($1) AND pool_running > 0`

	// sqlPooled counts the leased jobs of the queues of pools.
	sqlPooled = `SELECT q.name, count(*)::int8 FROM pawl.claim c, unnest(c.ids) AS leased(id)
JOIN pawl.job j USING (id) JOIN pawl.line l ON l.id = j.line JOIN pawl.queue q ON q.id = l.queue
WHERE j.token = c.token AND q.name = ANY(ARRAY(SELECT queue FROM pawl.limits WHERE pool = ANY($1) AND pool_running > 0)) GROUP BY 1`

	sqlWaitForPool = `UPDATE pawl.limits SET pool_since = $2, pool_until = $3 WHERE queue = $1`
)

// precedence is how long the other queues of a pool leave room to a queue that waits. A fetch that still waits after
// half of that time starts it over.
const precedence = 3 * time.Second

// poolRoom is a pool as a fetch counts it.
type poolRoom struct {
	leased int // jobs of all its queues
	queues map[string]*poolQueue
}

// poolQueue is a queue of a pool.
type poolQueue struct {
	name         string
	share        int       // it starts a job only while fewer jobs of the pool run
	leased       int       // leases of its own jobs, before this fetch
	since, until time.Time // when a fetch began to wait for room, and until when it has precedence
	served       bool      // the fetch has chosen a job of this queue
}

// waits reports whether a fetch waits for room in the pool. If a note is from the far future, a clock was set back, and
// the note does not count.
func (m *poolQueue) waits(now time.Time) bool {
	return m.until.After(now) && m.until.Sub(now) <= 2*precedence && !m.served
}

// precedes reports whether a queue has waited for room longer than another one.
func (m *poolQueue) precedes(other *poolQueue, now time.Time) bool {
	if m == other || !m.waits(now) {
		return false
	}
	return !other.waits(now) || cmp.Or(m.since.Compare(other.since), cmp.Compare(m.name, other.name)) < 0
}

// preceding returns the queues to which the given queue leaves room.
func (p *poolRoom) preceding(queue string, now time.Time) (all []*poolQueue) {
	for _, m := range p.queues {
		if m.precedes(p.queues[queue], now) && p.leased < m.share {
			all = append(all, m)
		}
	}
	return all
}

// left returns how many jobs of a queue may be leased.
func (p *poolRoom) left(queue string, now time.Time) int {
	return max(0, p.queues[queue].share-p.leased-len(p.preceding(queue, now)))
}

// next returns when a queue no longer has to leave room to another one, zero if it does not have to now.
func (p *poolRoom) next(queue string, now time.Time) (next time.Time) {
	for _, m := range p.preceding(queue, now) {
		next = earlier(next, m.until)
	}
	return next
}

// last returns a time after all times at which queues began to wait, so that a queue that begins to wait now is the
// last.
func (p *poolRoom) last(now time.Time) time.Time {
	for _, m := range p.queues {
		if m.waits(now) && !m.since.Before(now) {
			now = m.since.Add(1)
		}
	}
	return now
}

// lockPools locks the pools of all fetches, with the next statement whose answer is needed. The limits of their queues are
// locked already, so all processes lock in the same order.
func (t *txn) lockPools() {
	if t.pooled {
		return
	}
	var names []string
	for _, l := range t.limits {
		if l.Pool.Running > 0 {
			names = append(names, l.Pool.Name)
		}
	}
	if t.pooled = true; len(names) > 0 {
		t.write(sqlLockPools, bytesOf(names))
	}
}

// readPools adds statements to a batch that count the pools of queues with limits, if there are pools.
func (q *Queue) readPools(batch *pgx.Batch, rooms map[string]*room) {
	var pools, of map[string]*poolRoom
	for name, r := range rooms {
		if p := r.limits.Pool; p.Running > 0 {
			if pools == nil {
				pools, of = make(map[string]*poolRoom), make(map[string]*poolRoom)
			}
			if pools[p.Name] == nil {
				pools[p.Name] = &poolRoom{queues: make(map[string]*poolQueue)}
			}
			r.pool = pools[p.Name]
			r.pool.queues[name] = &poolQueue{name: name, share: p.Running}
		}
	}
	if len(pools) == 0 {
		return
	}
	names := bytesOf(slices.Collect(maps.Keys(pools)))
	var pool, queue []byte
	var share int
	var since, until, n int64
	batch.Queue(q.sql(sqlPools), names).Query(func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, []any{&pool, &queue, &share, &since, &until}, func() error {
			m := &poolQueue{name: string(queue), share: share}
			if until > 0 {
				m.since, m.until = timeOf(since), timeOf(until)
			}
			p := pools[string(pool)]
			p.queues[m.name], of[m.name] = m, p
			return nil
		})
		return err
	})
	batch.Queue(q.sql(sqlPooled), names).Query(func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, []any{&queue, &n}, func() error {
			if p := of[string(queue)]; p != nil {
				p.leased += int(n)
				p.queues[string(queue)].leased = int(n)
			}
			return nil
		})
		return err
	})
}

// notePools records the queues whose leases, or whose waiting, concern the queues of a fetch. News about these queues
// make the fetch look again.
func (t *txn) notePools(rooms map[string]*room) {
	for name, r := range rooms {
		if r.pool == nil {
			continue
		}
		beside := make(map[string]bool)
		for _, m := range r.pool.queues {
			if m.leased > 0 || m.waits(r.now) {
				beside[m.name] = true
			}
		}
		t.after = append(t.after, func() { t.q.beside[name] = beside })
	}
}

// isBeside reports whether news about some queues make fetches from another queue of their pool look again.
func (s *scheduler) isBeside(queue string, news map[string]bool) bool {
	for name := range s.beside[queue] {
		if news[name] {
			return true
		}
	}
	return false
}

// waitForPools records which queues of a fetch begin to wait for room in their pools, or stop waiting.
func (s *selection) waitForPools() error {
	for name, r := range s.rooms {
		if r.pool == nil || s.t.q.opts.Poll == NoPoll { // there is no other process
			continue
		}
		gave := slices.ContainsFunc(s.leases, func(l *pawl.Lease) bool { return l.Queue == name })
		if comesBack := s.f.Wait != pawl.WaitNot; comesBack && !gave && r.ownLeft() > 0 && r.pool.left(name, r.now) == 0 {
			switch waits, err := s.hasJob(r); {
			case err != nil:
				return err
			case waits:
				s.waitForPool(r)
				continue
			}
		} else if !gave && !(comesBack && len(s.leases) < s.f.Max) {
			continue
		}
		if r.pool.queues[name].until.IsZero() {
			s.t.after = append(s.t.after, func() { delete(s.t.q.noted, name) })
			continue
		}
		if !gave && r.ownLeft() > 0 { // the note may belong to a fetch of other kinds
			others := &selection{t: s.t, f: new(fetch), idle: 1}
			if waits, err := others.hasJob(r); waits || err != nil {
				if err != nil {
					return err
				}
				continue
			}
		}
		s.t.write(sqlWaitForPool, []byte(name), int64(0), int64(0))
		s.t.after = append(s.t.after, func() { delete(s.t.q.noted, name) })
		if !gave { // the other queues may use the room that they left to it
			s.t.news.ready(name)
			s.t.stir()
		}
	}
	return nil
}

// waitForPool records that a queue waits for room in its pool, behind the queues that already wait.
func (s *selection) waitForPool(r *room) {
	m := r.pool.queues[r.queue]
	waited := m.waits(r.now)
	if !waited {
		m.since = r.pool.last(r.now)
	}
	if !waited || m.until.Sub(r.now) <= precedence/2 {
		m.until = r.now.Add(precedence)
		s.t.write(sqlWaitForPool, []byte(r.queue), nanos(m.since), nanos(m.until))
		s.t.after = append(s.t.after, func() { s.t.q.noted[r.queue] = true })
	}
	s.t.rest = earlier(s.t.rest, m.until.Add(-precedence/2))
}

// hasJob reports whether the fetch would get a job of a queue if the pool had room.
func (s *selection) hasJob(r *room) (bool, error) {
	var of, keys [][]byte
	for _, key := range r.full() {
		of, keys = append(of, []byte(r.queue)), append(keys, []byte(key))
	}
	found, err := s.look([][]byte{[]byte(r.queue)}, of, keys, nil, 1)
	return len(found) > 0, err
}
