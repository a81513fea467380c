package postgres

import (
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// In a queue with [pawl.Limits.Fair], a job that becomes ready gets a tag (see [driver.NextTag]). Its record has it, and
// since has it in place of the time, so a fetch reads the jobs in the order of their tags. The last tag of a key is that of
// its last job, which an index finds, so nothing is counted. A transaction gives tags while it has locked the row of the
// queue in bound. Enqueues wait for that lock. What else becomes ready while another session has it, or within a
// transaction of the app, is left late: it is delayed until now, and the next transaction promotes it.
// See docs/internals/postgres.md.

const (
	// sqlTakeFair locks the rows of fair queues that no other session has locked.
	sqlTakeFair = `SELECT queue FROM pawl.bound WHERE queue = ANY($1) AND fair ORDER BY queue FOR UPDATE SKIP LOCKED`

	// sqlTags reads the fronts of priorities, 0 for none yet, and of keys the last tag that is behind it, 0 for none.
	sqlTags = `SELECT n.queue, n.key, n.prio, COALESCE(f.tag, 0), COALESCE((
	SELECT j.since FROM pawl.job j WHERE j.fair = n.queue || '\x00'::bytea || n.key AND j.prio = n.prio
		AND (j.place = 0 OR j.place = -2) AND j.since > COALESCE(f.tag, 0) ORDER BY j.since DESC LIMIT 1), 0)
FROM unnest($1::bytea[], $2::bytea[], $3::int2[]) AS n(queue, key, prio) LEFT JOIN pawl.front f ON f.queue = n.queue AND f.prio = n.prio`

	sqlFronts      = `SELECT queue, prio, tag FROM pawl.front WHERE queue = ANY($1)`
	sqlBeginFronts = `INSERT INTO pawl.front (queue, prio, tag) SELECT * FROM unnest($1::bytea[], $2::int2[], $3::int8[]) ON CONFLICT DO NOTHING`
	sqlMoveFronts  = `INSERT INTO pawl.front AS f (queue, prio, tag) SELECT * FROM unnest($1::bytea[], $2::int2[], $3::int8[])
ON CONFLICT (queue, prio) DO UPDATE SET tag = excluded.tag`
	sqlForgetFronts = `DELETE FROM pawl.front WHERE queue = $1`

	// sqlLate reports whether one of the queues $1 has jobs to promote.
	sqlLate = `SELECT EXISTS (SELECT FROM pawl.queue q JOIN pawl.line l ON l.queue = q.id
WHERE q.name = ANY($1) AND EXISTS (SELECT FROM pawl.job j WHERE j.place = 1 AND j.line = l.id AND j.since <= $2))`

	// sqlPromoteFair is sqlPromote beside fair queues. It locks the jobs of those in $3, and returns them. It passes over those
	// in $4. If $5 says so, it returns the names of those that have jobs to promote, and then it promotes nothing.
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

// fairness is what a transaction knows of queues whose keys take turns.
type fairness struct {
	ours   map[string]bool   // queues whose row it has locked
	fronts map[frontOf]int64 // as far as it has read them; 0 for none
	lasts  map[keyTags]int64 // the last tags of keys, as far as it has read them
	begun  []frontOf         // to write
	moved  map[frontOf]bool  // to write
	late   bool              // jobs of the queues of a fetch are late, or due
}

// meetFair has a transaction that meets a fair queue make room for what it will know.
func (f *fairness) meetFair() {
	if f.ours == nil {
		f.ours, f.fronts, f.lasts, f.moved = make(map[string]bool), make(map[frontOf]int64), make(map[keyTags]int64), make(map[frontOf]bool)
	}
}

// frontOf is a priority of a queue, and keyTags one of a key.
type (
	frontOf struct {
		queue string
		prio  int16
	}
	keyTags struct {
		frontOf
		key string
	}
)

func tagsOf(j *job) keyTags { return keyTags{frontOf{j.Queue, j.prio()}, j.Key} }

// fairColumn returns the column of a job with a tag, nil for one without.
func (j *job) fairColumn() []byte {
	if j.FairTag == 0 {
		return nil
	}
	return []byte(turnName(j.Queue, j.Key))
}

// giveTags gives jobs that become ready in fair queues their tags, or leaves them late.
func (t *txn) giveTags(jobs []*job) error {
	var ready []*job
	var queues map[string]bool
	for _, j := range jobs {
		if !j.readied || j.gone || j.State != pawl.Ready || j.waits || j.FairTag != 0 {
			continue
		}
		known, err := t.knownBounds()
		switch {
		case err != nil:
			return err
		case known.of[j.Queue].Fair:
			if ready = append(ready, j); queues == nil {
				queues = make(map[string]bool)
			}
			queues[j.Queue] = true
		}
	}
	if len(ready) == 0 {
		return nil
	}
	t.meetFair()
	if err := t.takeFair(queues); err != nil {
		return err
	}
	ready = slices.DeleteFunc(ready, func(j *job) bool {
		if j.late = !t.ours[j.Queue]; j.late {
			t.FallsDue(t.Now.Add(lockedSleep))
		}
		return j.late
	})
	wanted := make(map[keyTags]bool)
	for _, j := range ready {
		wanted[tagsOf(j)] = true
	}
	t.readTags(wanted)
	if err := t.tx.send(t.ctx); err != nil {
		return err
	}
	for _, j := range ready {
		t.tag(j)
	}
	t.writeFronts(sqlBeginFronts, t.begun)
	t.begun = nil
	return nil
}

// isFair reports whether the keys of a queue take turns.
func (t *txn) isFair(queue string) bool {
	known, err := t.knownBounds()
	if err != nil {
		t.broken = err
		return false
	}
	return known.of[queue].Fair
}

// takeFair locks the rows of fair queues, unless another session has. A transaction of the app locks none: all processes would
// wait for it.
func (t *txn) takeFair(queues map[string]bool) error {
	if t.xid != 0 {
		return nil
	}
	missing := maps.Clone(queues)
	maps.DeleteFunc(missing, func(name string, _ bool) bool { return t.ours[name] })
	if len(missing) == 0 {
		return nil
	}
	rows, err := t.tx.Query(t.ctx, t.q.sql(sqlTakeFair), bytesOf(slices.Sorted(maps.Keys(missing))))
	if err != nil {
		return err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
	for _, name := range names {
		t.ours[string(name)] = true
	}
	return err
}

// readTags has the pipe read fronts, and the last tags of keys, unless they are known.
func (t *txn) readTags(wanted map[keyTags]bool) {
	var queues, keys [][]byte
	var prios []int16
	for k := range wanted {
		if _, known := t.lasts[k]; !known {
			queues, keys, prios = append(queues, []byte(k.queue)), append(keys, []byte(k.key)), append(prios, k.prio)
		}
	}
	if len(queues) == 0 {
		return
	}
	t.write(sqlTags, queues, keys, prios).Query(func(rows pgx.Rows) error {
		var queue, key []byte
		var prio int16
		var front, last int64
		_, err := pgx.ForEachRow(rows, []any{&queue, &key, &prio, &front, &last}, func() error {
			of := frontOf{string(queue), prio}
			t.fronts[of] = max(front, t.fronts[of])
			t.lasts[keyTags{of, string(key)}] = last
			return nil
		})
		return err
	})
}

// tag gives a job its tag.
func (t *txn) tag(j *job) {
	of := tagsOf(j)
	front := t.fronts[of.frontOf]
	if front == 0 {
		front = nanos(t.Now)
		t.fronts[of.frontOf] = front
		t.begun = append(t.begun, of.frontOf)
	}
	j.FairTag = driver.NextTag(front, t.lasts[of], j.Weight)
	t.lasts[of] = j.FairTag
	for _, e := range j.snapshots {
		if e.State == pawl.Ready {
			e.FairTag = j.FairTag
		}
	}
}

// passFront moves the front of a fair queue past a job that starts.
func (t *txn) passFront(j *job) {
	if j.FairTag == 0 || !t.limits[j.Queue].Fair {
		return
	}
	of := frontOf{j.Queue, j.prio()}
	front := t.fronts[of]
	if front == 0 {
		front = nanos(t.Now)
	}
	if t.fronts[of] = driver.NextFront(front, j.FairTag); t.fronts[of] != front {
		t.moved[of] = true
	}
}

// readFronts has the pipe read the fronts of queues.
func (t *txn) readFronts(queues [][]byte) {
	t.write(sqlFronts, queues).Query(func(rows pgx.Rows) error {
		var queue []byte
		var prio int16
		var tag int64
		_, err := pgx.ForEachRow(rows, []any{&queue, &prio, &tag}, func() error {
			t.fronts[frontOf{string(queue), prio}] = tag
			return nil
		})
		return err
	})
}

// writeFronts stores fronts by a statement.
func (t *txn) writeFronts(statement string, of []frontOf) {
	if len(of) == 0 {
		return
	}
	var queues [][]byte
	var prios []int16
	var tags []int64
	for _, f := range of {
		queues, prios, tags = append(queues, []byte(f.queue)), append(prios, f.prio), append(tags, t.fronts[f])
	}
	t.write(statement, queues, prios, tags)
}

// writeMovedFronts stores the fronts that starts have moved.
func (t *txn) writeMovedFronts() {
	t.writeFronts(sqlMoveFronts, slices.Collect(maps.Keys(t.moved)))
	clear(t.moved)
}

// promotion is how far a transaction has come with the promotion of what is due.
type promotion struct {
	ours, others [][]byte // fair queues whose rows it has locked, and those whose jobs it passes over
	looks        bool     // it has not looked for jobs of fair queues
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

// portion promotes a portion of what is due. It returns how many jobs these are.
func (p *promotion) portion(t *txn) (n int, err error) {
	if len(p.ours)+len(p.others) == 0 {
		return n, t.tx.QueryRow(t.ctx, t.q.sql(sqlPromote), nanos(t.Now), portion).Scan(&n)
	}
	var ids pgtype.FlatArray[pgtype.UUID]
	var due pgtype.FlatArray[[]byte]
	err = t.tx.QueryRow(t.ctx, t.q.sql(sqlPromoteFair), nanos(t.Now), portion, p.ours, orNone(p.others), p.looks).Scan(&n, &ids, &due)
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

// take has a promotion include the fair queues whose rows no other session has locked.
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

// promoteFair makes jobs ready, in the order of becoming due.
func (t *txn) promoteFair(found []pgtype.UUID) error {
	if len(found) == 0 {
		return nil
	}
	ids := make([]pawl.ID, len(found))
	for i, id := range found {
		ids[i] = id.Bytes
	}
	if _, err := t.load(ids); err != nil {
		return err
	}
	for _, id := range ids {
		if j := t.Get(id); j != nil && j.State == pawl.Delayed {
			t.Put(j, pawl.Ready)
		}
	}
	return t.flush()
}

// findLate has the pipe look for jobs to promote in the fair queues of a fetch: those that a transaction of the app has
// stored, of which the scheduler does not know when they are due.
func (t *txn) findLate(queues [][]byte) {
	t.write(sqlLate, queues, nanos(t.Now)).QueryRow(func(row pgx.Row) error { return row.Scan(&t.late) })
}

// promoteLate promotes what findLate has found. If another session holds that up, it looks again soon.
func (t *txn) promoteLate() error {
	if !t.late {
		return nil
	}
	t.late, t.rest = false, earlier(t.rest, t.Now.Add(lockedSleep))
	_, err := t.promote()
	return err
}

// orNone returns a list that is not NULL.
func orNone(list [][]byte) [][]byte {
	if list == nil {
		return [][]byte{}
	}
	return list
}
