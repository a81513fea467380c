package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// sqlStats counts the jobs of each queue by their places, along the indexes. Place 9 stands for the leased
// jobs, which are also at place 0. The ready time of the oldest job comes from the first job of each priority.
const sqlStats = `WITH counts AS (
	SELECT line, 0 AS place, count(*) AS n FROM pawl.job WHERE place = 0 GROUP BY line
	UNION ALL SELECT line, place, count(*) FROM pawl.job WHERE place < 0 GROUP BY line, place
	UNION ALL SELECT line, place, count(*) FROM pawl.job WHERE place > 0 AND place <> 4 GROUP BY line, place
	UNION ALL SELECT line, 4, count(*) FROM pawl.job WHERE place = 4 GROUP BY line
	UNION ALL SELECT j.line, 9, count(*) FROM pawl.claim c, unnest(c.ids) AS leased(id) JOIN pawl.job j USING (id)
		WHERE j.token = c.token GROUP BY j.line)
SELECT q.name, q.paused, c.place, COALESCE(sum(c.n), 0)::int8, min(first.since)
FROM pawl.queue q LEFT JOIN pawl.line l ON l.queue = q.id LEFT JOIN counts c ON c.line = l.id
LEFT JOIN LATERAL (
	SELECT min(p.since) AS since FROM unnest('{0,1,2,3,4,5}'::int2[]) AS n(lane), LATERAL (
		WITH RECURSIVE heads AS (
			(SELECT prio, since FROM pawl.job WHERE place = 0 AND line = l.id AND lane = n.lane AND token IS NULL
				ORDER BY prio, since, seq LIMIT 1)
			UNION ALL
			SELECT next.* FROM heads, LATERAL (
				SELECT prio, since FROM pawl.job
				WHERE place = 0 AND line = l.id AND lane = n.lane AND token IS NULL AND prio > heads.prio
				ORDER BY prio, since, seq LIMIT 1) next)
		SELECT since FROM heads) p) first ON c.place = 0
GROUP BY q.id, c.place ORDER BY q.id`

// Stats returns how many jobs each queue has in each state. It counts rows of indexes, so its time
// grows with the number of jobs: about a second for some millions.
func (q *Queue) Stats(ctx context.Context) (stats pawl.Stats, err error) {
	err = q.look(ctx, func(tx *viewTx) error {
		stats = pawl.Stats{}
		rows, err := tx.Query(ctx, q.sql(sqlStats))
		if err != nil {
			return err
		}
		var name []byte
		var paused bool
		var place *int16
		var n int
		var oldest *int64
		_, err = pgx.ForEachRow(rows, []any{&name, &paused, &place, &n, &oldest}, func() error {
			last := len(stats.Queues) - 1
			if last < 0 || stats.Queues[last].Name != string(name) {
				stats.Queues = append(stats.Queues, pawl.QueueStats{Name: string(name), Paused: paused})
				last++
			}
			if place == nil {
				return nil // a line without a job
			}
			row := &stats.Queues[last]
			switch *place {
			case 9:
				row.Leased += n
				row.Ready -= n
			case placeReady:
				if row.Ready += n; oldest != nil {
					row.Oldest = timeOf(*oldest)
				}
			case placeTurn:
				row.Ready += n
			case placeWaiting:
				row.Ready, row.Blocked = row.Ready+n, row.Blocked+n
			case placeDelayed:
				row.Delayed = n
			case placeDead:
				row.Dead = n
			case placeCompleted:
				row.Completed = n
			}
			return nil
		})
		if err != nil {
			return err
		}
		return q.countBlocked(ctx, tx, &stats)
	})
	return stats, err
}

// sqlFairHeads reads the records of the first ready job of each line, lane, and priority of queues.
const sqlFairHeads = `SELECT q.name, j.record
FROM pawl.queue q JOIN pawl.line l ON l.queue = q.id, unnest('{0,1,2,3,4,5}'::int2[]) AS n(lane), LATERAL (
	WITH RECURSIVE heads AS (
		(SELECT prio, record FROM pawl.job WHERE place = 0 AND line = l.id AND lane = n.lane AND token IS NULL
			ORDER BY prio, since, seq LIMIT 1)
		UNION ALL
		SELECT next.* FROM heads, LATERAL (
			SELECT prio, record FROM pawl.job
			WHERE place = 0 AND line = l.id AND lane = n.lane AND token IS NULL AND prio > heads.prio
			ORDER BY prio, since, seq LIMIT 1) next)
	SELECT record FROM heads) j
WHERE q.name = ANY($1)`

// fairOldest returns, for fair queues, since when the jobs that run next are ready. It reads records, since the rows of
// these jobs have their tags in place of the time.
func (q *Queue) fairOldest(ctx context.Context, tx Tx, rooms map[string]*room) (map[string]time.Time, error) {
	var fair []string
	for name, r := range rooms {
		if r.limits.Fair {
			fair = append(fair, name)
		}
	}
	if len(fair) == 0 {
		return nil, nil
	}
	rows, err := tx.Query(ctx, q.sql(sqlFairHeads), bytesOf(fair))
	if err != nil {
		return nil, err
	}
	oldest := make(map[string]time.Time)
	var name, record []byte
	_, err = pgx.ForEachRow(rows, []any{&name, &record}, func() error {
		if e, _, err := driver.ParseRecord(record); err == nil { // a fetch finds the damage
			oldest[string(name)] = earlier(oldest[string(name)], e.NotBefore)
		}
		return nil
	})
	return oldest, err
}

// countBlocked adds the limits of queues, the declared limits that an operator overrides, and how many ready jobs are
// blocked.
func (q *Queue) countBlocked(ctx context.Context, tx Tx, stats *pawl.Stats) error {
	names := make([]string, len(stats.Queues))
	for i := range stats.Queues {
		names[i] = stats.Queues[i].Name
	}
	declared, err := readDeclared(ctx, tx, q.sql, names)
	if err != nil {
		return err
	}
	keys, rooms, err := q.keysOf(ctx, tx, names...)
	if err != nil {
		return err
	}
	oldest, err := q.fairOldest(ctx, tx, rooms)
	if err != nil {
		return err
	}
	for i := range stats.Queues {
		row := &stats.Queues[i]
		if at, fair := oldest[row.Name]; fair {
			row.Oldest = at
		}
		row.Declared = declared[row.Name]
		if r := rooms[row.Name]; r != nil {
			row.Limits, row.Rests = r.limits, driver.Rests(r.rests[""], r.now)
			if !r.oldest.IsZero() && (row.Oldest.IsZero() || r.oldest.Before(row.Oldest)) {
				row.Oldest = r.oldest
			}
		}
		for _, k := range keys[row.Name] {
			if row.Blocked += k.Blocked; k.Held {
				row.Held++
			}
		}
	}
	return nil
}

const sqlClients = `SELECT count(*) FROM pawl.process WHERE id <> $1 AND live_until > COALESCE($2, ` + sqlClock + `)`

// Clients returns how many other clients have the queue open. A client that ended without Close
// counts for as long as a lease lasts.
func (q *Queue) Clients(ctx context.Context) (n int, err error) {
	clients := new(clients)
	if err := q.submit(ctx, clients); err != nil {
		return 0, err
	}
	return clients.n, nil
}

// clients is a call of Clients. Only the scheduler knows the row of its process.
type clients struct{ n int }

func (*clients) needs(*needs) {}

func (op *clients) apply(t *txn) error {
	return t.tx.QueryRow(t.ctx, t.q.sql(sqlClients), t.q.process, t.q.clock()).Scan(&op.n)
}
