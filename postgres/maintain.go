package postgres

import (
	"cmp"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/gopawl/pawl"
)

// How many jobs fall due in one transaction: so many portions, of so many jobs of each line.
const (
	portions = 10
	portion  = 1000
)

// maintain makes the moves that are due whoever calls. Deadlines come after all that may put a job
// into ready or delayed: a job that is put there past its deadline is dead at once.
func (t *txn) maintain() error {
	due, more := !t.q.due.After(t.now), false
	if due {
		var err error
		if more, err = t.promote(); err != nil {
			return err
		}
	}
	if err := t.reapOwn(); err != nil {
		return err
	}
	if err := t.reapProcesses(); err != nil {
		return err
	}
	if !due && t.q.due.After(t.now) {
		return nil
	}
	expire := func(j *job) {
		t.makeDead(j, pawl.ReasonDeadline, pawl.Event{Cause: "its deadline has passed"})
	}
	late, err := t.inPortions(sqlExpired, expire)
	if err != nil {
		return err
	}
	old, err := t.inPortions(sqlRetained, t.remove)
	if err != nil {
		return err
	}
	if more || late || old {
		t.q.due = t.now // the next transaction continues, at once
		return nil
	}
	if _, err := t.tx.Exec(t.ctx, t.q.sql(sqlForget), nanos(t.now)); err != nil {
		return err
	}
	return t.lookAhead()
}

// promote makes ready what is due, as far as one transaction does that. NotBefore stays: it is ready
// since it was due.
func (t *txn) promote() (more bool, err error) {
	for range portions {
		tag, err := t.tx.Exec(t.ctx, t.q.sql(sqlPromote), nanos(t.now), portion)
		if err != nil || tag.RowsAffected() == 0 {
			return false, err
		}
		t.stir()
	}
	return true, nil
}

// inPortions moves the jobs that a statement reads, as far as one transaction does that.
func (t *txn) inPortions(statement string, move func(*job)) (more bool, err error) {
	for range portions {
		rows, err := t.tx.Query(t.ctx, t.q.sql(statement), nanos(t.now), portion)
		if err != nil {
			return false, err
		}
		var jobs []*job
		if err := t.scan(rows, nil, &jobs); err != nil {
			return false, err
		}
		for _, j := range jobs {
			move(j)
		}
		if err := t.flush(); err != nil || len(jobs) < portion {
			return false, err
		}
	}
	return true, nil
}

// lookAhead finds out when something falls due next.
func (t *txn) lookAhead() error {
	var next *int64
	if err := t.tx.QueryRow(t.ctx, t.q.sql(sqlNext)).Scan(&next); err != nil {
		return err
	}
	if t.q.due = latest; next != nil {
		t.q.due = timeOf(*next)
	}
	return nil
}

// reapOwn takes back the leases of this process that have expired.
func (t *txn) reapOwn() error {
	var ids []pawl.ID
	for id, h := range t.q.held {
		if !h.expires.After(t.mono) && !t.settled[id] && !t.extends[id] {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	jobs, err := t.load(ids)
	if err != nil {
		return err
	}
	slices.SortFunc(jobs, func(a, b *job) int {
		return cmp.Or(t.q.held[a.ID].expires.Compare(t.q.held[b.ID].expires), cmp.Compare(a.Seq, b.Seq))
	})
	for _, j := range jobs {
		if h := t.q.held[j.ID]; j.token == h.token {
			t.crash(j, pawl.EventReaped, "its lease expired")
			t.reaped++
		}
	}
	for _, id := range ids { // also those that another client settled
		token := t.q.held[id].token
		t.after = append(t.after, func() { t.q.release(id, token) })
	}
	return t.flush()
}

// reapProcesses takes back the leases of processes that have ended, when it is time to look.
func (t *txn) reapProcesses() error {
	owner := t.q.reapOwner
	if owner == "" && !t.q.pollIsDue() {
		return nil
	}
	t.after = append(t.after, func() { t.q.polled, t.q.reapOwner = t.mono, "" })
	t.stir() // for the jobs that other processes made ready
	rows, err := t.tx.Query(t.ctx, t.q.sql(sqlDead), t.q.process, []byte(owner), t.q.clock())
	if err != nil {
		return err
	}
	dead, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil || len(dead) == 0 {
		return err
	}
	tokens := make(map[pawl.ID]int64)
	rows, err = t.tx.Query(t.ctx, t.q.sql(sqlOrphans), dead)
	if err != nil {
		return err
	}
	var token int64
	var ids []pgtype.UUID
	_, err = pgx.ForEachRow(rows, []any{&token, &ids}, func() error {
		for _, id := range ids {
			tokens[id.Bytes] = token
		}
		return nil
	})
	if err != nil {
		return err
	}
	return t.recover(tokens)
}

// recover takes back leases of other processes: the jobs that still have these tokens.
func (t *txn) recover(tokens map[pawl.ID]int64) error {
	all := make([]pawl.ID, 0, len(tokens))
	for id := range tokens {
		all = append(all, id)
	}
	jobs, err := t.load(all)
	if err != nil {
		return err
	}
	slices.SortFunc(jobs, func(a, b *job) int { return cmp.Compare(a.Seq, b.Seq) })
	for _, j := range jobs {
		if j.token == tokens[j.ID] && j.token != 0 {
			t.crash(j, pawl.EventRecovered, "its process ended")
		}
	}
	if len(jobs) > 0 {
		t.q.due = time.Time{} // a deadline may have passed meanwhile
	}
	return t.flush()
}
