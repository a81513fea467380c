package postgres

import (
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/gopawl/pawl"
)

// A job that falls due in a fair queue gets its tag here. So does a late job, which became ready while another session gave tags,
// or in a transaction of the app.

const (
	// sqlLate reports whether one of the queues $1 has jobs to promote.
	sqlLate = `SELECT EXISTS (SELECT FROM pawl.queue q JOIN pawl.line l ON l.queue = q.id
WHERE q.name = ANY($1) AND EXISTS (SELECT FROM pawl.job j WHERE j.place = 1 AND j.line = l.id AND j.since <= $2))`

	// sqlPromoteFair is sqlPromote if there are fair queues. It locks and returns the jobs of the fair queues $3, and
	// skips the fair queues $4. If $5 is set and some of the fair queues have jobs to promote, it promotes nothing,
	// and returns the names of these queues.
	sqlPromoteFair = `WITH fair AS MATERIALIZED (
	SELECT l.id, q.name, q.name = ANY($3::bytea[]) AS ours,
		$5::bool AND EXISTS (SELECT FROM pawl.job j WHERE j.place = 1 AND j.line = l.id AND j.since <= $1) AS due
	FROM pawl.queue q JOIN pawl.line l ON l.queue = q.id WHERE q.name = ANY($3::bytea[]) OR q.name = ANY($4::bytea[])),
due AS MATERIALIZED (
	SELECT id, line, since, seq FROM pawl.job
	WHERE place = 1 AND since <= $1 AND line <> ALL(ARRAY(SELECT id FROM fair WHERE NOT ours)) AND NOT EXISTS (SELECT FROM fair WHERE due)
	ORDER BY since, seq LIMIT $2 FOR UPDATE SKIP LOCKED),
moved AS (UPDATE pawl.job j SET place = CASE WHEN j.waits THEN -1 WHEN j.turn IS NOT NULL AND j.holds IS NULL THEN -2 ELSE 0 END
	FROM due WHERE j.id = due.id AND due.line <> ALL(ARRAY(SELECT id FROM fair)) RETURNING j.place, j.turn),
noted AS (INSERT INTO pawl.turn (name) SELECT DISTINCT turn FROM moved WHERE place = -2)
SELECT (SELECT count(*) FROM moved), ARRAY(SELECT id FROM due WHERE line = ANY(ARRAY(SELECT id FROM fair)) ORDER BY since, seq),
	ARRAY(SELECT DISTINCT name FROM fair WHERE due)`
)

// promotion is the progress of a transaction in promoting due jobs.
type promotion struct {
	ours, others [][]byte // fair queues whose rows it has locked, and fair queues that it skips
	looks        bool     // it still has to look for jobs of fair queues
}

// newPromotion returns a promotion that has not begun.
func (t *txn) newPromotion() (*promotion, error) {
	known, err := t.knownBounds()
	if err != nil {
		return nil, err
	}
	p := &promotion{ours: [][]byte{}}
	for name, l := range known.of {
		if l.Fair {
			p.others, p.looks = append(p.others, []byte(name)), true
		}
	}
	return p, nil
}

// portion promotes a portion of the due jobs. It returns how many.
func (p *promotion) portion(t *txn) (n int, err error) {
	if len(p.ours)+len(p.others) == 0 {
		return n, t.tx.QueryRow(t.ctx, t.q.sql(sqlPromote), nanos(t.Now), t.portion()).Scan(&n)
	}
	var ids pgtype.FlatArray[pgtype.UUID]
	var due pgtype.FlatArray[[]byte]
	err = t.tx.QueryRow(t.ctx, t.q.sql(sqlPromoteFair), nanos(t.Now), t.portion(), p.ours, orNone(p.others), p.looks).Scan(&n, &ids, &due)
	if p.looks = false; err != nil {
		return n, err
	}
	if len(due) > 0 {
		if err := p.take(t, due); err != nil {
			return n, err
		}
		return p.portion(t)
	}
	return n + len(ids), t.promoteFair(ids)
}

// take makes a promotion include the fair queues whose rows no other session has locked.
func (p *promotion) take(t *txn, due [][]byte) error {
	t.meetFair()
	queues := make(map[string]bool)
	for _, name := range due {
		queues[string(name)] = true
	}
	err := t.takeFair(queues)
	p.others = slices.DeleteFunc(p.others, func(name []byte) bool {
		if t.ours[string(name)] {
			p.ours = append(p.ours, name)
		}
		return t.ours[string(name)]
	})
	return err
}

// promoteFair makes jobs ready, in the order in which they became due. If the transaction of a job began before the
// order of its queue was declared, the job begins to follow that order.
func (t *txn) promoteFair(found []pgtype.UUID) error {
	if len(found) == 0 {
		return nil
	}
	ids := make([]pawl.ID, len(found))
	for i, id := range found {
		ids[i] = id.Bytes
	}
	t.readOrders(slices.Collect(maps.Keys(t.ours))) // read again now that the rows are locked
	if _, err := t.load(ids); err != nil {
		return err
	}
	var unaware []*job
	for _, id := range ids {
		j := t.Get(id)
		if j == nil || j.State != pawl.Delayed {
			continue
		}
		if t.Put(j, pawl.Ready); j.turn == "" && j.Key != "" && t.orders[j.Queue] != pawl.OrderNone {
			unaware = append(unaware, j)
		}
	}
	t.follow(unaware)
	return t.flush()
}

// findLate adds a statement to the pipe that looks for jobs to promote in the fair queues of a fetch. A transaction of
// the app stored these jobs, so the scheduler does not know when they are due.
func (t *txn) findLate(queues [][]byte) {
	t.write(sqlLate, queues, nanos(t.Now)).QueryRow(func(row pgx.Row) error { return row.Scan(&t.late) })
}

// promoteLate promotes a portion of the jobs that findLate has found, unless its transaction has promoted some already.
// Enqueues wait for a transaction that gives tags, so the next transaction promotes the rest: more says that there may
// be some. If another session has locked some, a fetch looks again soon. If keys were taken from the queues inTurn,
// promoteLate also takes the keys of the promoted jobs. Taken is nil if no queue of the fetch has an order.
func (t *txn) promoteLate(taken *takenTurns, inTurn [][]byte) (more bool, err error) {
	if !t.late {
		return false, nil
	}
	t.late, t.rest = false, earlier(t.rest, t.Now.Add(lockedSleep))
	if t.promoted {
		return true, nil
	}
	if more, err = t.promote(1); err != nil || taken == nil {
		return more, err
	}
	t.takeTurns(inTurn, taken)
	return more, t.tx.send(t.ctx)
}

// orNone returns a list that is not NULL.
func orNone(list [][]byte) [][]byte {
	if list == nil {
		return [][]byte{}
	}
	return list
}
