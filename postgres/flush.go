package postgres

import (
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/core"
)

// flush adds the statements to the pipe that write all changes, and forgets the jobs. The order of the statements is
// the order of the locks: jobs, keys, prerequisites, effects, rows of mutations, notes. Rows of turns are new, so no
// other session has locked them.
func (t *txn) flush() error {
	for len(t.ended) > 0 || t.groups.Any() { // each may find a damaged job and end it
		if err := t.finishEnds(); err != nil {
			return err
		}
		if err := t.finishGroups(); err != nil {
			return err
		}
	}
	jobs := t.touched
	if err := t.giveTags(jobs); err != nil {
		return err
	}
	t.writeGone(jobs)
	if err := t.writeNew(jobs); err != nil {
		return err
	}
	t.writeChanged(jobs)
	t.writeKeys(jobs)
	t.writePrerequisites(jobs)
	t.writeTurns(jobs)
	t.writeEffects()
	if tokens := t.q.unclaimed[t.unclaimed:]; len(tokens) > 0 {
		t.write(sqlUnclaim, tokens)
		t.unclaimed += len(tokens)
	}
	if t.rows != nil {
		t.rows.write(t)
	}
	t.writeNotes()
	t.forget()
	return nil
}

// write adds a statement to the pipe.
func (t *txn) write(statement string, args ...any) *pgx.QueuedQuery {
	return t.tx.held.Queue(t.q.sql(statement), args...)
}

// writeAll adds a statement to the pipe that must write n rows. If it writes fewer, another process was first.
func (t *txn) writeAll(n int, statement string, args ...any) {
	t.tx.decides = true
	t.write(statement, args...).Exec(func(tag pgconn.CommandTag) error {
		if tag.RowsAffected() < int64(n) {
			return errRace
		}
		return nil
	})
}

// writeGone removes jobs, with their histories and their keys.
func (t *txn) writeGone(jobs []*job) {
	var ids, histories, holders []pawl.ID
	var keys [][]byte
	for _, j := range jobs {
		if !j.gone || !j.stored {
			continue
		}
		ids = append(ids, j.ID)
		if j.Failures > 0 {
			histories = append(histories, j.ID)
		}
		if j.UniqueKey != "" {
			keys, holders = append(keys, []byte(core.UniqueName(&j.Envelope))), append(holders, j.ID)
		}
	}
	if len(ids) > 0 {
		t.write(sqlDelete, uuids(ids))
	}
	if len(histories) > 0 {
		t.write(sqlDeleteHistory, uuids(histories))
	}
	if len(keys) > 0 {
		t.write(sqlFree, keys, uuids(holders))
	}
}

// writeNew stores new jobs, with their sequences.
func (t *txn) writeNew(jobs []*job) error {
	var fresh []*job
	for _, j := range jobs {
		if !j.gone && !j.stored {
			fresh = append(fresh, j)
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	if err := t.takeSeqs(fresh); err != nil {
		return err
	}
	if err := t.orderNew(fresh); err != nil {
		return err
	}
	lines, err := t.linesOf(fresh)
	if err != nil {
		return err
	}
	if t.canCopy(len(fresh)) {
		err = t.copyNew(fresh, lines)
	} else {
		t.insertNew(fresh, lines)
	}
	t.writeHistory(jobs, false)
	return err
}

// insertNew stores new jobs by a statement.
func (t *txn) insertNew(jobs []*job, lines []int32) {
	c := makeArrays(len(jobs))
	c.lines = lines
	for _, j := range jobs {
		c.add(j)
	}
	args := []any{c.ids, c.seqs, c.since, c.lines, c.places, c.lanes, c.prios, c.records, c.payloads}
	extra := []any{c.deadlines, c.effects, c.keys, c.turns, c.orders, c.holds, c.costs}
	switch {
	case haveTags(jobs):
		t.write(sqlInsertFair, append(append(args, extra...), c.fair, c.due)...)
	case haveExtras(jobs):
		t.write(sqlInsertExtra, append(args, extra...)...)
	default:
		t.write(sqlInsert, args...)
	}
}

// takeSeqs gives new jobs their sequences, in their order.
func (t *txn) takeSeqs(fresh []*job) error {
	if missing := len(fresh) - t.seqs.left(); missing > 0 {
		rows, err := t.tx.Query(t.ctx, t.q.sql(sqlSeqs), blocksOf(missing))
		if err != nil {
			return err
		}
		if err := t.seqs.read(rows); err != nil {
			return err
		}
	}
	for _, j := range fresh {
		j.Seq = t.seqs.next()
		for _, e := range j.snapshots {
			e.Seq = j.Seq
		}
	}
	return nil
}

// haveExtras reports whether new jobs need extraColumns.
func haveExtras(jobs []*job) bool {
	return slices.ContainsFunc(jobs, func(j *job) bool {
		return !j.Deadline.IsZero() || j.IdempotencyKey != "" || j.Key != "" || j.turn != "" || j.HoldsKey || j.Cost > 1
	})
}

// haveTags reports whether jobs need fairColumns.
func haveTags(jobs []*job) bool {
	return slices.ContainsFunc(jobs, func(j *job) bool { return j.FairTag != 0 })
}

// writeChanged stores the new places of jobs, and marks jobs that were cancelled.
func (t *txn) writeChanged(jobs []*job) {
	var ids, marked, kept, edited []pawl.ID
	var since []int64
	var places, lanes []int16
	var holding pgtype.FlatArray[*bool]
	var fair pgtype.FlatArray[[]byte]
	var due pgtype.FlatArray[*int64]
	var tagged bool // a job has a tag, or loses it
	var records, rewritten, payloads [][]byte
	for _, j := range jobs {
		switch {
		case j.gone || !j.stored:
		case j.State == pawl.Leased:
			if j.marked {
				marked = append(marked, j.ID)
			}
			if j.rewritten {
				kept, rewritten = append(kept, j.ID), append(rewritten, driver.AppendRecord(nil, &j.Envelope, j.payload))
			}
		default:
			place, at := j.since()
			ids, since = append(ids, j.ID), append(since, at)
			places, lanes = append(places, place), append(lanes, j.lane())
			if _, _, holds := j.turnColumns(); holds != nil {
				holding = append(padded(holding, len(ids)-1), holds)
			}
			if column := j.fairColumn(); column != nil {
				fair = append(padded(fair, len(ids)-1), column)
			}
			if column := j.dueColumn(); column != nil {
				due = append(padded(due, len(ids)-1), column)
			}
			tagged = tagged || j.tagged || j.FairTag != 0
			records = append(records, driver.AppendRecord(nil, &j.Envelope, j.payload))
			if j.edited {
				edited, payloads = append(edited, j.ID), append(payloads, j.Payload)
			}
		}
	}
	if len(marked) > 0 {
		t.write(sqlCancel, uuids(marked))
	}
	if len(kept) > 0 {
		t.write(sqlRewrite, uuids(kept), rewritten)
	}
	switch {
	case tagged:
		t.write(sqlUpdateFair, uuids(ids), since, places, lanes, holding, records, fair, due)
	case len(ids) > 0:
		t.write(sqlUpdate, uuids(ids), since, places, lanes, holding, records)
	}
	if len(edited) > 0 {
		t.write(sqlSetPayloads, uuids(edited), payloads)
	}
	t.writeHistory(jobs, true)
}

// writeHistory appends to the histories of jobs that are stored already, or that are new.
func (t *txn) writeHistory(jobs []*job, stored bool) {
	var ids, cut []pawl.ID
	var numbers, attempts, cuts []int32
	var at []int64
	var texts, stacks [][]byte
	for _, j := range jobs {
		if j.gone || j.stored != stored {
			continue
		}
		for i, f := range j.failures {
			n := j.Failures - len(j.failures) + i + 1
			if !stored && i < pawl.HistoryKeepHead { // a job that is restored has both ends of its history
				n = i + 1
			}
			ids, numbers, attempts = append(ids, j.ID), append(numbers, int32(n)), append(attempts, int32(f.Attempt))
			at = append(at, nanos(f.At))
			texts, stacks = append(texts, []byte(f.Error)), append(stacks, []byte(f.Stack))
			if n > pawl.HistoryKeepHead+pawl.HistoryKeepTail {
				cut, cuts = append(cut, j.ID), append(cuts, int32(n-pawl.HistoryKeepTail))
			}
		}
	}
	if len(ids) > 0 {
		t.write(sqlAddHistory, uuids(ids), numbers, attempts, at, texts, stacks)
	}
	if len(cut) > 0 {
		t.write(sqlCutHistory, uuids(cut), cuts)
	}
}

// writeKeys stores which jobs took unique keys. If several jobs took a key in one transaction, the last one has it.
func (t *txn) writeKeys(jobs []*job) {
	last, freed := make(map[string]pawl.ID), make(map[string]bool)
	for _, j := range jobs {
		if j.UniqueKey == "" {
			continue
		}
		name := core.UniqueName(&j.Envelope)
		switch {
		case j.holds && !j.gone:
			last[name] = j.ID
		case j.gone && j.stored && t.owners[name] == j.ID:
			freed[name] = true // by writeGone
		}
	}
	var keys, taken [][]byte
	var ids, takers, owners []pawl.ID
	for name, id := range last {
		owner, owned := t.owners[name]
		switch {
		case !owned || freed[name]:
			keys, ids = append(keys, []byte(name)), append(ids, id)
		case owner != id:
			taken, takers, owners = append(taken, []byte(name)), append(takers, id), append(owners, owner)
		}
	}
	if len(keys) > 0 { // it fails if another process was first, and then the group runs again
		t.write(sqlHold, keys, uuids(ids))
	}
	if len(taken) > 0 {
		t.writeAll(len(taken), sqlTake, taken, uuids(takers), uuids(owners))
	}
}

// writeEffects stores the changed effects.
func (t *txn) writeEffects() {
	var stopped, done, started [][]byte
	var until []int64
	var ids []pawl.ID
	for name, e := range t.effects {
		switch {
		case !e.id.IsZero():
			started, ids = append(started, []byte(name)), append(ids, e.id)
		case !e.doneUntil.IsZero():
			done, until = append(done, []byte(name)), append(until, nanos(e.doneUntil))
		default:
			stopped = append(stopped, []byte(name))
		}
	}
	if len(stopped) > 0 {
		t.write(sqlStop, stopped)
	}
	if len(done) > 0 {
		t.write(sqlDone, done, until)
	}
	if len(t.restored) > 0 {
		names, ends := make([][]byte, len(t.restored)), make([]int64, len(t.restored))
		for i, e := range t.restored {
			names[i], ends[i] = []byte(core.EffectName(&pawl.Envelope{Kind: e.Kind, IdempotencyKey: e.Key})), nanos(e.Until)
		}
		t.write(sqlRestoreEffects, names, ends)
		t.restored = nil
	}
	if len(started) > 0 {
		t.writeAll(len(started), sqlStart, started, uuids(ids), nanos(t.Now))
	}
}
