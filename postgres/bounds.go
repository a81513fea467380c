package postgres

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/core"
)

// An enqueue into a queue with a bound on its waiting jobs locks the row of the queue in bound until its commit, and
// then counts the jobs that wait. So the enqueues of all processes into this queue take turns, and no stored count can
// be wrong. Queues without a bound do not pay for this: the first statement of a transaction reads how often bounds
// have changed, and a process reads the bounds again only if that number differs.

const (
	sqlBounds   = `SELECT queue, waiting, per_key, fair FROM pawl.bound`
	sqlBoundsOf = sqlBounds + ` WHERE queue = ANY($1)`

	sqlLockBounds = sqlBoundsOf + ` ORDER BY queue FOR UPDATE`

	// sqlIsolation reports whether the statements of a transaction see what was committed before them.
	sqlIsolation = `SELECT current_setting('transaction_isolation')`

	sqlDeclaredBounds = `SELECT queue, waiting, waiting_per_key, fair FROM pawl.declared WHERE queue = ANY($1)`

	// sqlWaitingJobs counts the waiting jobs of queues along the indexes.
	sqlWaitingJobs = `SELECT q.name, sum(
	(SELECT count(*) FROM pawl.job WHERE place = 0 AND token IS NULL AND line = l.id) +
	(SELECT count(*) FROM pawl.job WHERE place < 0 AND line = l.id) +
	(SELECT count(*) FROM pawl.job WHERE place = 1 AND line = l.id))::int8
FROM pawl.queue q JOIN pawl.line l ON l.queue = q.id WHERE q.name = ANY($1) GROUP BY 1`

	// sqlWaitingKeys counts the waiting jobs of queues by key. $2 has the keys to count, nil for all.
	sqlWaitingKeys = `SELECT q.name, j.key, count(*)::int8 FROM pawl.queue q JOIN pawl.line l ON l.queue = q.id, LATERAL (
	SELECT key FROM pawl.job WHERE place = 0 AND token IS NULL AND line = l.id AND key IS NOT NULL UNION ALL
	SELECT key FROM pawl.job WHERE place < 0 AND line = l.id AND key IS NOT NULL UNION ALL
	SELECT key FROM pawl.job WHERE place = 1 AND line = l.id AND key IS NOT NULL) j
WHERE q.name = ANY($1) AND ($2::bytea[] IS NULL OR j.key IN (SELECT * FROM unnest($2::bytea[]))) GROUP BY 1, 2`

	sqlSetBound = `INSERT INTO pawl.bound (queue, waiting, per_key, fair) VALUES ($1, $2, $3, $4)
ON CONFLICT (queue) DO UPDATE SET waiting = excluded.waiting, per_key = excluded.per_key, fair = excluded.fair`
	sqlRemoveBound   = `DELETE FROM pawl.bound WHERE queue = $1`
	sqlBoundsChanged = `UPDATE pawl.revision SET bounds = bounds + 1`
)

// boundOf returns the bounds among limits.
func boundOf(l pawl.Limits) pawl.Limits {
	return pawl.Limits{MaxWaiting: l.MaxWaiting, MaxWaitingPerKey: l.MaxWaitingPerKey, Fair: l.Fair}
}

// withBound returns limits with the bounds among others.
func withBound(l, bound pawl.Limits) pawl.Limits {
	l.MaxWaiting, l.MaxWaitingPerKey = bound.MaxWaiting, bound.MaxWaitingPerKey
	return l
}

// scanBounds reads the bounds of queues.
func scanBounds(rows pgx.Rows) (map[string]pawl.Limits, error) {
	all := make(map[string]pawl.Limits)
	var name []byte
	var l pawl.Limits
	_, err := pgx.ForEachRow(rows, []any{&name, &l.MaxWaiting, &l.MaxWaitingPerKey, &l.Fair}, func() error {
		all[string(name)] = l
		return nil
	})
	return all, err
}

// bounds are the bounds of all queues, as a process knows them.
type bounds struct {
	revision int64
	of       map[string]pawl.Limits
}

// backlog is what a transaction knows about waiting jobs.
type backlog struct {
	revision int64                  // how often bounds have changed
	bounds   map[string]pawl.Limits // bounds of the queues of its enqueues, whose rows it has locked
	waiting  map[keyOfQueue]int     // waiting jobs of these queues and of keys, including those that it adds
}

// lockBounds locks the bounds of the queues into which calls enqueue, and counts the jobs that wait.
func (t *txn) lockBounds(calls []*call) error {
	var known *bounds
	var err error
	var queues, keys map[string]bool
	var tags map[keyTags]bool
	for _, c := range calls {
		op, is := c.operation.(*enqueue)
		if !is {
			continue
		}
		if known, err = t.knownBounds(); err != nil || len(known.of) == 0 {
			return err
		}
		for _, e := range op.jobs {
			name := cmp.Or(e.Queue, pawl.DefaultQueue)
			l, bounded := known.of[name]
			if !bounded || t.xid != 0 && !isBounded(l) { // its jobs get their tags later
				continue
			}
			if queues == nil {
				queues, keys, tags = make(map[string]bool), make(map[string]bool), make(map[keyTags]bool)
			}
			if l.Fair && t.xid == 0 {
				t.meetFair()
				tags[keyTags{frontOf{name, prioOf(e.Priority)}, e.Key}] = true
			}
			if queues[name] = true; l.MaxWaitingPerKey > 0 && e.Key != "" {
				keys[e.Key] = true
			}
		}
	}
	if len(queues) == 0 {
		return nil
	}
	t.countWaiting(known.of, slices.Sorted(maps.Keys(queues)), bytesOf(slices.Collect(maps.Keys(keys))))
	t.readTags(tags)
	return t.tx.send(t.ctx)
}

// isBounded reports whether a row of bound has a bound.
func isBounded(l pawl.Limits) bool { return l.MaxWaiting > 0 || l.MaxWaitingPerKey > 0 }

// knownBounds returns the rows of bound as they were when the transaction began, or later.
func (t *txn) knownBounds() (*bounds, error) {
	known := t.q.bounds.Load()
	switch {
	case known != nil && known.revision == t.revision:
		return known, nil
	case t.revision == 0: // no bound was ever set
		return new(bounds), nil
	}
	return t.readBounds()
}

// boundsNamed names the bounds that an enqueue locks, among those that this process knows.
func (q *Queue) boundsNamed(op *enqueue) (names []string) {
	known := q.bounds.Load()
	if known == nil || len(known.of) == 0 {
		return nil
	}
	for _, e := range op.jobs {
		if name := cmp.Or(e.Queue, pawl.DefaultQueue); known.of[name] != (pawl.Limits{}) {
			names = append(names, "bound "+name)
		}
	}
	return names
}

// readBounds reads the bounds of all queues.
func (t *txn) readBounds() (*bounds, error) {
	rows, err := t.tx.Query(t.ctx, t.q.sql(sqlBounds))
	if err != nil {
		return nil, err
	}
	of, err := scanBounds(rows)
	if err != nil {
		return nil, err
	}
	known := &bounds{t.revision, of}
	t.q.bounds.Store(known)
	return known, nil
}

// countWaiting adds the statements to the pipe that lock the known rows of queues in bound and count the waiting jobs.
// A transaction of the app that does not see later commits of others cannot count.
func (t *txn) countWaiting(known map[string]pawl.Limits, queues []string, keys [][]byte) {
	t.bounds, t.waiting = make(map[string]pawl.Limits), make(map[keyOfQueue]int)
	var bounded, perKey []string
	for _, name := range queues {
		if known[name].MaxWaiting > 0 {
			bounded = append(bounded, name)
		}
		if known[name].MaxWaitingPerKey > 0 {
			perKey = append(perKey, name)
		}
	}
	if t.xid != 0 {
		t.write(sqlIsolation).QueryRow(func(row pgx.Row) error {
			var level string
			if err := row.Scan(&level); err != nil || level == "read committed" {
				return err
			}
			const reason = "its isolation level is %s; an enqueue into queue %q, whose waiting jobs have a bound, needs read committed"
			return &pawl.InvalidError{Field: "transaction", Reason: fmt.Sprintf(reason, level, queues[0])}
		})
	}
	t.write(sqlLockBounds, bytesOf(queues)).Query(func(rows pgx.Rows) (err error) {
		if t.bounds, err = scanBounds(rows); err != nil {
			return err
		}
		for _, name := range queues {
			if t.bounds[name] != known[name] {
				return errRace // they have changed in between
			}
			if t.bounds[name].Fair && t.xid == 0 {
				t.ours[name] = true
			}
		}
		return nil
	})
	if len(bounded) > 0 {
		t.write(sqlWaitingJobs, bytesOf(bounded)).Query(func(rows pgx.Rows) error { return scanWaiting(rows, false, t.waiting) })
	}
	if len(perKey) > 0 && len(keys) > 0 {
		t.write(sqlWaitingKeys, bytesOf(perKey), keys).Query(func(rows pgx.Rows) error { return scanWaiting(rows, true, t.waiting) })
	}
}

// scanWaiting reads how many jobs wait, of queues, or of their keys.
func scanWaiting(rows pgx.Rows, keyed bool, waiting map[keyOfQueue]int) error {
	var name, key []byte
	var n int
	fields := []any{&name, &n}
	if keyed {
		fields = []any{&name, &key, &n}
	}
	_, err := pgx.ForEachRow(rows, fields, func() error {
		waiting[keyOfQueue{string(name), string(key)}] = n
		return nil
	})
	return err
}

// fits returns [pawl.ErrQueueFull] unless an admitted batch has room. It counts the batch, for the later calls.
func (t *txn) fits(batch []*core.Newcomer) error {
	if len(t.bounds) == 0 {
		return nil
	}
	b := t.Backlog(batch, func(queue string) pawl.Limits { return t.bounds[queue] })
	if err := b.Check(func(queue, key string) int { return t.waiting[keyOfQueue{queue, key}] }); err != nil {
		return err
	}
	b.Each(func(queue, key string, n int) { t.waiting[keyOfQueue{queue, key}] += n })
	return nil
}

// putBound stores the bounds of a queue.
func (c *limitsChange) putBound(name string, before, l pawl.Limits) error {
	if l == before {
		return nil
	}
	_, err := c.tx.Exec(c.ctx, c.sql(sqlBoundsChanged))
	switch {
	case err != nil:
	case l == pawl.Limits{}:
		_, err = c.tx.Exec(c.ctx, c.sql(sqlRemoveBound), []byte(name))
	default:
		_, err = c.tx.Exec(c.ctx, c.sql(sqlSetBound), []byte(name), l.MaxWaiting, l.MaxWaitingPerKey, l.Fair)
	}
	return err
}
