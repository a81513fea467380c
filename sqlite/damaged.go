package sqlite

import (
	sqldriver "database/sql/driver"
	"strings"

	"github.com/gopawl/pawl"
)

// makeCorrupt makes a job with an unreadable record dead. The new record has what the other columns
// say, and the payload and the history stay. A completed job is removed, since it has nothing left to
// do.
func (t *txn) makeCorrupt(j *job, err error) {
	var since, prio, lane, failures int64
	var deadline sqldriver.Value
	var effect []byte
	t.query(`SELECT since, prio, lane, deadline, effect, COALESCE((SELECT max(n) FROM pawl_history h WHERE h.seq = j.seq), 0)
FROM pawl_job j WHERE seq = ?`, func(v []sqldriver.Value) error {
		since, prio, lane, failures = number(v[0]), number(v[1]), number(v[2]), number(v[5])
		deadline, effect = v[3], bytesOf(v[4])
		return nil
	}, int64(j.Seq))
	queue, kind, lost := t.nameOf(j.line)
	if lost != nil && t.err == nil {
		t.err = lost
	}
	id, seq, state := j.ID, j.Seq, j.State
	j.Envelope = pawl.Envelope{
		ID: id, Seq: seq, State: state, Queue: queue, Origin: queue, Kind: kind,
		Priority: int8(127 - prio), Created: createdOf(id), NotBefore: timeOf(since),
		Crashes: int(lane / 2), Attempts: int(lane % 2), Failures: int(failures),
	}
	if deadline != nil {
		j.Deadline = timeOf(number(deadline))
	}
	if _, key, found := strings.Cut(string(effect), "\x00"); found {
		j.IdempotencyKey = key
	}
	t.exec(`DELETE FROM pawl_uniq WHERE seq = ?`, int64(seq))
	cause := "its record is damaged: " + err.Error()
	if state == pawl.Completed {
		t.after = append(t.after, func() { t.q.opts.Logger.Error("removed a completed job", "id", id, "error", cause) })
		t.Remove(j)
		return
	}
	if state == pawl.Leased {
		t.EndLease(j)
	}
	t.Note(j, j.Attempt(), pawl.Failure{Error: cause})
	t.MakeDead(j, pawl.ReasonCorrupt, pawl.Event{Cause: cause})
}
