package postgres

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Limits of queues apply across all clients. A fetch locks the rows of the limits of its queues until its commit, and
// then counts the leases. Leases that end in the meantime only make more room. So only fetches from queues with limits
// pay for limits, and no stored count can be wrong.

// limitColumns are the columns of pawl.Limits.
const limitColumns = `running, running_per_key, starts, per, burst, max_cost, key_starts, key_per, key_burst, key_max_cost, in_order, waiting_per_key, pool, pool_running, fair`

const (
	sqlSetLimits = `INSERT INTO pawl.limits AS l (queue, ` + limitColumns + `, turns) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12::int2, $13, $14, $15, $16, $12::int2 > 0)
ON CONFLICT (queue) DO UPDATE SET (running, running_per_key, starts, per, burst, max_cost, key_starts, key_per, key_burst, key_max_cost, in_order, waiting_per_key, pool, pool_running, fair, turns)
	= (excluded.running, excluded.running_per_key, excluded.starts, excluded.per, excluded.burst, excluded.max_cost, excluded.key_starts,
	excluded.key_per, excluded.key_burst, excluded.key_max_cost, excluded.in_order, excluded.waiting_per_key, excluded.pool, excluded.pool_running, excluded.fair, l.turns OR excluded.turns)`
	sqlRemoveLimits = `DELETE FROM pawl.limits WHERE queue = $1 AND rests = 0`

	sqlLimits     = `SELECT queue, ` + limitColumns + `, turns, rests FROM pawl.limits WHERE queue = ANY($1) ORDER BY queue`
	sqlLockLimits = sqlLimits + ` FOR UPDATE`

	// sqlLeasedKeys counts the leased jobs of queues by their keys.
	sqlLeasedKeys = `SELECT q.name, COALESCE(j.key, ''), count(*)::int8 FROM pawl.claim c, unnest(c.ids) AS leased(id)
JOIN pawl.job j USING (id) JOIN pawl.line l ON l.id = j.line JOIN pawl.queue q ON q.id = l.queue
WHERE j.token = c.token AND q.name = ANY($1) GROUP BY 1, 2`

	// sqlPaces reads how far starts have used up the rates of keys, and of queues under the empty key. It also reads
	// until when keys rest.
	sqlPaces = `SELECT queue, key, tat, rests FROM pawl.pace WHERE queue = ANY($1) AND (tat > $2 OR rests > $2)`

	sqlSetPaces = `INSERT INTO pawl.pace (queue, key, tat) SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::int8[])
ON CONFLICT (queue, key) DO UPDATE SET tat = excluded.tat`

	// sqlForgetPaces removes rows of paces whose rate is not used up and whose rest is over.
	sqlForgetPaces = `DELETE FROM pawl.pace WHERE (queue, key) IN (
	SELECT queue, key FROM pawl.pace WHERE tat <= $1 AND rests <= $1 LIMIT $2 FOR UPDATE SKIP LOCKED)`
)

// checkLimits checks the limits that options declare.
func checkLimits(all map[string]pawl.Limits) error {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if err := driver.CheckQueue(name); err != nil {
			return err
		}
		if err := cmp.Or(all[name].Validate(), driver.SupportsLimits(abilities, all[name])); err != nil {
			return fmt.Errorf("limits of queue %q: %w", name, err)
		}
	}
	return nil
}

// declareLimits stores the limits of queues that the options declare.
func declareLimits(ctx context.Context, pool *pgxpool.Pool, o *Options) error {
	for _, name := range slices.Sorted(maps.Keys(o.Limits)) {
		var err error
		for range attempts { // it may meet a deadlock with a process that settles jobs
			err = pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
				c := limitsChange{ctx: ctx, tx: tx, sql: func(statement string) string { return sqlIn(o.Schema, statement) }}
				return c.of(name, declaring(o.Limits[name]))
			})
			if !isRace(err) {
				break
			}
		}
		if err != nil {
			return fmt.Errorf("declare the limits of queue %q: %w", name, err)
		}
	}
	return nil
}

// limitArguments are the arguments of a statement that stores the limits of a queue.
func limitArguments(name string, l pawl.Limits) []any {
	return []any{[]byte(name), l.Running, l.RunningPerKey, l.Rate.Starts, int64(l.Rate.Per), l.Rate.Burst, l.Rate.MaxCost,
		l.RatePerKey.Starts, int64(l.RatePerKey.Per), l.RatePerKey.Burst, l.RatePerKey.MaxCost, int16(l.InOrder), l.MaxWaitingPerKey,
		[]byte(l.Pool.Name), l.Pool.Running, l.Fair}
}

// Limits returns the limits of a queue, for new jobs with a cost.
func (t *txn) Limits(queue string) pawl.Limits {
	if l, known := t.taken[queue]; known {
		return l
	}
	rows, err := t.tx.Query(t.ctx, t.q.sql(sqlLimits), [][]byte{[]byte(queue)})
	if err != nil {
		t.broken = err
		return pawl.Limits{}
	}
	all, err := scanLimits(rows)
	if err != nil {
		t.broken = err
	}
	if t.taken == nil {
		t.taken = make(map[string]pawl.Limits)
	}
	t.taken[queue] = all[queue].Limits
	return t.taken[queue]
}

// queueLimits are the limits of a queue.
type queueLimits struct {
	pawl.Limits
	turns bool      // jobs may wait for their turn, even if the order was removed since
	rests time.Time // the end of the rest of the queue; zero for no rest
}

// scanLimits reads the limits of queues.
func scanLimits(rows pgx.Rows) (map[string]queueLimits, error) {
	all := make(map[string]queueLimits)
	var name, pool []byte
	var l queueLimits
	var order int16
	var rests int64
	_, err := pgx.ForEachRow(rows, []any{&name, &l.Running, &l.RunningPerKey, &l.Rate.Starts, &l.Rate.Per, &l.Rate.Burst, &l.Rate.MaxCost,
		&l.RatePerKey.Starts, &l.RatePerKey.Per, &l.RatePerKey.Burst, &l.RatePerKey.MaxCost, &order, &l.MaxWaitingPerKey,
		&pool, &l.Pool.Running, &l.Fair, &l.turns, &rests}, func() error {
		if l.InOrder, l.rests = pawl.KeyOrder(order), (time.Time{}); rests != 0 {
			l.rests = timeOf(rests)
		}
		l.Pool.Name = string(pool)
		all[string(name)] = l
		return nil
	})
	return all, err
}

// readRooms counts the leases and the starts of queues with limits.
func (q *Queue) readRooms(ctx context.Context, tx batcher, limits map[string]queueLimits, now time.Time) (map[string]*room, error) {
	rooms := make(map[string]*room)
	for name, l := range limits {
		rooms[name] = newRoom(name, l.Limits, now)
		rooms[name].rests[""] = l.rests
	}
	if len(rooms) == 0 {
		return rooms, nil
	}
	names := bytesOf(slices.Collect(maps.Keys(limits)))
	var batch pgx.Batch
	var name, key []byte
	var n, rests int64
	batch.Queue(q.sql(sqlLeasedKeys), names).Query(func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, []any{&name, &key, &n}, func() error {
			r := rooms[string(name)]
			if r.leased += int(n); len(key) > 0 {
				r.byKey[string(key)] = int(n)
			}
			return nil
		})
		return err
	})
	batch.Queue(q.sql(sqlPaces), names, nanos(now)).Query(func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, []any{&name, &key, &n, &rests}, func() error {
			r := rooms[string(name)]
			if r.tats[string(key)] = timeOf(n); rests > 0 {
				r.rests[string(key)] = timeOf(rests)
			}
			return nil
		})
		return err
	})
	q.readPools(&batch, rooms)
	return rooms, tx.SendBatch(ctx, &batch).Close()
}

// lockLimits locks the limits of the queues of fetches, with the next statement whose answer is needed. One statement
// locks all of them, so that all processes lock them in the same order.
func (t *txn) lockLimits(fetches []*fetch) {
	seen := make(map[string]bool)
	for _, f := range fetches {
		for _, name := range f.Queues {
			seen[name] = true
		}
	}
	t.write(sqlLockLimits, bytesOf(slices.Sorted(maps.Keys(seen)))).Query(func(rows pgx.Rows) (err error) {
		t.limits, err = scanLimits(rows)
		return err
	})
	t.after = append(t.after, func() {
		for name := range seen {
			if _, limited := t.limits[name]; limited {
				t.q.limited[name] = true
			} else {
				delete(t.q.limited, name)
			}
			if t.limits[name].Pool.Running == 0 {
				delete(t.q.noted, name)
			}
		}
	})
}

// measure counts how much room the limits of the queues of the fetch leave. It reports whether any queue has limits.
func (s *selection) measure() (limited bool, err error) {
	limits := make(map[string]queueLimits)
	var inTurn, fair [][]byte
	for _, name := range s.f.Queues {
		l, ok := s.t.limits[name]
		if _, known := limits[name]; !ok || known {
			continue
		}
		if l == (queueLimits{rests: l.rests}) && !l.rests.After(s.t.Now) {
			s.t.write(sqlForgetRest, []byte(name), nanos(s.t.Now))
			continue
		}
		if limits[name] = l; l.turns {
			inTurn = append(inTurn, []byte(name))
		}
		if l.Fair {
			fair = append(fair, []byte(name))
		}
	}
	var taken *takenTurns
	if len(inTurn) > 0 {
		taken = newTakenTurns()
		s.t.takeTurns(inTurn, taken)
	}
	s.t.lockPools()
	if len(fair) > 0 {
		s.t.meetFair()
		s.t.readFronts(fair)
		s.t.findLate(fair)
	}
	s.rooms, err = s.t.q.readRooms(s.t.ctx, s.t.tx, limits, s.t.Now)
	s.t.notePools(s.rooms)
	if err == nil {
		s.goesOn, err = s.t.promoteLate(taken, inTurn)
	}
	if err == nil && taken != nil {
		var done bool
		s.crowded, done, err = s.t.giveTurns(taken, inTurn)
		s.goesOn = s.goesOn || s.crowded && done
	}
	return len(limits) > 0, err
}

// open returns the queues of the fetch that are not at a limit. It also returns the keys of these queues that are at a
// limit, each with its queue.
func (s *selection) open() (queues, of, keys [][]byte) {
	for _, name := range s.f.Queues {
		r := s.rooms[name]
		if r == nil {
			queues = append(queues, []byte(name))
			continue
		}
		if r.left() == 0 || s.crowded && s.t.limits[name].turns {
			continue
		}
		queues = append(queues, []byte(name))
		for _, key := range r.full() {
			of, keys = append(of, []byte(name)), append(keys, []byte(key))
		}
	}
	for k := range s.t.kept {
		of, keys = append(of, []byte(k.queue)), append(keys, []byte(k.key))
	}
	return queues, of, keys
}

// isBlocked reports whether the key of a candidate is at its limit.
func (s *selection) isBlocked(c *candidate) bool {
	r := s.rooms[c.queue]
	return r != nil && r.leftOf(c.key) == 0
}

// occupy counts a candidate that was chosen. If its key is now at its limit, the other jobs of the key are blocked.
func (s *selection) occupy(c *candidate) {
	r := s.rooms[c.queue]
	if r == nil {
		return
	}
	if r.lease(c.key, c.cost); c.key != "" && r.leftOf(c.key) == 0 {
		for _, other := range s.keyed[keyOfQueue{c.queue, c.key}] {
			s.drop(other)
		}
	}
}

// keyOfQueue is a key of a queue with limits.
type keyOfQueue struct{ queue, key string }

// writePaces stores the rates that the chosen jobs have used up.
func (s *selection) writePaces() {
	var queues, keys [][]byte
	var tats []int64
	for name, r := range s.rooms {
		for key := range r.started {
			queues, keys, tats = append(queues, []byte(name)), append(keys, []byte(key)), append(tats, nanos(r.tats[key]))
		}
		clear(r.started)
	}
	if len(tats) > 0 {
		s.t.write(sqlSetPaces, queues, keys, tats)
	}
}

// rests records when a rate lets the fetch have one more job, or that the next transaction continues immediately.
func (s *selection) rests() {
	for _, r := range s.rooms {
		s.t.rest = earlier(s.t.rest, r.next())
	}
	if s.goesOn {
		s.t.rest = earlier(s.t.rest, s.t.Now)
	}
}
