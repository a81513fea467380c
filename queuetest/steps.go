package queuetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/gopawl/pawl"
)

// The steps of a random walk. Each makes a call that may have any arguments, makes the
// same call on the model, and compares the results.

func (w *walker) stepEnqueue() {
	batch := newBatch(1 + w.random.IntN(4))
	for _, e := range batch {
		w.invent(e)
	}
	var want error
	switch spoil := batch[w.random.IntN(len(batch))]; {
	case w.random.IntN(10) == 0:
		spoil.MaxRetries, want = -1, pawl.ErrInvalid
	case w.random.IntN(10) == 0 && spoil.UniqueKey == "" && highestCost(w.model.limits[spoil.Queue], spoil.Key != "") < pawl.MaxCost:
		spoil.Cost, want, batch = pawl.MaxCost, pawl.ErrInvalid, []*pawl.Envelope{spoil} // nothing else may be wrong
	case w.random.IntN(10) == 0 && len(w.model.jobs) > 0:
		spoil.ID = w.model.jobs[w.random.IntN(len(w.model.jobs))].ID
		want = w.model.admits(batch)
	default:
		want = w.model.admits(batch)
	}
	done, err := w.put(w.q, batch...)
	w.note("enqueue %d jobs: %v", len(batch), err)
	if w.is(err, want, "enqueue"); err == nil {
		for _, e := range batch {
			e.Seq = w.must(e.ID).Seq
		}
		w.after(w.model.enqueue(batch, done))
	}
}

// invent makes up a job.
func (w *walker) invent(e *pawl.Envelope) {
	e.Kind, e.Queue = w.kind(), w.queue()
	e.Priority = int8(w.random.IntN(3) - 1)
	e.MaxRetries = w.random.IntN(5)
	e.Payload = make([]byte, w.random.IntN(2000))
	switch w.random.IntN(6) {
	case 0:
		e.Delay = w.delay()
	case 1:
		e.NotBefore = time.Now().Add(w.delay())
	case 2:
		e.NotBefore = time.Now().Add(-w.delay())
	}
	if w.random.IntN(4) == 0 {
		e.Retain = 2 * w.delay()
	}
	if w.random.IntN(3) == 0 {
		e.IdempotencyKey, e.IdempotencyTTL = pick(w.random, "e1", "e2", "e3"), pick(w.random, 0, w.delay(), w.delay(), w.delay())
	}
	if w.random.IntN(2) == 0 {
		e.Key = pick(w.random, "k1", "k2")
	}
	if cost := w.random.IntN(highestCost(w.model.limits[e.Queue], e.Key != "")) + 1; cost > 1 && w.random.IntN(2) == 0 {
		e.Cost = cost
	}
	if w.random.IntN(4) == 0 {
		e.Weight = 1 + w.random.IntN(pawl.MaxTurns)
	}
	if w.random.IntN(2) == 0 {
		e.UniqueKey = pick(w.random, "u1", "u2")
		e.OnConflict = pick(w.random, pawl.UseExisting, pawl.Reject, pawl.Replace, pawl.Replace)
		for _, state := range pawl.States() {
			if w.random.IntN(4) == 0 {
				e.UniqueIn = append(e.UniqueIn, state)
			}
		}
	}
	switch w.random.IntN(8) {
	case 0, 1:
		e.Deadline = time.Now().Add(2 * w.delay())
		if e.NotBefore.After(e.Deadline) {
			e.Deadline = e.NotBefore.Add(w.delay())
		}
	case 2:
		// The contract leaves open whether a job that is dead at once blocks the rest
		// of its batch.
		if e.UniqueKey == "" && !e.NotBefore.After(time.Now()) {
			e.Deadline = later(e.NotBefore, time.Now().Add(-w.delay()))
		}
	}
	if w.random.IntN(10) == 0 {
		e.ID = pawl.NewID(time.Now())
	}
	if w.random.IntN(2) == 0 {
		e.Group = pick(w.random, walkGroups[0], walkGroups[1])
	}
	for _, s := range settings {
		if s.ability&abilitiesOf(w.q) == 0 {
			s.unset(e)
		}
	}
	if abilitiesOf(w.q)&pawl.LimitKeys == 0 {
		e.Cost = 0
	}
	if abilitiesOf(w.q)&pawl.FairKeys == 0 {
		e.Weight = 0
	}
}

// highestCost is the highest cost that a queue takes from a job, with a key or without.
func highestCost(l pawl.Limits, keyed bool) int {
	highest := pawl.MaxCost
	if l.Rate.Starts > 0 {
		highest = max(1, l.Rate.MaxCost)
	}
	if l.RatePerKey.Starts > 0 && keyed {
		highest = min(highest, max(1, l.RatePerKey.MaxCost))
	}
	return highest
}

// later returns the later of two times.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (w *walker) stepFetch() {
	r := pawl.Request{Queues: []string{"x", "y", "never seen"}, Max: 1 + w.random.IntN(5)}
	w.random.Shuffle(len(r.Queues), func(i, j int) { r.Queues[i], r.Queues[j] = r.Queues[j], r.Queues[i] })
	r.Queues = r.Queues[:1+w.random.IntN(3)]
	r.Ahead = w.random.IntN(r.Max + 1)
	if w.random.IntN(2) == 0 {
		r.Kinds = []string{w.kind(), w.kind()}
		slices.Sort(r.Kinds)
	}
	r.RetryShare = pick(w.random, 0, 0, 0.1, 0.2, 1.0/3, 0.5, 1)
	if abilitiesOf(w.q)&pawl.RetryShares == 0 || w.model.skipsHead(r) { // a tardy job may be a retry
		r.RetryShare = 0
	}
	if w.random.IntN(2) == 0 {
		r.Weights = weights{w.queue(): 1 + w.random.IntN(5), w.queue(): 1 + w.random.IntN(pawl.MaxWeight)}
	}
	if r.Wait = pick(w.random, pawl.WaitNot, pawl.WaitDrained, pawl.WaitFinished); w.model.waits(r) {
		r.Wait = pawl.WaitNot
	}
	w.fetchAs(r)
}

// fetchAs fetches and compares the jobs with those that the model would return.
func (w *walker) fetchAs(r pawl.Request) []*pawl.Lease {
	if w.model.anyFair() {
		w.after(w.model.takeTags(w.list(pawl.Filter{})))
	}
	leases := w.request(r)
	w.note("fetch %+v: %d leases", r, len(leases))
	w.after(w.model.fetch(r, leases, func(id pawl.ID) bool {
		e := w.job(id)
		return e == nil || e.State == pawl.Completed
	}))
	if len(w.leases) > 4*mostJobs {
		w.leases = slices.DeleteFunc(w.leases, func(l *pawl.Lease) bool { return w.model.held(l) == nil })
	}
	w.leases = append(w.leases, leases...)
	return leases
}

// stepThin removes a job, or as many as one fetch gets.
func (w *walker) stepThin() {
	for _, j := range w.model.jobs {
		if j.State == pawl.Dead || j.State == pawl.Completed {
			w.stepOperate(deleting, j.ID)
			return
		}
	}
	for _, l := range w.fetchAs(pawl.Request{Queues: []string{"x", "y"}, Max: 9}) {
		w.settle(l, "ack")
	}
}

// stepThrottle throttles a key or a queue by a lease, or ends the rest of a key.
func (w *walker) stepThrottle() {
	if abilitiesOf(w.q)&pawl.LimitKeys == 0 {
		return
	}
	if q, ok := w.q.(Rester); ok && w.random.IntN(4) == 0 {
		at := modelKey{queue: w.queue(), key: pick(w.random, "k1", "k2")}
		w.note("end the rest of %+v", at)
		w.ok(q.EndRest(w.Context(), at.queue, at.key), "end the rest of a key")
		delete(w.model.rests, at)
		return
	}
	l, d, rest := w.given(), w.delay(), pick(w.random, pawl.ThisKey, pawl.ThisKey, pawl.ThisQueue)
	j := w.model.held(l)
	var want error
	switch {
	case j == nil:
		want = pawl.ErrLeaseLost
	case rest == pawl.ThisKey && (j.Key == "" || !w.model.limits[j.Queue].PerKey()):
		want = pawl.ErrInvalid
	}
	err := w.q.Settle(w.Context(), l.Throttle(d, rest))
	w.note("throttle job %s, %s for %v: %v", l.ID, rest, d, err)
	if w.is(err, want, "throttle"); err != nil {
		return
	}
	at := modelKey{queue: j.Queue}
	if rest == pawl.ThisKey {
		at.key = j.Key
	}
	w.model.rests[at] = later(w.model.rests[at], w.model.now.Add(d))
	w.model.settle(j, "release", pawl.Event{}, "")
}

func (w *walker) stepSettle() { w.settle(w.given(), verbs[w.random.IntN(len(verbs))].name) }

// settle ends a lease by a verb, and what it held in the model.
func (w *walker) settle(l *pawl.Lease, verb string) {
	j := w.model.held(l)
	var want error
	if j == nil {
		want = pawl.ErrLeaseLost
	}
	run := pawl.Event{Delay: pick(w.random, 0, -time.Second, w.delay(), w.delay())}
	reason := pick(w.random, pawl.ReasonExhausted, pawl.ReasonPermanent, pawl.ReasonSignature, pawl.ReasonPayload)
	if verb == "ack" || verb == "nack" || verb == "abandon" {
		if run.TimedOut = w.random.IntN(4) == 0; w.random.IntN(2) == 0 {
			run.Took = w.delay()
			l.Started = time.Now().Add(-run.Took)
		} else {
			l.Started = time.Time{}
		}
		l.TimedOut = run.TimedOut
	}
	var err error
	switch verb {
	case "ack":
		err = w.q.Settle(w.Context(), l.Ack())
	case "nack":
		run.Cause = errBoom.Error()
		err = w.q.Settle(w.Context(), l.Nack(run.Delay, errBoom))
	case "abandon":
		run.Cause = errBoom.Error()
		err = w.q.Settle(w.Context(), l.Abandon(reason, errBoom))
	case "release":
		err = w.q.Settle(w.Context(), l.Release())
	case "snooze":
		err = w.q.Settle(w.Context(), l.Snooze(run.Delay))
	}
	w.note("%s job %s, delay %v, reason %s: %v", verb, l.ID, run.Delay, reason, err)
	if w.is(err, want, verb); err == nil {
		w.model.settle(j, verb, run, reason)
	}
}

// stepSettlements settles up to four leases in one call, in any way. Some may be stale,
// and some may be the same.
func (w *walker) stepSettlements() {
	var settlements []pawl.Settlement
	for range w.random.IntN(5) {
		l := w.given()
		l.Started, l.TimedOut = time.Time{}, false
		settlements = append(settlements, pick(w.random, l.Ack(), l.Ack(), l.Nack(w.delay(), errBoom),
			l.Abandon(pawl.ReasonExhausted, errBoom), l.Release(), l.Snooze(w.delay())))
	}
	lost := make(map[*pawl.Lease]bool)
	for _, s := range settlements {
		j := w.model.held(s.Lease)
		if j == nil {
			lost[s.Lease] = true
			continue
		}
		run := pawl.Event{Delay: s.Delay}
		if s.Cause != nil {
			run.Cause = s.Cause.Error()
		}
		w.model.settle(j, string(s.Outcome), run, s.Reason)
	}
	w.note("settle %d leases, %d of them stale", len(settlements), len(lost))
	err := w.q.Settle(w.Context(), settlements...)
	if len(lost) == 0 {
		w.ok(err, "settle")
		return
	}
	failed := w.failed(err)
	for l := range lost {
		w.fixture.is(failed[l], pawl.ErrLeaseLost, fmt.Sprintf("settlement of job %s", l.ID))
	}
	equal(w.fixture, len(failed), len(lost), "leases that could not be settled")
}

func (w *walker) stepExtend() {
	var leases, lost []*pawl.Lease
	for range w.random.IntN(4) {
		l := w.given()
		leases = append(leases, l)
		if j := w.model.held(l); j != nil {
			j.expires = time.Now().Add(w.model.lease)
		} else {
			lost = append(lost, l)
		}
	}
	w.note("extend %d leases, %d of them stale", len(leases), len(lost))
	if got := w.extend(leases...); !slices.Equal(got, lost) {
		w.Fatalf("lost: %v, want %v", got, lost)
	}
}

// stepSave saves a cursor of a job that is leased, and sometimes by a stale lease.
func (w *walker) stepSave() {
	q, ok := w.q.(pawl.CursorSaver)
	if !ok {
		return
	}
	l, cursor := w.given(), fmt.Append(nil, w.steps)
	j := w.model.held(l)
	err := q.SaveCursor(w.Context(), l, cursor)
	w.note("save a cursor of job %s: %v", l.ID, err)
	if j == nil {
		w.is(err, pawl.ErrLeaseLost, "save a cursor")
		return
	}
	w.ok(err, "save a cursor")
	j.Cursor, j.Crashes, j.expires = cursor, 0, time.Now().Add(w.model.lease)
}

// stepOperate does what an operator does to a job, if the queue has a method for it.
func (w *walker) stepOperate(o operation, id pawl.ID) {
	if !o.can(w.q) {
		return
	}
	keep := o.verb == pawl.VerbRetry && w.random.IntN(2) == 0
	err := o.do(w.fixture, id, keep)
	w.note("%s of job %s, attempts kept: %v: %v", o.name, id, keep, err)
	w.is(err, w.model.operate(o.verb, id, keep), o.name)
}

// stepCancel cancels a job, often one that is leased.
func (w *walker) stepCancel() {
	id := w.id()
	if w.random.IntN(2) == 0 {
		id = w.given().ID
	}
	w.stepOperate(cancelling, id)
}

// stepRelease releases a key, usually one that a dead job holds.
func (w *walker) stepRelease() {
	id := w.id()
	for _, j := range w.model.jobs {
		if j.HoldsKey && j.State == pawl.Dead {
			id = j.ID
		}
	}
	w.stepOperate(releasing, id)
}

// stepPause pauses a queue, or resumes one, which is likelier.
func (w *walker) stepPause() {
	if _, ok := w.q.(Pauser); !ok {
		return
	}
	queue := w.queue()
	if w.model.paused[queue] = w.random.IntN(3) == 0; w.model.paused[queue] {
		w.note("pause %s", queue)
		w.pause(queue)
	} else {
		w.note("resume %s", queue)
		w.resume(queue)
		delete(w.model.rests, modelKey{queue: queue})
	}
}

// stepEnded makes a call whose context has ended.
func (w *walker) stepEnded() {
	ctx := w.ended()
	all := calls()
	c := all[w.random.IntN(len(all))]
	w.note("%s with a context that has ended", c.name)
	w.is(c.do(ctx, w.q, w.given()), pawl.ErrNotAccepted, c.name)
}
