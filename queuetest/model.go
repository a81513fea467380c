package queuetest

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// model is the contract in its shortest form: what each call and the passing of time do
// to the jobs, and which events they emit. It has no mutex, no order, and no index, so
// that nothing in it can be wrong in a clever way.
type model struct {
	lease      time.Duration
	maxCrashes int       // negative: no limit
	now        time.Time // of the current call
	jobs       []*modelJob
	holders    map[modelKey]*modelJob // of unique keys
	done       map[modelKey]time.Time // until when a key is done, without a queue
	paused     map[string]bool
	limits     map[string]pawl.Limits
	rates      rates
	rests      map[modelKey]time.Time // until when keys rest, and queues by the empty key
	fronts     map[modelTag]int64     // of priorities of queues whose keys take turns
	lasts      map[modelTag]int64     // the last tag that a key had
	turns      modelTurns
	groups     map[string]*modelGroup
	tardy      map[*modelJob]bool // whose turn came during the current fetch, and which it has not given
	events     []pawl.Event       // since the last comparison
}

// modelKey is a key in its scope.
type modelKey struct{ queue, kind, key string }

// modelJob is a job as inspection must show it.
type modelJob struct {
	pawl.Envelope
	token   uint64
	expires time.Time

	// Since the last comparison, the job ended in a way for which the contract leaves
	// open the fields without a meaning.
	open bool
}

func newModel(s Settings) *model {
	m := &model{lease: s.Lease, maxCrashes: s.MaxCrashes, now: time.Now()}
	m.holders, m.done, m.paused = make(map[modelKey]*modelJob), make(map[modelKey]time.Time), make(map[string]bool)
	m.limits, m.rates, m.rests = s.Limits, newRates(), make(map[modelKey]time.Time)
	m.fronts, m.lasts = make(map[modelTag]int64), make(map[modelTag]int64)
	m.groups = make(map[string]*modelGroup)
	m.turns.reset()
	return m
}

// find returns the job with an ID, or nil.
func (m *model) find(id pawl.ID) *modelJob {
	if i := slices.IndexFunc(m.jobs, func(j *modelJob) bool { return j.ID == id }); i >= 0 {
		return m.jobs[i]
	}
	return nil
}

// held returns the job of a lease that still holds, or nil.
func (m *model) held(l *pawl.Lease) *modelJob {
	if j := m.find(l.ID); j != nil && j.State == pawl.Leased && j.token == l.Token {
		return j
	}
	return nil
}

// emit records an event of a job in its current state.
func (m *model) emit(j *modelJob, e pawl.Event) {
	now := j.Envelope
	e.At, e.Job = m.now, &now
	m.events = append(m.events, e)
}

// advance does what the passing of time does until now, one change after another. It
// processes what was already due at the time of the last call.
func (m *model) advance(now time.Time) {
	for {
		j, at := m.next()
		if j == nil || at.After(now) {
			break
		}
		if at.After(m.now) {
			m.now = at
		}
		switch {
		case j.State == pawl.Leased:
			m.crash(j, pawl.EventReaped)
		case j.State == pawl.Completed:
			m.remove(j)
		case m.late(j):
			m.makeDead(j, pawl.ReasonDeadline, pawl.Event{})
		default:
			j.State = pawl.Ready
		}
	}
	m.now = now
}

// next returns the job that time changes next, and when, or nil for none.
func (m *model) next() (next *modelJob, at time.Time) {
	for _, j := range m.jobs {
		if due := j.due(); !due.IsZero() && (next == nil || due.Before(at)) {
			next, at = j, due
		}
	}
	return next, at
}

// due returns when time changes a job, or zero for never.
func (j *modelJob) due() time.Time {
	switch j.State {
	case pawl.Leased:
		return j.expires
	case pawl.Completed:
		return j.Completed.Add(j.Retain)
	case pawl.Dead:
		return time.Time{}
	case pawl.Delayed:
		if j.Deadline.IsZero() || j.NotBefore.Before(j.Deadline) {
			return j.NotBefore
		}
	}
	return j.Deadline
}

// late reports whether a job is past its deadline.
func (m *model) late(j *modelJob) bool { return !j.Deadline.IsZero() && !j.Deadline.After(m.now) }

// restart does what the end of the process does. A queue that is alone takes back its leases.
func (m *model) restart(alone bool) {
	for _, j := range slices.Clone(m.jobs) {
		if alone && j.State == pawl.Leased {
			m.crash(j, pawl.EventRecovered)
		}
	}
	m.turns.reset()
}

func (m *model) crash(j *modelJob, how pawl.EventType) {
	j.State, j.LeasedSince, j.BackoffSince = pawl.Ready, time.Time{}, time.Time{}
	j.Crashes++
	m.emit(j, pawl.Event{Type: how})
	switch {
	case j.Cancelled:
		m.makeDead(j, pawl.ReasonCancelled, pawl.Event{})
	case m.maxCrashes >= 0 && j.Crashes >= m.maxCrashes:
		j.note(m.now, anyText)
		m.makeDead(j, pawl.ReasonPoison, pawl.Event{})
	case m.late(j):
		m.makeDead(j, pawl.ReasonDeadline, pawl.Event{})
	}
}

// anyText stands in a history for a text that the queue chooses.
const anyText = "any text"

// note records in the history why an attempt did not end normally.
func (j *modelJob) note(now time.Time, cause string) {
	j.Failures++
	j.History = append(j.History, pawl.Failure{Attempt: j.Attempt(), At: now, Error: cause})
}

// makeDead makes a job dead. Run describes its last attempt.
func (m *model) makeDead(j *modelJob, reason pawl.Reason, run pawl.Event) {
	j.State, j.Death, j.Cancelled, j.FairTag = pawl.Dead, &pawl.Death{Reason: reason, At: m.now}, false, 0
	j.HoldsKey = j.HoldsKey && m.limits[j.Queue].InOrder == pawl.OrderHold
	j.open = true
	run.Type = pawl.EventDied
	m.emit(j, run)
}

// remove deletes a job and so frees its unique key.
func (m *model) remove(j *modelJob) {
	m.jobs = slices.DeleteFunc(m.jobs, func(other *modelJob) bool { return other == j })
	if key := j.unique(); m.holders[key] == j {
		delete(m.holders, key)
	}
}

// settle ends the lease of a job by a verb. Run describes the attempt, with the delay
// of a nack or a snooze. Reason is that of an abandon.
func (m *model) settle(j *modelJob, verb string, run pawl.Event, reason pawl.Reason) {
	j.LeasedSince, j.BackoffSince, j.Crashes = time.Time{}, time.Time{}, 0
	delay := max(run.Delay, 0)
	run.Delay = 0
	switch {
	case verb == "ack":
		m.succeed(j, run)
		return
	case verb == "abandon" && !driver.CountsAttempt(reason):
		j.note(m.now, run.Cause)
	case verb == "nack" || verb == "abandon":
		failed(&j.Envelope, m.now, run.Cause)
	}
	switch {
	case j.Cancelled:
		m.makeDead(j, pawl.ReasonCancelled, run)
	case verb == "abandon":
		m.makeDead(j, reason, run)
	case verb == "nack":
		j.BackoffSince, j.FairTag = m.now, 0
		run.Type, run.Delay = pawl.EventRetried, delay
		m.emit(j, run)
		m.place(j, m.now.Add(delay))
	case verb == "release":
		m.emit(j, pawl.Event{Type: pawl.EventReleased})
		m.place(j, j.NotBefore)
	case verb == "snooze":
		m.emit(j, pawl.Event{Type: pawl.EventSnoozed})
		j.FairTag = 0
		m.place(j, m.now.Add(delay))
	}
}

// succeed ends a job whose attempt succeeded. Its key is done from then on.
func (m *model) succeed(j *modelJob, run pawl.Event) {
	j.Attempts++
	if j.IdempotencyKey != "" {
		m.done[j.effect()] = m.now.Add(cmp.Or(j.IdempotencyTTL, pawl.DefaultIdempotencyTTL))
	}
	run.Type = pawl.EventSucceeded
	m.emit(j, run)
	m.complete(j)
}

// complete removes a job, or makes it a completed job.
func (m *model) complete(j *modelJob) {
	m.group(&j.Envelope).succeeded++
	if j.Retain == 0 {
		m.remove(j)
		return
	}
	j.State, j.Completed, j.Cursor, j.HoldsKey, j.FairTag, j.open = pawl.Completed, m.now, nil, false, 0, true
}

// place makes a job delayed until a time, or ready when that is not later than now. A
// job past its deadline becomes dead instead.
func (m *model) place(j *modelJob, due time.Time) {
	if j.NotBefore, j.State = due, pawl.Ready; due.After(m.now) {
		j.State = pawl.Delayed
	}
	if m.late(j) {
		m.makeDead(j, pawl.ReasonDeadline, pawl.Event{})
	}
}

// accepts are the states of the jobs to which each verb of an operator applies.
var accepts = map[pawl.Verb][]pawl.State{
	pawl.VerbRetry:  {pawl.Dead},
	pawl.VerbCancel: {pawl.Ready, pawl.Delayed, pawl.Leased},
	pawl.VerbDelete: {pawl.Dead, pawl.Completed},
	pawl.VerbRunNow: {pawl.Delayed},

	pawl.VerbReleaseKey: {pawl.Dead},
}

// operate does what an operator does to a job, unless it returns the error that the queue must
// return.
func (m *model) operate(verb pawl.Verb, id pawl.ID, keepAttempts bool) error {
	j := m.find(id)
	switch {
	case j == nil:
		return pawl.ErrNotFound
	case !slices.Contains(accepts[verb], j.State):
		return pawl.ErrConflict
	case verb == pawl.VerbReleaseKey && !j.HoldsKey:
		return pawl.ErrConflict
	}
	switch verb {
	case pawl.VerbReleaseKey:
		j.HoldsKey = false
	case pawl.VerbRetry:
		return m.retry(j, keepAttempts)
	case pawl.VerbDelete:
		if m.remove(j); j.State == pawl.Dead {
			m.group(&j.Envelope).removed++
		}
		m.emit(j, pawl.Event{Type: pawl.EventDeleted})
	case pawl.VerbRunNow:
		j.State, j.NotBefore = pawl.Ready, m.now
		m.emit(j, pawl.Event{Type: pawl.EventRunNow})
	case pawl.VerbCancel:
		if j.State != pawl.Leased {
			m.makeDead(j, pawl.ReasonCancelled, pawl.Event{})
		} else if !j.Cancelled {
			j.Cancelled = true
			m.emit(j, pawl.Event{Type: pawl.EventCancelled})
		}
	}
	return nil
}

// retry makes a dead job ready, unless its deadline has passed or another job has its key.
func (m *model) retry(j *modelJob, keepAttempts bool) error {
	h := m.holders[j.unique()]
	if m.late(j) || h != nil && h != j && driver.BlockedBy(&j.Envelope, h.State) {
		return pawl.ErrConflict
	}
	j.State, j.Death, j.Crashes, j.NotBefore, j.BackoffSince = pawl.Ready, nil, 0, m.now, time.Time{}
	j.open = false
	if !keepAttempts {
		j.Attempts = 0
	}
	m.hold(j)
	m.emit(j, pawl.Event{Type: pawl.EventRevived})
	return nil
}

// compare finds where the jobs of a queue differ from the model.
func (m *model) compare(jobs []*pawl.Envelope) error {
	if len(jobs) != len(m.jobs) {
		return fmt.Errorf("the queue has %d jobs, the model %d", len(jobs), len(m.jobs))
	}
	if err := m.takeTags(jobs); err != nil {
		return err
	}
	for _, e := range jobs {
		j := m.find(e.ID)
		if j == nil {
			return fmt.Errorf("the model has no job %s: %+v", e.ID, e)
		}
		j.settleOpen(e)
		if d := difference(e, &j.Envelope); d != "" {
			return fmt.Errorf("job %s: %s", e.ID, d)
		}
	}
	if !slices.IsSortedFunc(m.jobs, func(a, b *modelJob) int { return cmp.Compare(a.Seq, b.Seq) }) {
		return fmt.Errorf("the sequences are not in the order of the enqueues")
	}
	return nil
}

// settleOpen copies what the contract leaves open.
func (j *modelJob) settleOpen(e *pawl.Envelope) {
	for i := range min(len(j.History), len(e.History)) {
		if j.History[i].Error == anyText {
			j.History[i].Error = e.History[i].Error
		}
	}
	if !j.open || e.State != j.State {
		return
	}
	j.open = false
	switch {
	case j.State == pawl.Completed:
		j.Cancelled, j.BackoffSince, j.Crashes = e.Cancelled, e.BackoffSince, e.Crashes
	case j.Death.Reason == pawl.ReasonCancelled || j.Death.Reason == pawl.ReasonDeadline:
		j.NotBefore, j.BackoffSince = e.NotBefore, e.BackoffSince
	}
}

// counts returns the counts of each queue.
func (m *model) counts() map[string]pawl.Counts {
	all := make(map[string]pawl.Counts)
	for _, j := range m.jobs {
		c := all[j.Queue]
		*driver.CountOf(&c, j.State)++
		if j.State == pawl.Dead && j.HoldsKey {
			c.Held++
		}
		all[j.Queue] = c
	}
	return all
}
