package postgres

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/runnotes"
)

// The notes of attempts are in separate tables. The scheduler stores them in the group commit of other calls, after
// the fence, and locks no job: a transaction of the app that has acked a job does not delay notes, and notes do
// not delay other calls. Later stores find and remove the rows of jobs that are gone.

// The statements of notes.
const (
	// sqlStoreLogs stores logs of jobs that exist. A log only grows, so a shorter log is older.
	sqlStoreLogs = `INSERT INTO pawl.log AS l (id, began, attempt, head, tail, dropped)
SELECT n.* FROM unnest($1::uuid[], $2::int8[], $3::int4[], $4::bytea[], $5::bytea[], $6::int8[]) AS n(id, began, attempt, head, tail, dropped)
WHERE EXISTS (SELECT FROM pawl.job j WHERE j.id = n.id) ORDER BY n.id
ON CONFLICT (id, began) DO UPDATE SET head = excluded.head, tail = excluded.tail, dropped = excluded.dropped
WHERE octet_length(l.head) + octet_length(l.tail) + l.dropped
	< octet_length(excluded.head) + octet_length(excluded.tail) + excluded.dropped`

	// sqlCutLogs removes all logs of jobs except the last four.
	sqlCutLogs = `DELETE FROM pawl.log l USING unnest($1::uuid[]) AS n(id)
WHERE l.id = n.id AND l.began < (SELECT k.began FROM pawl.log k WHERE k.id = n.id ORDER BY k.began DESC OFFSET 3 LIMIT 1)`

	// sqlStoreProgress stores the progress of jobs that exist, unless the stored progress is newer.
	sqlStoreProgress = `INSERT INTO pawl.progress AS p (id, began, at, done, total, text)
SELECT n.* FROM unnest($1::uuid[], $2::int8[], $3::int8[], $4::int8[], $5::int8[], $6::bytea[]) AS n(id, began, at, done, total, text)
WHERE EXISTS (SELECT FROM pawl.job j WHERE j.id = n.id) ORDER BY n.id
ON CONFLICT (id) DO UPDATE SET began = excluded.began, at = excluded.at, done = excluded.done, total = excluded.total, text = excluded.text
WHERE (p.began, p.at) <= (excluded.began, excluded.at)`

	// sqlNoted reads which jobs exist and are leased, among the jobs $1 and the next $3 jobs with notes after
	// $2.
	sqlNoted = `SELECT n.id, n.named, j.id IS NOT NULL, j.token IS NOT NULL FROM (
	SELECT unnest($1::uuid[]) AS id, true AS named UNION ALL (
		SELECT id, false FROM (
			(SELECT id FROM pawl.progress WHERE id > $2 ORDER BY id LIMIT $3) UNION
			(SELECT DISTINCT id FROM pawl.log WHERE id > $2 ORDER BY id LIMIT $3)) s
		ORDER BY id LIMIT $3)) n LEFT JOIN pawl.job j ON j.id = n.id`

	sqlRemoveLogs     = `DELETE FROM pawl.log n WHERE id = ANY($1) AND NOT EXISTS (SELECT FROM pawl.job j WHERE j.id = n.id)`
	sqlRemoveProgress = `DELETE FROM pawl.progress n WHERE id = ANY($1) AND NOT EXISTS (SELECT FROM pawl.job j WHERE j.id = n.id)`

	sqlReadProgress = `SELECT id, at, done, total, text FROM pawl.progress WHERE id = ANY($1)`
	sqlReadLogs     = `SELECT began, attempt, head, tail, dropped FROM pawl.log WHERE id = $1 ORDER BY began`
)

// sweepPortion is how many jobs with notes each store of notes looks up.
const sweepPortion = 32

// StoreNotes implements [driver.NoteStore]. Workers call it.
func (q *Queue) StoreNotes(ctx context.Context, notes []runnotes.Notes, ended []pawl.ID) (running []pawl.ID, err error) {
	op := &storeNotes{notes: slices.Clone(notes), ended: ended}
	slices.SortFunc(op.notes, func(a, b runnotes.Notes) int { return slices.Compare(a.ID[:], b.ID[:]) })
	if err := q.submit(ctx, op); err != nil {
		return nil, err
	}
	return op.running, nil
}

// storeNotes is a call of StoreNotes.
type storeNotes struct {
	notes   []runnotes.Notes // by ID
	ended   []pawl.ID
	running []pawl.ID // of ended
	gone    []pawl.ID
}

// Bytes returns how many bytes the call takes in a group.
func (op *storeNotes) Bytes() (size int) {
	for i := range op.notes {
		if log := op.notes[i].Log; log != nil {
			size += len(log.Head) + len(log.Tail)
		}
	}
	return size
}

func (op *storeNotes) needs(*needs) {}

// apply finds rows to remove. The writes come last, with all other writes.
func (op *storeNotes) apply(t *txn) error {
	op.running, op.gone = nil, nil
	rows, err := t.tx.Query(t.ctx, t.q.sql(sqlNoted), uuids(op.ended), pgtype.UUID{Bytes: t.q.swept, Valid: true}, sweepPortion)
	if err != nil {
		return t.breaks(err)
	}
	var id pgtype.UUID
	var named, there, leased bool
	var swept []pawl.ID
	_, err = pgx.ForEachRow(rows, []any{&id, &named, &there, &leased}, func() error {
		if !there {
			op.gone = append(op.gone, id.Bytes)
		}
		if named && leased {
			op.running = append(op.running, id.Bytes)
		}
		if !named {
			swept = append(swept, id.Bytes)
		}
		return nil
	})
	if err != nil {
		return t.breaks(err)
	}
	var last pawl.ID // continue from the beginning
	if len(swept) == sweepPortion {
		last = slices.MaxFunc(swept, func(a, b pawl.ID) int { return slices.Compare(a[:], b[:]) })
	}
	t.after = append(t.after, func() { t.q.swept = last })
	t.notes = append(t.notes, op)
	return nil
}

// writeNotes writes what the calls of StoreNotes store and remove.
func (t *txn) writeNotes() {
	for _, op := range t.notes {
		t.writeLogs(op.notes)
		t.writeProgress(op.notes)
		if len(op.gone) > 0 {
			t.write(sqlRemoveLogs, uuids(op.gone))
			t.write(sqlRemoveProgress, uuids(op.gone))
		}
	}
	t.notes = nil
}

func (t *txn) writeLogs(notes []runnotes.Notes) {
	var ids []pawl.ID
	var began, dropped []int64
	var attempts []int32
	var heads, tails [][]byte
	for i := range notes {
		n := &notes[i]
		if n.Log == nil {
			continue
		}
		ids, began, attempts = append(ids, n.ID), append(began, n.Began.UnixNano()), append(attempts, int32(n.Attempt))
		heads, tails = append(heads, present(n.Log.Head)), append(tails, present(n.Log.Tail))
		dropped = append(dropped, n.Log.Dropped)
	}
	if len(ids) > 0 {
		t.write(sqlStoreLogs, uuids(ids), began, attempts, heads, tails, dropped)
		t.write(sqlCutLogs, uuids(ids))
	}
}

// present returns bytes that are not NULL.
func present(b []byte) []byte { return append([]byte{}, b...) }

func (t *txn) writeProgress(notes []runnotes.Notes) {
	var ids []pawl.ID
	var began, at, done, total []int64
	var texts [][]byte
	for i := range notes {
		p := notes[i].Progress
		if p == nil {
			continue
		}
		ids, began, at = append(ids, notes[i].ID), append(began, notes[i].Began.UnixNano()), append(at, p.At.UnixNano())
		done, total, texts = append(done, p.Done), append(total, p.Total), append(texts, []byte(p.Text))
	}
	if len(ids) > 0 {
		t.write(sqlStoreProgress, uuids(ids), began, at, done, total, texts)
	}
}

// ReadProgress implements [driver.NoteStore]. Operators use package admin.
func (q *Queue) ReadProgress(ctx context.Context, ids ...pawl.ID) (all map[pawl.ID]pawl.Progress, err error) {
	err = q.look(ctx, func(tx *viewTx) error {
		all = make(map[pawl.ID]pawl.Progress)
		rows, err := tx.Query(ctx, q.sql(sqlReadProgress), uuids(ids))
		if err != nil {
			return err
		}
		var id pgtype.UUID
		var at int64
		var p pawl.Progress
		var text []byte
		_, err = pgx.ForEachRow(rows, []any{&id, &at, &p.Done, &p.Total, &text}, func() error {
			p.At, p.Text = timeOf(at), string(text)
			all[id.Bytes] = p
			return nil
		})
		return err
	})
	return all, err
}

// ReadLogs implements [driver.NoteStore]. Operators use package admin.
func (q *Queue) ReadLogs(ctx context.Context, id pawl.ID) (logs []pawl.RunLog, err error) {
	err = q.look(ctx, func(tx *viewTx) error {
		logs = nil
		rows, err := tx.Query(ctx, q.sql(sqlReadLogs), pgtype.UUID{Bytes: id, Valid: true})
		if err != nil {
			return err
		}
		var began int64
		var head, tail []byte
		var l pawl.RunLog
		_, err = pgx.ForEachRow(rows, []any{&began, &l.Attempt, &head, &tail, &l.Dropped}, func() error {
			l.Began, l.Head, l.Tail = timeOf(began), string(head), string(tail)
			logs = append(logs, l)
			return nil
		})
		return err
	})
	return logs, err
}
