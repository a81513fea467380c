package postgres

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/core"
)

// fetch is a call of Fetch. It is accepted by a transaction, and then waits for one that has jobs
// for it.
type fetch struct {
	pawl.Request
	core.Call     // of the fetch, once it waits
	queues, kinds [][]byte
	leases        []*pawl.Lease
}

// Fetch implements [pawl.Queue]. If several processes fetch at the same time, each skips the jobs
// that another one has locked. So a call with [pawl.WaitNot] may return [pawl.ErrEmpty] although
// the other process then leaves some of these jobs.
//
// The order of jobs is exact within a process. If another process puts a job in front of others while a long
// transaction keeps the server from removing rows, the job may wait for the next poll.
func (q *Queue) Fetch(ctx context.Context, r pawl.Request) ([]*pawl.Lease, error) {
	r, err := driver.CheckRequest(r)
	if err != nil {
		return nil, err
	}
	f := &fetch{Request: r, Call: core.NewCall(ctx, nil), queues: bytesOf(r.Queues), kinds: bytesOf(r.Kinds)}
	if err := q.submit(ctx, f); err != nil {
		return nil, err
	}
	err = f.Await(func() { q.intake.Note(f) })
	return f.leases, err
}

func (f *fetch) needs(*needs) {}

func (f *fetch) apply(t *txn) error {
	t.fetches = append(t.fetches, f)
	return nil
}

// serve answers waiting fetches in their order: the fetches for which there are jobs, and those that give up.
func (t *txn) serve() error {
	waiting, from := slices.Concat(t.q.waiting, t.fetches), len(t.q.waiting)
	if !t.q.rest.IsZero() && !t.q.rest.After(t.Now) {
		t.q.stirred = true
	}
	if len(waiting) > 0 && (t.q.stirred || from < len(waiting)) {
		t.lockLimits(waiting)
	}
	before := t.q.rest
	for t.q.stirred || from < len(waiting) {
		if t.q.stirred {
			from, before = 0, time.Time{}
		}
		t.q.stirred = false
		left := waiting[:from:from]
		for _, f := range waiting[from:] {
			answered, err := t.offer(f)
			if err != nil {
				return err
			}
			if !answered {
				left = append(left, f)
			}
		}
		waiting, from = left, len(left)
	}
	t.writeKept()
	t.after = append(t.after, func() {
		t.q.waiting, t.q.rest = waiting, earlier(before, t.rest)
		for _, f := range waiting {
			f.Reopen()
		}
	})
	return nil
}

// offer leases jobs to a fetch, or makes it give up. It reports whether the fetch has its answer.
func (t *txn) offer(f *fetch) (answered bool, err error) {
	if f.Ctx.Err() != nil || !f.Accept() {
		return false, nil // it is about to be dismissed
	}
	t.looking = append(t.looking, f)
	s := &selection{t: t, f: f, idle: f.Max - f.Ahead}
	if err := s.run(); err != nil {
		return false, err
	}
	if err := s.waitForPools(); err != nil {
		return false, err
	}
	if len(s.leases) > 0 {
		t.leasing = append(t.leasing, f)
		t.after = append(t.after, func() {
			f.leases = s.leases
			f.Answer(nil)
		})
		return true, nil
	}
	s.rests()
	held := true
	switch f.Wait {
	case pawl.WaitForJob:
	case pawl.WaitNot:
		held = s.goesOn
	default:
		due := t.Now
		if f.Wait == pawl.WaitFinished {
			due = latest
		}
		err = t.tx.QueryRow(t.ctx, t.q.sql(sqlHeld), f.queues, f.kinds, nanos(due)).Scan(&held)
	}
	if err == nil && !held {
		t.after = append(t.after, func() { f.Answer(pawl.ErrEmpty) })
	}
	return !held, err
}

// claim leases the jobs that were chosen.
func (s *selection) claim(chosen []*candidate) error {
	t := s.t
	ids := make([]pawl.ID, len(chosen))
	statement := sqlClaim
	for i, c := range chosen {
		if ids[i] = c.id; c.order != pawl.OrderNone {
			statement = sqlClaimHeads
		}
	}
	token := rand.Int64()
	t.countEntries()
	s.writePaces()
	rows, err := t.tx.Query(t.ctx, t.q.sql(statement), token, t.q.process, uuids(ids), nanos(t.Now))
	if err != nil {
		return err
	}
	jobs, damaged, err := collectClaimed(rows, chosen, token)
	if err != nil {
		return err
	}
	granted := 0
	for _, id := range ids {
		switch j := jobs[id]; {
		case j != nil:
			s.leases = append(s.leases, t.grant(j))
			t.passFront(j)
			granted++
		case damaged[id] == nil:
			return errRace // impossible while the locks of the peek are held
		}
	}
	t.after = append(t.after, func() {
		if granted > 0 {
			t.q.claims[token] = granted
		} else {
			t.q.unclaimed = append(t.q.unclaimed, token)
		}
		t.q.marks.pass(slices.DeleteFunc(chosen, func(c *candidate) bool { return s.rooms[c.queue] != nil })) // blocked jobs stay before the marks
	})
	t.writeMovedFronts()
	if err := t.makeCorrupt(damaged, token); err != nil {
		return err
	}
	return t.flush()
}

// grant makes the lease of a claimed job. A lease does not include the state and the history of the job.
func (t *txn) grant(j *job) *pawl.Lease {
	h := &held{token: j.token, signal: new(driver.Cancellation), expires: t.expiry()}
	t.granted[j.ID] = j.token
	t.after = append(t.after, func() {
		if earlier := t.q.held[j.ID]; earlier != nil { // another client settled it
			t.q.release(j.ID, earlier.token)
		}
		t.q.held[j.ID] = h
	})
	if name := core.EffectName(&j.Envelope); name != "" {
		t.effects[name] = effect{id: j.ID}
	}
	if j.isRepeat() {
		t.effects[repeatSlot] = effect{id: j.ID}
	}
	e := j.Envelope
	e.State, e.LeasedSince, e.HoldsKey, e.FairTag = "", time.Time{}, false, 0
	j.State, j.LeasedSince, j.Payload = pawl.Leased, t.Now, nil
	fetched := pawl.Event{Type: pawl.EventFetched}
	if !j.BackoffSince.IsZero() {
		fetched.Backoff = t.Now.Sub(j.BackoffSince)
	}
	t.Emit(j, fetched)
	return &pawl.Lease{Envelope: &e, Token: uint64(h.token), Length: t.q.opts.Lease, Expires: h.expires, Cancelled: h.signal}
}

// collectClaimed reads the jobs of a claim, and the errors of jobs with damaged records. The columns that the peek
// has read cannot have changed, since the peek has locked the jobs, and a ready job is not marked as cancelled.
func collectClaimed(rows pgx.Rows, chosen []*candidate, token int64) (jobs map[pawl.ID]*job, damaged map[pawl.ID]error, err error) {
	peeked := make(map[pawl.ID]*candidate, len(chosen))
	for _, c := range chosen {
		peeked[c.id] = c
	}
	jobs, damaged = make(map[pawl.ID]*job, len(chosen)), make(map[pawl.ID]error)
	var row jobRow
	_, err = pgx.ForEachRow(rows, []any{&row.id, &row.record, &row.payload}, func() error {
		c := peeked[row.id.Bytes]
		row.seq, row.token = c.seq, pgtype.Int8{Int64: token, Valid: true}
		j, err := row.job()
		if err != nil {
			damaged[row.id.Bytes] = err
			return nil
		}
		j.HoldsKey = c.order != pawl.OrderNone
		jobs[j.ID] = j
		return nil
	})
	return jobs, damaged, err
}

// candidate is a job that may be leased.
type candidate struct {
	queue  string
	line   int32
	id     pawl.ID
	lane   int16
	prio   int16
	since  int64
	seq    int64
	effect string
	key    string
	order  pawl.KeyOrder
	cost   int
	done   bool // its effect is done, so it ends without an attempt
	bytes  int  // bytes of its payload

	dropped bool // it can no longer be chosen in this round
}

func (c *candidate) of() lane { return lane{c.line, c.lane} }

// peek reads and locks the first n candidates of each line and lane, by their queues. If a call finds none behind the
// marks, it also looks before them. A call that waits for a job waits for the next look instead.
func (s *selection) peek(n int) (map[string][]*candidate, error) {
	marks, known := s.t.q.marks, s.t.limits != nil
	if known {
		if _, err := s.measure(); err != nil {
			return nil, err
		}
	}
	found, err := s.peekBehind(marks, n)
	if err == nil && !known && (len(found) > 0 || s.looksFurther()) { // the limits arrived in the same round trip
		var limited bool
		if limited, err = s.measure(); err == nil && limited {
			found, err = s.peekBehind(marks, n)
		}
	}
	for err == nil && s.adopt(found) {
		if _, err = s.measure(); err == nil {
			found, err = s.peekBehind(marks, n)
		}
	}
	if err == nil && len(found) == 0 && len(marks) > 0 && s.f.Wait != pawl.WaitForJob {
		clear(marks)
		found, err = s.peekBehind(marks, n)
	}
	return found, err
}

func (s *selection) peekBehind(m marks, n int) (map[string][]*candidate, error) {
	queues, full, keys := s.open()
	if len(queues) == 0 {
		return nil, nil
	}
	return s.look(queues, full, keys, m, n)
}

// look reads and locks the first n candidates of each line and lane of queues behind the marks, except for candidates
// of some keys.
func (s *selection) look(queues, full, keys [][]byte, m marks, n int) (map[string][]*candidate, error) {
	lanes := []int16{0, 1}
	if s.idle > 0 {
		lanes = []int16{0, 1, 2, 3, 4, 5}
	}
	ofLine, ofLane, prios, since, seqs := m.columns()
	rows, err := s.t.tx.Query(s.t.ctx, s.t.q.sql(sqlPeek), queues, s.f.kinds, lanes, nanos(s.t.Now), n,
		ofLine, ofLane, prios, since, seqs, full, keys)
	if err != nil {
		return nil, err
	}
	found := make(map[string][]*candidate)
	var queue, effect, key []byte
	var id pgtype.UUID
	var order, cost pgtype.Int2
	var done pgtype.Bool
	c := new(candidate)
	_, err = pgx.ForEachRow(rows, []any{&queue, &c.line, &id, &c.lane, &c.prio, &c.since, &c.seq, &effect, &key, &order, &cost, &done, &c.bytes}, func() error {
		next := *c
		next.queue, next.id, next.effect, next.key = string(queue), id.Bytes, string(effect), string(key)
		next.order, next.cost, next.done = pawl.KeyOrder(order.Int16), max(1, int(cost.Int16)), done.Bool
		found[next.queue] = append(found[next.queue], &next)
		return nil
	})
	return found, errors.Join(err, rows.Err())
}

func bytesOf(texts []string) (list [][]byte) {
	for _, text := range texts {
		list = append(list, []byte(text))
	}
	return list
}
