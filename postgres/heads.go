package postgres

import (
	"cmp"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/gopawl/pawl"
)

const (
	// sqlHeads reads the jobs that may be the heads of the keys $1 of the queues $2, and the first jobs that wait for their
	// turn. It locks the jobs that are neither leased nor locked by another session. It also reads the first $3 late jobs
	// of each queue that were due before one of its heads. A key that a job holds does not need late jobs. One statement
	// reads both: with two, a job that another session promotes in between would be missed. It does not compare with the
	// time of the fetch, since jobs become ready after that time, while the fetch waits for others. Column turn of a late
	// job may be NULL, if its transaction began before the order was declared.
	sqlHeads = `WITH heads AS MATERIALIZED (
	SELECT n.name, n.queue, j.* FROM unnest($1::bytea[], $2::bytea[]) AS n(name, queue), LATERAL (
		(SELECT id, place, COALESCE(due, since) AS due, seq, COALESCE(holds, false) AS holds, token IS NOT NULL AS leased
			FROM pawl.job WHERE turn = n.name AND place > -2 AND (place = 0 OR holds))
		UNION ALL
		(SELECT id, place, COALESCE(due, since), seq, false, false FROM pawl.job WHERE turn = n.name AND place = -2
			ORDER BY COALESCE(due, since), seq LIMIT 1)) j),
locked AS MATERIALIZED (
	SELECT id, place, COALESCE(due, since) AS due, token FROM pawl.job WHERE id = ANY(ARRAY(SELECT id FROM heads WHERE NOT leased)) ORDER BY id FOR UPDATE SKIP LOCKED),
late AS MATERIALIZED (
	SELECT h.queue || '\x00'::bytea || j.key AS name, j.since, j.seq
	FROM (SELECT queue, max(due) AS due FROM heads WHERE NOT holds AND NOT leased GROUP BY queue) h JOIN pawl.queue q ON q.name = h.queue, LATERAL (
		SELECT of_line.* FROM pawl.line l, LATERAL (
			SELECT key, since, seq FROM pawl.job
			WHERE place = 1 AND line = l.id AND since <= h.due AND key IS NOT NULL AND waits IS NULL
			ORDER BY since, seq LIMIT $3) of_line
		WHERE l.queue = q.id ORDER BY of_line.since, of_line.seq LIMIT $3) j)
SELECT 0::int2, name, id, place, due, seq, holds, leased FROM heads
UNION ALL SELECT 1::int2, NULL, id, place, due, 0::int8, false, token IS NOT NULL FROM locked
UNION ALL SELECT 2::int2, name, NULL, 1::int2, since, seq, false, false FROM late`

	sqlSetHeads = `UPDATE pawl.job j SET place = t.place, holds = NULLIF(t.holds, false)
FROM unnest($1::uuid[], $2::int2[], $3::bool[]) AS t(id, place, holds) WHERE j.id = t.id`
)

// turnJob is a job that may be the head of its key.
type turnJob struct {
	id            pawl.ID
	place         int16
	due, seq      int64
	holds, leased bool
	free          bool // this transaction has locked it, and it is unchanged
	late          bool // it is not ready yet
}

// elect chooses the heads of keys. It keeps the keys whose first job is late, or locked by another session, for a later
// transaction, and returns how many it keeps.
func (t *txn) elect(names []string) (heldUp int, err error) {
	if len(names) == 0 {
		return 0, nil
	}
	keys := make(map[string][]*turnJob)
	for part := range slices.Chunk(names, portion) {
		t.readHeads(part, keys)
	}
	if err := t.tx.send(t.ctx); err != nil {
		return 0, err
	}
	var changed []*turnJob
	for _, name := range names {
		moved := headOf(keys[name])
		if slices.ContainsFunc(moved, func(j *turnJob) bool { return !j.free }) {
			heldUp++
			t.keepTurn(name)
			if moved[0].late { // this session may have to promote it
				t.FallsDue(t.Now.Add(lockedSleep))
			}
			continue
		}
		changed = append(changed, moved...)
	}
	t.writeHeads(changed)
	return heldUp, nil
}

// readHeads adds a statement to the pipe that reads the jobs that may be the heads of keys. It also reads the late jobs
// of the queues of these keys, whatever their keys: a late job may go before the other jobs of its key, which then wait
// until it is promoted. If a queue has too many late jobs to read, readHeads assumes that each of its keys has a late job
// that was due with the last one read.
func (t *txn) readHeads(names []string, keys map[string][]*turnJob) {
	queues := make([]string, len(names))
	for i, name := range names {
		queues[i] = queueOfTurn(name).queue
	}
	t.write(sqlHeads, bytesOf(names), bytesOf(queues), portion).Query(func(rows pgx.Rows) error {
		const ofHeads, ofLocked = 0, 1
		heads, locked := make(map[pawl.ID]*turnJob), make(map[pawl.ID]turnJob)
		late := make(map[string][]*turnJob) // by queue
		var part int16
		var name []byte
		var id pgtype.UUID
		var c turnJob
		_, err := pgx.ForEachRow(rows, []any{&part, &name, &id, &c.place, &c.due, &c.seq, &c.holds, &c.leased}, func() error {
			next := c
			next.id = id.Bytes
			if part == ofLocked {
				locked[next.id] = next
				return nil
			}
			keys[string(name)] = append(keys[string(name)], &next)
			if part == ofHeads {
				heads[next.id] = &next
				return nil
			}
			next.late = true
			queue := queueOfTurn(string(name)).queue
			late[queue] = append(late[queue], &next)
			return nil
		})
		for id, j := range heads {
			l, found := locked[id]
			j.free = found && l.place == j.place && l.due == j.due && !l.leased
		}
		last := make(map[string]*turnJob) // of the queues with more late jobs
		for queue, all := range late {
			if len(all) == portion {
				last[queue] = slices.MaxFunc(all, byDue)
			}
		}
		for i, name := range names {
			if j := last[queues[i]]; j != nil && len(keys[name]) > 0 {
				keys[name] = append(keys[name], j)
			}
		}
		return err
	})
}

// byDue orders jobs by when they are due.
func byDue(a, b *turnJob) int {
	return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.seq, b.seq))
}

// headOf chooses the head of a key. It returns the jobs that have to move so that fetches find the head and no other
// job of the key. If a late job goes before the head, headOf returns only the late job, and no job of the key can run
// yet.
func headOf(jobs []*turnJob) (moved []*turnJob) {
	slices.SortFunc(jobs, func(a, b *turnJob) int {
		return cmp.Or(first(a.holds, b.holds), first(a.leased, b.leased), byDue(a, b))
	})
	for i, j := range jobs {
		before := *j
		switch {
		case j.late && i == 0:
			return []*turnJob{j}
		case j.leased || j.late:
		case i > 0: // a second job that holds the key comes from elsewhere, such as another database
			if j.holds = false; j.place == placeReady {
				j.place = placeTurn
			}
		case j.place == placeTurn:
			j.place = placeReady
		}
		if *j != before {
			moved = append(moved, j)
		}
	}
	return moved
}

// first orders true before false.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// keepTurn makes the fetches of this transaction skip a key, and a fetch of another transaction look at the key soon.
func (t *txn) keepTurn(name string) {
	if t.kept == nil {
		t.kept = make(map[keyOfQueue]bool)
	}
	t.kept[queueOfTurn(name)] = true
	t.rest = earlier(t.rest, t.Now.Add(lockedSleep))
}

func (t *txn) writeHeads(jobs []*turnJob) {
	if len(jobs) == 0 {
		return
	}
	var ids []pawl.ID
	var places []int16
	var holds []bool
	for _, j := range jobs {
		ids, places, holds = append(ids, j.id), append(places, j.place), append(holds, j.holds)
	}
	t.write(sqlSetHeads, uuids(ids), places, holds)
}
