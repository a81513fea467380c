package queuetest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// modelTurns is what the queue remembers about its fetches until it is closed: the
// turns of each named queue, and the remainder of its retry share.
type modelTurns struct {
	virtual uint64
	count   int
	finish  map[string]uint64
	last    map[string]int // 0 for none
	credit  map[string]float64
}

func (t *modelTurns) reset() {
	*t = modelTurns{finish: make(map[string]uint64), last: make(map[string]int), credit: make(map[string]float64)}
}

func (t *modelTurns) start(queue string) uint64 { return max(t.finish[queue], t.virtual) }

// give gives a queue its turn.
func (t *modelTurns) give(queue string, weight int) {
	t.count++
	t.virtual, t.last[queue] = t.start(queue), t.count
	t.finish[queue] = t.virtual + 1<<32/uint64(weight)
}

// Sorts of jobs.
func anySort(*modelJob) bool      { return true }
func isRetry(j *modelJob) bool    { return j.Attempts > 0 }
func isFirstRun(j *modelJob) bool { return j.Attempts == 0 }

// fetch checks the jobs that a fetch returned, one after the other, and leases them.
// Skipped names the jobs that the queue removed without running them.
//
// A job whose turn comes because the fetch skips the one before it is tardy: how far the fetch has come
// then decides which jobs are given before it. But no tardy job may be left when there is room for it.
func (m *model) fetch(r pawl.Request, leases []*pawl.Lease, skipped func(pawl.ID) bool) error {
	early := m.heads()
	for _, j := range slices.Clone(m.jobs) {
		if j.State == pawl.Ready && m.isDone(j) && slices.Contains(r.Queues, j.Queue) && driver.Wants(&r, j.Kind) && !m.paused[j.Queue] && skipped(j.ID) {
			m.emit(j, pawl.Event{Type: pawl.EventSkipped})
			m.complete(j)
		}
	}
	m.tardy = m.heads()
	maps.DeleteFunc(m.tardy, func(j *modelJob, _ bool) bool { return early[j] })
	idle := r.Max - r.Ahead
	for _, l := range leases {
		delete(m.tardy, m.find(l.ID))
		want := m.choose(r, idle)
		if want == nil || want.ID != l.ID {
			return fmt.Errorf("job %s was leased for one of %d idle slots: %s; the model would have given: %s", l.ID, idle, m.text(m.find(l.ID)), m.text(want))
		}
		if want.Crashes > 0 {
			idle--
		}
		leased := want.Envelope
		leased.State, leased.History, leased.HoldsKey, leased.FairTag = "", nil, false, 0
		if d := difference(l.Envelope, &leased); d != "" {
			return fmt.Errorf("the lease of job %s: %s", l.ID, d)
		}
		want.State, want.LeasedSince, want.token, want.expires = pawl.Leased, m.now, l.Token, m.now.Add(m.lease)
		want.HoldsKey = m.inOrder(want)
		fetched := pawl.Event{Type: pawl.EventFetched}
		if !want.BackoffSince.IsZero() {
			fetched.Backoff = m.now.Sub(want.BackoffSince)
		}
		m.emit(want, fetched)
		m.startFair(want)
		if err := m.rates.start(m.limits[want.Queue], want, m.now); err != nil {
			return err
		}
	}
	if m.tardy = nil; len(leases) < r.Max {
		if j := m.choose(r, idle); j != nil {
			return fmt.Errorf("a fetch of %d jobs with %d idle slots got %d and left: %s", r.Max, r.Max-r.Ahead, len(leases), m.text(j))
		}
	}
	return nil
}

// text describes what a fetch considers about a job.
func (m *model) text(j *modelJob) string {
	if j == nil {
		return "no job"
	}
	return fmt.Sprintf("%v, %s, priority %d, ready since %v, sequence %d, crashes %d, key %q, idempotency key %q, done: %v",
		j, j.State, j.Priority, j.NotBefore.Format(time.StampNano), j.Seq, j.Crashes, j.Key, j.IdempotencyKey, m.isDone(j))
}

// choose returns the job that is leased next, after its queue got a turn, or nil for
// none.
func (m *model) choose(r pawl.Request, idle int) *modelJob {
	turn := ""
	for _, name := range r.Queues {
		if m.first(r, name, idle, anySort) == nil {
			continue
		}
		if turn == "" || cmp.Or(cmp.Compare(m.turns.start(name), m.turns.start(turn)), cmp.Compare(m.turns.last[name], m.turns.last[turn])) < 0 {
			turn = name
		}
	}
	if turn == "" {
		return nil
	}
	m.turns.give(turn, driver.Weight(&r, turn))
	retry, first := m.first(r, turn, idle, isRetry), m.first(r, turn, idle, isFirstRun)
	if r.RetryShare == 0 || retry == nil || first == nil {
		return m.first(r, turn, idle, anySort)
	}
	m.turns.credit[turn] += r.RetryShare
	if m.turns.credit[turn] >= 1-1e-9 {
		m.turns.credit[turn]--
		return retry
	}
	return first
}

// first returns the first job of a sort and of the named kinds on a queue, with this
// many idle slots, or nil.
func (m *model) first(r pawl.Request, queue string, idle int, sort func(*modelJob) bool) (first *modelJob) {
	if m.paused[queue] || m.full(queue) {
		return nil
	}
	repeatSuspect := slices.ContainsFunc(m.jobs, func(j *modelJob) bool { return j.State == pawl.Leased && j.Crashes >= 2 })
	for _, j := range m.jobs {
		may := j.Crashes == 0 || idle > 0 && (j.Crashes == 1 || !repeatSuspect)
		if j.State == pawl.Ready && j.Queue == queue && driver.Wants(&r, j.Kind) && sort(j) && may && !m.tardy[j] && (first == nil || j.before(first)) && !m.isRunning(j) && !m.keyFull(j) {
			first = j
		}
	}
	return first
}

// full reports whether as many jobs of a queue are leased as may be.
func (m *model) full(queue string) bool {
	if m.rests[modelKey{queue: queue}].After(m.now) || !m.rates.allow(m.limits[queue].Rate, modelKey{queue: queue}, m.now) {
		return true
	}
	if p := m.limits[queue].Pool; p.Running > 0 && m.leased(func(j *modelJob) bool { return m.limits[j.Queue].Pool.Name == p.Name }) >= p.Running {
		return true
	}
	limit := m.limits[queue].Running
	return limit > 0 && m.leased(func(j *modelJob) bool { return j.Queue == queue }) >= limit
}

// keyFull reports whether as many jobs with the key of a job are leased as may be.
func (m *model) keyFull(j *modelJob) bool {
	if j.Key != "" && m.rests[modelKey{queue: j.Queue, key: j.Key}].After(m.now) {
		return true
	}
	if j.Key != "" && !m.rates.allow(m.limits[j.Queue].RatePerKey, modelKey{queue: j.Queue, key: j.Key}, m.now) {
		return true
	}
	if m.inOrder(j) {
		return !m.isNext(j)
	}
	limit := m.limits[j.Queue].RunningPerKey
	return limit > 0 && j.Key != "" && m.leased(func(other *modelJob) bool { return other.Queue == j.Queue && other.Key == j.Key }) >= limit
}

// inOrder reports whether a job runs in order with others of its key.
func (m *model) inOrder(j *modelJob) bool {
	return j.Key != "" && m.limits[j.Queue].InOrder != pawl.OrderNone
}

// isNext reports whether a ready job may run before all others of its key: it holds the key, or no
// job holds the key and none became due before it.
func (m *model) isNext(j *modelJob) bool {
	for _, other := range m.jobs {
		if other == j || other.Queue != j.Queue || other.Key != j.Key {
			continue
		}
		due := cmp.Or(other.NotBefore.Compare(j.NotBefore), cmp.Compare(other.Seq, j.Seq))
		if other.HoldsKey || !j.HoldsKey && other.State == pawl.Ready && due < 0 {
			return false
		}
	}
	return true
}

// heads returns the ready jobs that may run before all others of their keys.
func (m *model) heads() map[*modelJob]bool {
	heads := make(map[*modelJob]bool)
	for _, j := range m.jobs {
		if j.State == pawl.Ready && m.inOrder(j) && m.isNext(j) {
			heads[j] = true
		}
	}
	return heads
}

// skipsHead reports whether a fetch can skip a job that others of its key wait for.
func (m *model) skipsHead(r pawl.Request) bool {
	return slices.ContainsFunc(m.jobs, func(j *modelJob) bool {
		return j.State == pawl.Ready && m.inOrder(j) && m.isDone(j) && slices.Contains(r.Queues, j.Queue) && driver.Wants(&r, j.Kind)
	})
}

func (m *model) leased(is func(*modelJob) bool) (n int) {
	for _, j := range m.jobs {
		if j.State == pawl.Leased && is(j) {
			n++
		}
	}
	return n
}

func (j *modelJob) before(other *modelJob) bool {
	since := j.NotBefore.Compare(other.NotBefore)
	if j.FairTag != 0 || other.FairTag != 0 {
		since = cmp.Compare(j.FairTag, other.FairTag)
	}
	return cmp.Or(cmp.Compare(other.Priority, j.Priority), since, cmp.Compare(j.Seq, other.Seq)) < 0
}

// waits reports whether a fetch finds nothing and continues to wait, or may do so.
func (m *model) waits(r pawl.Request) bool {
	if r.Wait == pawl.WaitNot {
		return false
	}
	work := false
	for _, j := range m.jobs {
		switch {
		case !slices.Contains(r.Queues, j.Queue) || !driver.Wants(&r, j.Kind):
		case j.State == pawl.Ready && m.isDone(j) && j.Crashes == 0 && !m.paused[j.Queue] && !m.full(j.Queue) && !m.keyFull(j): // it is skipped
		case j.State == pawl.Ready || j.State == pawl.Leased || j.State == pawl.Delayed && r.Wait == pawl.WaitFinished:
			work = true
		}
	}
	undone := func(j *modelJob) bool { return !m.isDone(j) }
	return work && !slices.ContainsFunc(r.Queues, func(name string) bool { return m.first(r, name, r.Max-r.Ahead, undone) != nil })
}

// storyOf returns the events of each job since the last call, in order, as text.
func storyOf(events []pawl.Event) map[pawl.ID]string {
	stories := make(map[pawl.ID]string)
	for _, e := range events {
		text := fmt.Sprintf("%s at %s", typesOf([]pawl.Event{e}), e.At.Format(time.StampNano))
		switch e.Type {
		case pawl.EventSucceeded:
			text += fmt.Sprintf(" took %v", e.Took)
		case pawl.EventRetried:
			text += fmt.Sprintf(" took %v delay %v cause %q", e.Took, e.Delay, e.Cause)
		case pawl.EventFetched:
			text += fmt.Sprintf(" backoff %v", e.Backoff)
		}
		if e.TimedOut {
			text += " timed out"
		}
		stories[e.Job.ID] += text + "; "
	}
	return stories
}

func (j *modelJob) unique() modelKey { return uniqueOf(&j.Envelope) }

func uniqueOf(e *pawl.Envelope) modelKey { return modelKey{e.Queue, e.Kind, e.UniqueKey} }

func (j *modelJob) effect() modelKey { return modelKey{kind: j.Kind, key: j.IdempotencyKey} }

// hold makes a job the last that took its unique key.
func (m *model) hold(j *modelJob) {
	if j.UniqueKey != "" {
		m.holders[j.unique()] = j
	}
}

// isDone reports whether the idempotency key of a job is done.
func (m *model) isDone(j *modelJob) bool {
	return j.IdempotencyKey != "" && m.done[j.effect()].After(m.now)
}

// isRunning reports whether another job of the same idempotency key is leased.
func (m *model) isRunning(j *modelJob) bool {
	if j.IdempotencyKey == "" {
		return false
	}
	for _, other := range m.jobs {
		if other.State == pawl.Leased && other.effect() == j.effect() {
			return true
		}
	}
	return false
}

// admits returns the error that an enqueue of valid jobs must return. All of them name
// their queues. It changes nothing.
func (m *model) admits(batch []*pawl.Envelope) error {
	taken := make(map[modelKey]pawl.State)
	from := make(map[modelKey]*pawl.Envelope)
	for key, j := range m.holders {
		taken[key], from[key] = j.State, &j.Envelope
	}
	adds := make(map[modelKey]int)
	for _, e := range batch {
		state, held := taken[uniqueOf(e)]
		switch held = held && e.UniqueKey != ""; {
		case held && driver.BlockedBy(e, state) && e.OnConflict == pawl.UseExisting:
			continue
		case held && driver.BlockedBy(e, state):
			if e.OnConflict == pawl.Reject || state == pawl.Leased {
				return pawl.ErrConflict
			}
			if driver.IsWaiting(state) {
				countWaiting(adds, from[uniqueOf(e)], -1)
			}
		case m.find(e.ID) != nil:
			return pawl.ErrConflict
		}
		if e.Deadline.IsZero() || e.Deadline.After(m.now) {
			countWaiting(adds, e, 1)
		}
		if e.UniqueKey != "" {
			taken[uniqueOf(e)], from[uniqueOf(e)] = pawl.Ready, e
			if e.Delay > 0 || e.NotBefore.After(m.now) {
				taken[uniqueOf(e)] = pawl.Delayed
			}
		}
	}
	if m.exceedsBound(adds) {
		return pawl.ErrQueueFull
	}
	return nil
}

// enqueue stores jobs that the model admits. The envelopes are complete, also with
// their sequences, and the queue returned done.
func (m *model) enqueue(filled []*pawl.Envelope, done []pawl.Enqueued) error {
	before := len(m.events)
	defer m.replaced(slices.Clone(m.jobs))()
	for i, e := range filled {
		event := pawl.EventEnqueued
		if h := m.holders[uniqueOf(e)]; h != nil && e.UniqueKey != "" && driver.BlockedBy(e, h.State) {
			if e.OnConflict == pawl.UseExisting {
				if done[i] != (pawl.Enqueued{ID: h.ID, Existing: true}) {
					return fmt.Errorf("job %s has the unique key, and the enqueue returned %+v", h.ID, done[i])
				}
				continue
			}
			if e.ID != h.ID {
				return fmt.Errorf("job %s was replaced by one with the ID %s", h.ID, e.ID)
			}
			m.remove(h)
			event = pawl.EventReplaced
			// A job of this batch that a later one replaces never existed: only the
			// last one is reported.
			if k := slices.IndexFunc(m.events[before:], func(e pawl.Event) bool { return e.Job.ID == h.ID }); k >= 0 {
				event = m.events[before+k].Type
				m.events = slices.Delete(m.events, before+k, before+k+1)
			}
		}
		if done[i].Existing {
			return fmt.Errorf("job %s says that another job exists, but none does", e.ID)
		}
		j := &modelJob{Envelope: *copied(e)}
		m.jobs = append(m.jobs, j)
		m.hold(j)
		// The event shows the job in its first state. If its deadline has passed, its
		// death follows.
		m.emit(j, pawl.Event{Type: event})
		m.place(j, j.NotBefore)
	}
	return nil
}
