package postgres

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/gopawl/pawl"
)

// maintain makes the due moves, whatever the calls of the transaction are. Deadlines come after all moves that
// may put a job into ready or delayed: a job that is put there past its deadline becomes dead immediately.
func (t *txn) maintain() error {
	due, more := !t.q.due.After(t.Now) || t.q.lookIsDue(), false // including what other processes changed
	if due {
		var err error
		if more, err = t.promote(t.portions()); err != nil {
			return err
		}
	}
	if err := t.releaseDoubtful(); err != nil {
		return err
	}
	if err := t.reapOwn(); err != nil {
		return err
	}
	if err := t.reapProcesses(); err != nil {
		return err
	}
	if !due && t.q.due.After(t.Now) {
		return nil
	}
	expire := func(j *job) {
		t.MakeDead(j, pawl.ReasonDeadline, pawl.Event{Cause: "its deadline has passed"})
	}
	late, err := t.inPortions(sqlExpired, &t.q.expire, func(j *job) int64 { return nanos(j.Deadline) }, expire)
	if err != nil {
		return err
	}
	retained := func(j *job) int64 {
		_, since := j.since()
		return since
	}
	old, err := t.inPortions(sqlRetained, &t.q.remove, retained, t.Remove)
	if err != nil {
		return err
	}
	tag, err := t.tx.Exec(t.ctx, t.q.sql(sqlForget), nanos(t.Now), t.q.budget)
	if err != nil {
		return err
	}
	t.write(sqlForgetPaces, nanos(t.Now), t.portion())
	if more || late || old || tag.RowsAffected() == int64(t.q.budget) {
		t.q.due = t.Now // the next transaction continues immediately
		t.raiseBudget()
		return nil
	}
	return t.lookAhead()
}

// promote makes due jobs ready, in at most the given number of portions. NotBefore stays: a job is ready since it was
// due.
func (t *txn) promote(most int) (more bool, err error) {
	p, err := t.newPromotion()
	if err != nil {
		return false, err
	}
	for range most {
		n, err := p.portion(t)
		if err != nil || n == 0 {
			return false, err
		}
		t.promoted = true
		t.stir()
		clear(t.q.marks)
		t.news.any = true
		if n < t.portion() || !t.hasTime() {
			return n == t.portion(), nil
		}
	}
	return true, nil
}

// dueMark is the last job that was read, in the order of the times at which jobs are due. The next look begins behind
// it, so that jobs that cannot move yet do not stand in the way of the others.
type dueMark struct{ at, seq int64 }

var noDueMark = dueMark{math.MinInt64, math.MinInt64} // before all jobs

// inPortions moves the jobs that a statement reads behind a mark, up to the limit of one transaction. After a portion of
// which no job can move, the next transaction that looks continues behind it.
func (t *txn) inPortions(statement string, mark *dueMark, at func(*job) int64, move func(*job)) (more bool, err error) {
	last := *mark
	t.after = append(t.after, func() { *mark = last })
	size := t.portion()
	for range t.portions() {
		rows, err := t.tx.Query(t.ctx, t.q.sql(statement), nanos(t.Now), size, last.at, last.seq)
		if err != nil {
			return false, err
		}
		jobs, err := t.scan(rows)
		if err != nil {
			return false, err
		}
		n := len(jobs)
		if last = noDueMark; n == size {
			last = dueMark{at(jobs[n-1]), int64(jobs[n-1].Seq)}
		}
		if jobs, err = t.movable(jobs); err != nil {
			return false, err
		}
		for _, j := range jobs {
			move(j)
		}
		if err := t.flush(); err != nil || n < size || len(jobs) == 0 {
			return false, err
		}
		if !t.hasTime() {
			break
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
	if !t.q.due.After(t.Now) {
		t.q.due = t.Now.Add(lockedSleep) // another session has locked it
	}
	return nil
}

// releaseDoubtful releases the leases of a commit with an unknown outcome, if the commit happened. Their fetches have
// returned an error.
func (t *txn) releaseDoubtful() error {
	if len(t.q.doubtful) == 0 {
		return nil
	}
	ids := make(map[pawl.ID]bool)
	for d := range t.q.doubtful {
		ids[d.id] = true
	}
	jobs, locked, err := t.loadFree(slices.Collect(maps.Keys(ids)))
	if err != nil {
		return err
	}
	slices.SortFunc(jobs, func(a, b *job) int { return cmp.Compare(a.Seq, b.Seq) })
	for _, j := range jobs {
		if t.q.doubtful[doubt{j.ID, j.token}] {
			t.release(j)
		}
	}
	t.after = append(t.after, func() { t.q.forgetDoubts(locked) })
	return t.flush()
}

// doubt is a lease that no caller received. It is in the store if its commit happened.
type doubt struct {
	id    pawl.ID
	token int64
}

// forgetDoubts forgets the doubts about jobs that are not locked: these leases were released, or their commit did not
// happen. The claim of a token stays as long as one of its jobs is locked: without the claim, the lease could not be
// found.
func (s *scheduler) forgetDoubts(locked map[pawl.ID]int64) {
	ended := make(map[int64]bool)
	for d := range s.doubtful {
		if locked[d.id] != d.token {
			ended[d.token] = true
			delete(s.doubtful, d)
		}
	}
	for d := range s.doubtful {
		delete(ended, d.token)
	}
	s.unclaimed = slices.AppendSeq(s.unclaimed, maps.Keys(ended))
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
	jobs, locked, err := t.loadFree(ids)
	if err != nil {
		return err
	}
	slices.SortFunc(jobs, func(a, b *job) int {
		return cmp.Or(t.q.held[a.ID].expires.Compare(t.q.held[b.ID].expires), cmp.Compare(a.Seq, b.Seq))
	})
	for _, j := range jobs {
		if h := t.q.held[j.ID]; j.token == h.token {
			t.Crash(j, pawl.EventReaped)
			t.reaped++
		}
	}
	for _, id := range ids { // including leases that another client settled
		h := t.q.held[id]
		if locked[id] == h.token { // perhaps a transaction of the app is acking it
			t.after = append(t.after, func() { h.expires = t.mono.Add(lockedSleep) })
			continue
		}
		t.after = append(t.after, func() { t.q.release(id, h.token) })
	}
	return t.flush()
}

// reapProcesses takes back the leases of ended processes, when it is time to look.
func (t *txn) reapProcesses() error {
	owner := t.q.reapOwner
	if owner == "" && !t.q.lookIsDue() && !t.looks {
		return nil
	}
	t.stir() // for jobs that other processes made ready, even before the marks
	t.q.marks = nil
	rows, err := t.tx.Query(t.ctx, t.q.sql(sqlDead), t.q.process, []byte(owner), t.q.clock(), !t.mono.Before(t.q.trusted))
	if err != nil {
		return err
	}
	dead, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return err
	}
	var claims int
	var last int64
	if len(dead) > 0 {
		if claims, last, err = t.recover(dead); err != nil {
			return err
		}
	}
	next := t.mono // continue immediately
	if claims < t.portions() {
		if next, err = t.nextLook(); err != nil {
			return err
		}
		owner, last = "", math.MinInt64
	}
	t.after = append(t.after, func() { t.q.nextLook, t.q.reapOwner, t.q.reapAfter = next, owner, last })
	return nil
}

// nextLook returns when to look for other processes again. Without polls, that is when one of the remaining processes
// may have ended.
func (t *txn) nextLook() (time.Time, error) {
	if t.q.opts.Poll != NoPoll {
		return t.mono.Add(t.q.opts.Poll), nil
	}
	var until *int64
	if err := t.tx.QueryRow(t.ctx, t.q.sql(sqlOthers), t.q.process).Scan(&until); err != nil || until == nil {
		return t.mono.Add(never), err
	}
	return t.mono.Add(max(timeOf(*until).Sub(t.Now), retrySleep)), nil
}

// recover takes back leases of ended processes in the order of their tokens, up to the limit of one transaction. It
// returns how many claims these were, and the last token. If another session has locked a job of a claim, the claim
// stays for the next look.
func (t *txn) recover(dead []int64) (claims int, last int64, err error) {
	rows, err := t.tx.Query(t.ctx, t.q.sql(sqlOrphans), dead, t.portions(), t.q.reapAfter)
	if err != nil {
		return 0, 0, err
	}
	tokens := make(map[int64]bool)
	var all []pawl.ID // a job is in the claim of each fetch that leased it
	var token int64
	var ids []pgtype.UUID
	_, err = pgx.ForEachRow(rows, []any{&token, &ids}, func() error {
		tokens[token], last = true, token
		for _, id := range ids {
			all = append(all, id.Bytes)
		}
		return nil
	})
	if err != nil {
		return 0, 0, err
	}
	jobs, locked, err := t.loadFree(all)
	if err != nil {
		return 0, 0, err
	}
	free := maps.Clone(tokens)
	for _, token := range locked {
		delete(free, token)
	}
	t.write(sqlUnclaim, slices.Collect(maps.Keys(free)))
	t.write(sqlRemoveEnded, dead)
	slices.SortFunc(jobs, func(a, b *job) int { return cmp.Compare(a.Seq, b.Seq) })
	for _, j := range jobs {
		if j.token != 0 && tokens[j.token] {
			t.Crash(j, pawl.EventRecovered)
			t.reaped++
		}
	}
	if len(jobs) > 0 {
		t.q.due = time.Time{} // a deadline may have passed while the jobs were leased
	}
	return len(tokens), last, t.flush()
}

// loadFree is load for the jobs that no other session has locked, and that may end without waiting for such a lock. It
// also returns the tokens of the leased jobs that another session has locked.
func (t *txn) loadFree(ids []pawl.ID) (jobs []*job, locked map[pawl.ID]int64, err error) {
	rows, err := t.tx.Query(t.ctx, t.q.sql(sqlLoad+" SKIP LOCKED"), uuids(ids))
	if err != nil {
		return nil, nil, err
	}
	if jobs, err = t.scan(rows); err != nil {
		return nil, nil, err
	}
	if jobs, err = t.movable(jobs); err != nil || len(jobs) == len(ids) {
		return jobs, nil, err
	}
	if locked, _, err = t.tokens(ids); err != nil {
		return nil, nil, err
	}
	for _, j := range jobs {
		delete(locked, j.ID)
	}
	return jobs, locked, nil
}
