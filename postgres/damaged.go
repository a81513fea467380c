package postgres

import (
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/gopawl/pawl"
)

// makeCorrupt makes jobs with unreadable records dead. Damaged has the error of each record. The new
// record has what the other columns say, and the payload and the history stay. A completed job is
// removed, since it has nothing left to do. A job with the token of the given claim has no lease yet.
func (t *txn) makeCorrupt(damaged map[pawl.ID]error, claim int64) error {
	if len(damaged) == 0 {
		return nil
	}
	ids := make([]pawl.ID, 0, len(damaged))
	for id := range damaged {
		ids = append(ids, id)
	}
	rows, err := t.tx.Query(t.ctx, t.q.sql(sqlDamaged), uuids(ids))
	if err != nil {
		return err
	}
	jobs, err := pgx.CollectRows(rows, restOf)
	if err != nil {
		return err
	}
	t.write(sqlFreeAll, uuids(ids))
	for _, j := range jobs {
		t.jobs[j.ID] = j
		cause := "its record is damaged: " + damaged[j.ID].Error()
		if j.State == pawl.Completed {
			t.q.opts.Logger.Error("removed a completed job", "id", j.ID, "error", cause)
			t.Remove(j)
			continue
		}
		if j.token != 0 && j.token != claim {
			t.EndLease(j)
		}
		t.Note(j, j.Attempt(), pawl.Failure{Error: cause})
		t.MakeDead(j, pawl.ReasonCorrupt, pawl.Event{Cause: cause})
	}
	return nil
}

// restOf reads a job from its columns without the record. Only the record says whether the row has a tag, so the next
// write removes any tag from the row.
func restOf(row pgx.CollectableRow) (*job, error) {
	var id pgtype.UUID
	var seq, since int64
	var deadline, token *int64
	var place, lane, prio int16
	var queue, kind, effect, keyName, turn []byte
	var waits, awaited *bool
	var cost int
	j := &job{stored: true, tagged: true}
	err := row.Scan(&id, &seq, &since, &deadline, &token, &place, &lane, &prio, &effect, &queue, &kind, &j.payload, &j.Failures, &waits, &awaited,
		&keyName, &turn, &cost)
	if err != nil {
		return nil, err
	}
	j.Envelope = pawl.Envelope{
		ID: id.Bytes, Seq: uint64(seq), Queue: string(queue), Origin: string(queue), Kind: string(kind),
		Priority: int8(127 - prio), Created: createdOf(id.Bytes), NotBefore: timeOf(since),
		Crashes: int(lane / 2), Attempts: int(lane % 2), Failures: j.Failures, Key: string(keyName), Cost: cost,
	}
	j.inTurn(turn)
	j.State, j.waits, j.awaited = stateOf(place, token != nil), waits != nil, awaited != nil
	if token != nil {
		j.token = *token
	}
	if deadline != nil {
		j.Deadline = timeOf(*deadline)
	}
	if _, key, found := strings.Cut(string(effect), "\x00"); found {
		j.IdempotencyKey = key
	}
	return j, nil
}

// createdOf returns the time in an ID, which begins with it.
func createdOf(id pawl.ID) time.Time {
	var ms int64
	for _, b := range id[:6] {
		ms = ms<<8 | int64(b)
	}
	return time.UnixMilli(ms)
}

// recheck is a call that reads jobs, so that the jobs with a damaged record become dead.
type recheck []pawl.ID

func (op recheck) needs(n *needs)   { n.ids = append(n.ids, op...) }
func (op recheck) apply(*txn) error { return nil }
