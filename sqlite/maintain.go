package sqlite

import (
	"cmp"
	"slices"
	"time"

	"github.com/gopawl/pawl"
)

// Limits on the due work of one transaction: the number of portions, and of jobs in a portion.
const (
	portions = 10
	portion  = 1000
)

// maintain makes the due moves, whatever the calls of the transaction are. Deadlines come after all moves that
// may put a job into ready or delayed: a job that is put there past its deadline becomes dead immediately.
func (t *txn) maintain() {
	due, more := !t.q.due.After(t.Now), false
	if due {
		more = t.promote()
	}
	t.reapExpired()
	if !due && t.q.due.After(t.Now) || t.err != nil {
		return
	}
	late := t.inPortions(sqlExpired, func(j *job) {
		t.MakeDead(j, pawl.ReasonDeadline, pawl.Event{Cause: "its deadline has passed"})
	})
	old := t.inPortions(sqlRetained, t.Remove)
	forgot := t.exec(`DELETE FROM pawl_effect WHERE name IN (SELECT name FROM pawl_effect WHERE done_until <= ? LIMIT ?)`,
		nanos(t.Now), int64(portions*portion))
	if more || late || old || forgot == portions*portion {
		t.q.due = t.Now // the next transaction continues immediately
		return
	}
	t.lookAhead()
}

const (
	sqlPromote = `UPDATE pawl_job SET place = 2 - EXISTS (SELECT 1 FROM pawl_after WHERE job = id) WHERE seq IN (
	SELECT seq FROM pawl_job WHERE place = 3 AND since <= ? ORDER BY since, seq LIMIT ?)`

	sqlExpired = `SELECT ` + columns + ` FROM pawl_job
WHERE place < 4 AND deadline IS NOT NULL AND deadline <= ? ORDER BY deadline, seq LIMIT ?`

	sqlRetained = `SELECT ` + columns + ` FROM pawl_job WHERE place = 6 AND since <= ? ORDER BY since, seq LIMIT ?`

	sqlLeased = `SELECT ` + columns + ` FROM pawl_job INDEXED BY pawl_job_leased WHERE place = 4 ORDER BY seq LIMIT ?`
)

// promote makes due jobs ready, up to the limit of one transaction. NotBefore stays: a job is ready since it was due.
func (t *txn) promote() (more bool) {
	for range portions {
		if t.exec(sqlPromote, nanos(t.Now), int64(portion)) == 0 {
			return false
		}
		t.stir()
	}
	return true
}

// inPortions moves the jobs that a statement reads, up to the limit of one transaction.
func (t *txn) inPortions(statement string, move func(*job)) (more bool) {
	for range portions {
		jobs := t.readAll(statement, nanos(t.Now), int64(portion))
		for _, j := range jobs {
			if j.State != pawl.Dead || j.Death.Reason != pawl.ReasonCorrupt { // readAll has made these dead
				move(j)
			}
		}
		if len(jobs) < portion {
			return false
		}
	}
	return true
}

// lookAhead finds out when something falls due next.
func (t *txn) lookAhead() {
	t.q.due = latest
	for _, statement := range []string{
		`SELECT since FROM pawl_job WHERE place = 3 ORDER BY since LIMIT 1`,
		`SELECT deadline FROM pawl_job WHERE place < 4 AND deadline IS NOT NULL ORDER BY deadline LIMIT 1`,
		`SELECT since FROM pawl_job WHERE place = 6 ORDER BY since LIMIT 1`,
	} {
		next := latest.UnixNano()
		t.query(statement, one(&next))
		t.FallsDue(timeOf(next))
	}
}

// reapExpired takes back the leases that have expired, in the order of their ends.
func (t *txn) reapExpired() {
	var expired []*held
	for id, h := range t.q.held {
		if !h.expires.After(t.mono) && !t.settled[id] && !t.extended[id] {
			expired = append(expired, h)
		}
	}
	slices.SortFunc(expired, func(a, b *held) int {
		return cmp.Or(a.expires.Compare(b.expires), cmp.Compare(a.job.Seq, b.job.Seq))
	})
	for _, h := range expired {
		j := t.read(sqlJobBySeq, int64(h.job.Seq))
		if j == nil || j.State != pawl.Leased || j.token != h.token { // another program changed the tables
			t.after = append(t.after, func() { t.q.release(h.job.ID, h.token) })
			continue
		}
		t.Crash(j, pawl.EventReaped)
		t.reaped++
	}
}

// orphans is a call that takes back the leases of a process that ended, a portion at a time.
type orphans struct{ more *bool }

func (op *orphans) apply(t *txn) error {
	jobs := t.readAll(sqlLeased, int64(portion))
	for _, j := range jobs {
		if j.State == pawl.Leased {
			t.Crash(j, pawl.EventRecovered)
		}
	}
	*op.more = len(jobs) == portion
	t.q.due = time.Time{}
	return nil
}
