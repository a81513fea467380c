package postgres

import (
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// In a queue with [pawl.Limits.Fair], a job that becomes ready gets a tag (see [driver.NextTag]). The record of the job
// has the tag. Column since has the tag in place of the time, so a fetch reads the jobs in the order of their tags. The
// last tag of a key is the tag of its last job, which an index finds, so no counter is stored. A transaction gives tags
// while it has locked the row of the queue in bound. Enqueues wait for that lock. Other jobs that become ready while
// another session has the lock, or within a transaction of the app, are left late: a late job is delayed until now, and
// the next transaction promotes it.
//
// If the queue also runs the jobs of a key in order, column due says which job goes first. Tags do not: each priority
// has its own tags, and a job may become ready after another one although it was due before it. See
// docs/internals/postgres.md.

const (
	// sqlTakeFair locks the rows of fair queues that no other session has locked.
	sqlTakeFair = `SELECT queue FROM pawl.bound WHERE queue = ANY($1) AND fair ORDER BY queue FOR UPDATE SKIP LOCKED`

	// sqlTags reads the fronts of priorities, 0 for none yet. For each key it also reads the last tag behind the front,
	// 0 for none.
	sqlTags = `SELECT n.queue, n.key, n.prio, COALESCE(f.tag, 0), COALESCE((
	SELECT j.since FROM pawl.job j WHERE j.fair = n.queue || '\x00'::bytea || n.key AND j.prio = n.prio
		AND (j.place = 0 OR j.place = -2) AND j.since > COALESCE(f.tag, 0) ORDER BY j.since DESC LIMIT 1), 0)
FROM unnest($1::bytea[], $2::bytea[], $3::int2[]) AS n(queue, key, prio) LEFT JOIN pawl.front f ON f.queue = n.queue AND f.prio = n.prio`

	sqlFronts      = `SELECT queue, prio, tag FROM pawl.front WHERE queue = ANY($1)`
	sqlBeginFronts = `INSERT INTO pawl.front (queue, prio, tag) SELECT * FROM unnest($1::bytea[], $2::int2[], $3::int8[]) ON CONFLICT DO NOTHING`
	sqlMoveFronts  = `INSERT INTO pawl.front AS f (queue, prio, tag) SELECT * FROM unnest($1::bytea[], $2::int2[], $3::int8[])
ON CONFLICT (queue, prio) DO UPDATE SET tag = excluded.tag`
	sqlForgetFronts = `DELETE FROM pawl.front WHERE queue = $1`
)

// fairness is what a transaction knows about queues whose keys take turns.
type fairness struct {
	ours   map[string]bool   // queues whose row it has locked
	fronts map[frontOf]int64 // fronts that it has read; 0 for none
	lasts  map[keyTags]int64 // last tags of keys that it has read
	begun  []frontOf         // to write
	moved  map[frontOf]bool  // to write
	late   bool              // jobs of the queues of a fetch are late, or due

	promoted bool // it has promoted jobs
}

// meetFair makes the maps of a transaction that meets a fair queue.
func (f *fairness) meetFair() {
	if f.ours == nil {
		f.ours, f.fronts, f.lasts, f.moved = make(map[string]bool), make(map[frontOf]int64), make(map[keyTags]int64), make(map[frontOf]bool)
	}
}

// frontOf is a priority of a queue, and keyTags is a priority of a key.
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

// fairColumn returns the value of column fair: nil for a job without a tag.
func (j *job) fairColumn() []byte {
	if j.FairTag == 0 {
		return nil
	}
	return []byte(turnName(j.Queue, j.Key))
}

// dueColumn returns the value of column due: since when a job with a tag is ready, nil for a job without one.
func (j *job) dueColumn() *int64 {
	if j.FairTag == 0 {
		return nil
	}
	due := nanos(j.NotBefore)
	return &due
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

// takeFair locks the rows of fair queues that no other session has locked. A transaction of the app locks none, since
// all processes would wait for it.
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

// readTags adds a statement to the pipe that reads unknown fronts and last tags of keys.
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
		front = driver.FirstFront(t.Now)
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
		front = driver.FirstFront(t.Now)
	}
	if t.fronts[of] = driver.NextFront(front, j.FairTag); t.fronts[of] != front {
		t.moved[of] = true
	}
}

// readFronts adds a statement to the pipe that reads the fronts of queues.
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
