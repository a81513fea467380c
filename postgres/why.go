package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/core"
)

const (
	// sqlReadyKeys counts the ready jobs of queues by key: all of them, and those whose effect no job has.
	sqlReadyKeys = `SELECT q.name, j.key, count(*)::int8, count(*) FILTER (
	WHERE NOT EXISTS (SELECT FROM pawl.effect e WHERE e.name = j.effect AND e.id IS NOT NULL))::int8
FROM pawl.job j JOIN pawl.line l ON l.id = j.line JOIN pawl.queue q ON q.id = l.queue
WHERE j.place IN (-2, 0) AND j.token IS NULL AND j.key IS NOT NULL AND q.name = ANY($1) GROUP BY 1, 2`

	// sqlKeyHeads reads the heads of the keys of queues with an order, whether they are ready, and whether their effect
	// is free.
	sqlKeyHeads = `SELECT DISTINCT ON (j.turn) q.name, j.key, j.id, COALESCE(j.due, j.since), j.place IN (-2, 0) AND j.token IS NULL, j.place = 3, NOT EXISTS (
	SELECT FROM pawl.effect e WHERE e.name = j.effect AND e.id IS NOT NULL)
FROM pawl.job j JOIN pawl.line l ON l.id = j.line JOIN pawl.queue q ON q.id = l.queue
WHERE j.turn IS NOT NULL AND (j.place IN (-2, 0) OR j.holds) AND q.name = ANY($1)
ORDER BY j.turn, j.holds DESC NULLS LAST, j.token IS NULL, COALESCE(j.due, j.since), j.seq`

	// sqlHoldersOfKey reads some leased jobs of a key.
	sqlHoldersOfKey = `SELECT j.id FROM pawl.claim c, unnest(c.ids) AS leased(id)
JOIN pawl.job j USING (id) JOIN pawl.line l ON l.id = j.line JOIN pawl.queue q ON q.id = l.queue
WHERE j.token = c.token AND q.name = $1 AND j.key = $2 ORDER BY j.id LIMIT $3`

	// sqlReadyOfKey reads the first ready jobs of a key, and whether their effect is free. Jobs in order come in that
	// order, after a retry that holds the key.
	sqlReadyOfKey = `SELECT j.id, NOT EXISTS (SELECT FROM pawl.effect e WHERE e.name = j.effect AND e.id IS NOT NULL)
FROM pawl.job j JOIN pawl.line l ON l.id = j.line JOIN pawl.queue q ON q.id = l.queue
WHERE j.place IN (-2, 0) AND j.token IS NULL AND q.name = $1 AND j.key = $2
ORDER BY j.holds DESC NULLS LAST, CASE WHEN j.turn IS NULL THEN j.prio END, CASE WHEN j.turn IS NULL THEN j.since ELSE COALESCE(j.due, j.since) END, j.seq LIMIT $3`

	sqlPaused         = `SELECT EXISTS (SELECT FROM pawl.queue WHERE name = $1 AND paused)`
	sqlHolderOfEffect = `SELECT id FROM pawl.effect WHERE name = $1 AND id IS NOT NULL`
)

// keysOf returns the keys of queues with limits per key, with their leased and ready jobs and how far their rates are
// used up. Short keys come first.
func (q *Queue) keysOf(ctx context.Context, tx Tx, names ...string) (of map[string][]pawl.KeyStats, rooms map[string]*room, err error) {
	limits, err := readLimits(ctx, tx, q.sql, names)
	if err != nil || len(limits) == 0 {
		return nil, nil, err
	}
	if rooms, err = q.readRooms(ctx, tx, limits, q.Now()); err != nil {
		return nil, nil, err
	}
	counts := make(map[keyOfQueue]*pawl.KeyStats)
	count := func(queue, key string) *pawl.KeyStats {
		k := counts[keyOfQueue{queue, key}]
		if k == nil {
			k = &pawl.KeyStats{Key: key}
			counts[keyOfQueue{queue, key}] = k
		}
		return k
	}
	var perKey, bounded []string
	for name, r := range rooms {
		if !r.limits.PerKey() {
			continue
		}
		if perKey = append(perKey, name); r.limits.MaxWaitingPerKey > 0 {
			bounded = append(bounded, name)
		}
		for key, n := range r.byKey {
			count(name, key).Running = n
		}
		for key := range r.tats {
			if key != "" {
				k := count(name, key)
				k.Next, k.Rests = r.nextOf(key), driver.Rests(r.rests[key], r.now)
			}
		}
	}
	rows, err := tx.Query(ctx, q.sql(sqlReadyKeys), bytesOf(perKey))
	if err != nil {
		return nil, nil, err
	}
	var name, key []byte
	var ready, free int
	if _, err = pgx.ForEachRow(rows, []any{&name, &key, &ready, &free}, func() error {
		k := count(string(name), string(key))
		k.Ready, k.Blocked = ready, ready-min(free, rooms[string(name)].leftOf(k.Key))
		return nil
	}); err != nil {
		return nil, nil, err
	}
	if err := q.readBacklogs(ctx, tx, bounded, count); err != nil {
		return nil, nil, err
	}
	if err := q.readHeads(ctx, tx, rooms, count); err != nil {
		return nil, nil, err
	}
	of = make(map[string][]pawl.KeyStats)
	for at, k := range counts {
		of[at.queue] = append(of[at.queue], *k)
	}
	for _, list := range of {
		slices.SortFunc(list, func(a, b pawl.KeyStats) int { return byLength(a.Key, b.Key) })
	}
	return of, rooms, nil
}

// readBacklogs counts the waiting jobs of the keys of queues that bound these.
func (q *Queue) readBacklogs(ctx context.Context, tx Tx, queues []string, count func(queue, key string) *pawl.KeyStats) error {
	if len(queues) == 0 {
		return nil
	}
	rows, err := tx.Query(ctx, q.sql(sqlWaitingKeys), bytesOf(queues), nil)
	if err != nil {
		return err
	}
	waiting := make(map[keyOfQueue]int)
	err = scanWaiting(rows, true, waiting)
	for of, n := range waiting {
		count(of.queue, of.key).Backlog = n
	}
	return err
}

// readHeads fills in the heads of the keys of queues with an order. All ready jobs of such a key except the head are
// blocked.
func (q *Queue) readHeads(ctx context.Context, tx Tx, rooms map[string]*room, count func(queue, key string) *pawl.KeyStats) error {
	var ordered []string
	for name, r := range rooms {
		if r.limits.InOrder != pawl.OrderNone {
			ordered = append(ordered, name)
		}
	}
	if len(ordered) == 0 {
		return nil
	}
	rows, err := tx.Query(ctx, q.sql(sqlKeyHeads), bytesOf(ordered))
	if err != nil {
		return err
	}
	var name, key []byte
	var id pgtype.UUID
	var since int64
	var ready, dead, free bool
	_, err = pgx.ForEachRow(rows, []any{&name, &key, &id, &since, &ready, &dead, &free}, func() error {
		k, r := count(string(name), string(key)), rooms[string(name)]
		if k.Head, k.Held, k.Blocked = id.Bytes, dead, k.Ready; ready {
			r.oldest = earlier(r.oldest, timeOf(since))
			if free && r.leftOf(k.Key) > 0 {
				k.Blocked--
			}
		}
		return nil
	})
	return err
}

func byLength(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) }

// holdersOf reads some leased jobs of a key.
func (q *Queue) holdersOf(ctx context.Context, tx Tx, queue, key string) ([]pawl.ID, error) {
	rows, err := tx.Query(ctx, q.sql(sqlHoldersOfKey), []byte(queue), []byte(key), pawl.MaxHolders)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (pawl.ID, error) {
		var id pgtype.UUID
		err := row.Scan(&id)
		return id.Bytes, err
	})
}

// waitingOf reads some blocked jobs of a key: the ready jobs after the first ones that may run.
func (q *Queue) waitingOf(ctx context.Context, tx Tx, queue string, k pawl.KeyStats) (ids []pawl.ID, err error) {
	free := k.Ready - k.Blocked
	rows, err := tx.Query(ctx, q.sql(sqlReadyOfKey), []byte(queue), []byte(k.Key), free+pawl.MaxHolders)
	if err != nil {
		return nil, err
	}
	var id pgtype.UUID
	var unused bool // its effect is free
	_, err = pgx.ForEachRow(rows, []any{&id, &unused}, func() error {
		switch {
		case free > 0 && unused && (k.Head.IsZero() || k.Head == pawl.ID(id.Bytes)):
			free--
		case len(ids) < pawl.MaxHolders:
			ids = append(ids, id.Bytes)
		}
		return nil
	})
	return ids, err
}

// Why returns what keeps a job from running now. It returns [pawl.ErrNotFound] if the job is not in
// the queue. If the queue has limits, Why counts its keys.
func (q *Queue) Why(ctx context.Context, id pawl.ID) (all []pawl.Obstacle, err error) {
	e, err := q.Job(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("look for what keeps a job from running: %w", err)
	}
	err = q.view(ctx, func(tx *viewTx) error {
		f := driver.Facts{Job: e, Queue: pawl.QueueStats{Name: e.Queue}}
		if err := tx.QueryRow(ctx, q.sql(sqlPaused), []byte(e.Queue)).Scan(&f.Queue.Paused); err != nil {
			return err
		}
		keys, rooms, err := q.keysOf(ctx, tx, e.Queue)
		if err != nil {
			return err
		}
		if r := rooms[e.Queue]; r != nil {
			f.Queue.Limits, f.Queue.Leased, f.QueueNext = r.limits, r.leased, r.pace.Next(r.tats[""], r.now)
			if r.pool != nil {
				f.Pooled = r.pool.leased
			}
			f.Queue.Rests = driver.Rests(r.rests[""], r.now)
			for _, k := range keys[e.Queue] {
				if k.Key == e.Key {
					f.Key = k
				}
			}
			if f.Key.Running > 0 {
				if f.Key.Holders, err = q.holdersOf(ctx, tx, e.Queue, e.Key); err != nil {
					return err
				}
			}
		}
		if name := core.EffectName(e); name != "" && e.State == pawl.Ready {
			var holder pgtype.UUID
			err := tx.QueryRow(ctx, q.sql(sqlHolderOfEffect), []byte(name)).Scan(&holder)
			if err != nil && !errors.Is(err, pgx.ErrNoRows) {
				return err
			}
			f.Holder = holder.Bytes
		}
		if f.Prerequisites, err = q.prerequisitesOf(ctx, tx, id); err != nil {
			return err
		}
		all = f.Obstacles()
		return nil
	})
	return all, err
}

// Key reads one key of a queue. It returns [pawl.ErrNotFound] if the queue has no limits per key, or
// no counts of that key. It counts all keys of the queue.
func (q *Queue) Key(ctx context.Context, queue, key string) (k pawl.KeyStats, err error) {
	err = q.look(ctx, func(tx *viewTx) error {
		keys, _, err := q.keysOf(ctx, tx, queue)
		if err != nil {
			return err
		}
		at := slices.IndexFunc(keys[queue], func(k pawl.KeyStats) bool { return k.Key == key })
		if at < 0 {
			return driver.NoKey(queue, key)
		}
		k = keys[queue][at]
		if k.Holders, err = q.holdersOf(ctx, tx, queue, key); err == nil && k.Blocked > 0 {
			k.Waiting, err = q.waitingOf(ctx, tx, queue, k)
		}
		return err
	})
	return k, err
}

// Keys reads up to max keys of a queue with limits per key, beginning after the key after. An empty after begins at
// the first key. It returns the keys that have ready or leased jobs, or whose rate is partly used up. Short keys come
// first. It counts all keys of the queue, so it takes longer the more jobs with keys are ready.
func (q *Queue) Keys(ctx context.Context, queue, after string, max int) (all []pawl.KeyStats, err error) {
	if err := driver.CheckKeys(after, max); err != nil {
		return nil, err
	}
	err = q.look(ctx, func(tx *viewTx) error {
		keys, _, err := q.keysOf(ctx, tx, queue)
		all = slices.DeleteFunc(keys[queue], func(k pawl.KeyStats) bool { return byLength(k.Key, after) <= 0 })
		all = all[:min(len(all), max)]
		return err
	})
	return all, err
}
