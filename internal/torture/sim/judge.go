package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// judge compares the history with the contract.
type judge struct {
	w       *world
	rules   rules
	byToken map[uint64]*lease
	leases  []*lease
	waiting []*fetch // fetches that were open at the last look
	answers []*fetch // fetches answered since the last scan
	acks    []*record
	skips   []*record

	// Guarded by the history's mutex.
	pauses  []pausing
	batches [][]*record // batches since the last crash
}

// pausing is a pause or resume of a queue.
type pausing struct {
	queue   string
	at      int64
	paused  bool
	unknown bool // it is unknown whether it happened
}

func newJudge(w *world) judge {
	r := rules{wall: w.wall, lease: w.c.Lease, maxCrashes: w.c.MaxCrashes}
	if w.c.Clock {
		r.slack = longestSleep
	}
	return judge{w: w, rules: r, byToken: make(map[uint64]*lease)}
}

// take takes the records since its last call.
func (j *judge) take(at int64, crashed bool) error {
	w := j.w
	w.mu.Lock()
	records, fetches := w.records, w.fetches
	w.records, w.fetches = nil, nil
	for _, f := range fetches {
		if f.open {
			w.fetches = append(w.fetches, f)
		}
	}
	j.waiting = w.fetches
	if crashed {
		w.fetches = nil
	}
	err := errors.Join(w.wrong...)
	w.mu.Unlock()
	if err != nil {
		return err
	}
	for _, f := range fetches {
		if !f.open && len(f.leases) > 0 {
			j.answers = append(j.answers, f)
		}
	}
	for _, r := range records {
		t := w.tracks[r.job]
		switch {
		case t == nil:
			return fmt.Errorf("%v: nobody stored the job", r)
		case r.end == never && !crashed:
			return fmt.Errorf("job %d: %v has no answer, and nothing is left to wait for", r.job, r)
		case t.retired.Load() && r.what != "extend":
			t.retired.Store(false) // calls on a missing job get ErrNotFound and ErrLeaseLost
		}
		if t.retired.Load() {
			continue
		}
		t.records = append(t.records, r)
		if err := j.follow(t, r); err != nil {
			return err
		}
	}
	for _, t := range w.order {
		if t.retired.Load() {
			continue
		}
		if err := t.explain(at, crashed, len(j.waiting) > 0); err != nil {
			return err
		}
	}
	j.expire(at, crashed)
	return j.existed(records)
}

// follow applies a record to the leases.
func (j *judge) follow(t *track, r *record) error {
	switch r.what {
	case "lease":
		if j.byToken[r.token] != nil {
			return fmt.Errorf("job %d: a lease has the token of an earlier lease", r.job)
		}
		l := &lease{record: r, track: t, expires: r.at + int64(j.rules.lease)}
		j.byToken[r.token] = l
		j.leases, t.leases = append(j.leases, l), append(t.leases, l)
		return nil
	case "cancel":
		if r.err == nil && r.end != never {
			t.cancels = append(t.cancels, r.at)
		}
	case "skip":
		j.skips = append(j.skips, r)
		return nil
	}
	l := j.byToken[r.token]
	if l == nil {
		return nil
	}
	if r.what != "extend" {
		l.settles = append(l.settles, r)
	}
	switch {
	case r.what == "ack" && (r.err == nil || r.end == never):
		j.acks = append(j.acks, r)
	}
	switch {
	case r.end == never || r.err != nil || l.ended != 0:
	case r.what == "extend":
		l.expires = max(l.expires, r.at+int64(j.rules.lease))
	default:
		l.ended, l.how = r.at, r.what
	}
	return nil
}

// expire ends the leases that ended without a call.
func (j *judge) expire(at int64, crashed bool) {
	for _, l := range j.leases {
		switch {
		case l.ended != 0:
		case l.expires <= at:
			l.ended, l.how = l.expires, "expiry"
		case crashed:
			l.ended, l.how = at, "crash"
		}
	}
}

// existed requires that a job blocked the unique key of each job that was not stored for it.
func (j *judge) existed(records []*record) error {
	for _, r := range records {
		if r.what != "enqueue" || r.end == never || r.existing == 0 || r.existing == r.job {
			continue
		}
		t, other := j.w.tracks[r.job], j.w.tracks[r.existing]
		if other == nil || other.Unique != t.Unique || other.Queue != t.Queue || other.Kind != t.Kind {
			return fmt.Errorf("job %d was not stored for the unique key of job %d, which does not have it", r.job, r.existing)
		}
		if other.touched(r.at) { // it may have existed for a part of this instant
			continue
		}
		if other.retired.Load() || !slices.ContainsFunc(append(other.at(r.at, false), other.at(r.at, true)...), alive) {
			return fmt.Errorf("job %d was not stored for the unique key of job %d, which was not there:\n%s", r.job, r.existing, other.story())
		}
	}
	return nil
}

func alive(k known) bool {
	return k.State != "" && k.State != pawl.Dead && k.State != pawl.Completed
}

// judgeCrash judges up to a crash.
func (w *world) judgeCrash(at int64) error { return w.judge.take(at, true) }

// look scans the file and requires that each job is in a possible state. With check, it also
// compares every row. No call is in progress.
func (w *world) look(check bool) error {
	j := &w.judge
	at := now()
	if err := j.take(at, false); err != nil {
		return err
	}
	found := make(map[pawl.ID]*pawl.Envelope)
	for e, err := range w.proc.q.Jobs(context.Background(), pawl.Filter{}) {
		if err != nil {
			return err
		}
		if n := w.numbers[e.ID]; n == 0 || w.tracks[n].id != e.ID {
			return fmt.Errorf("the file has a job that nobody stored: %v", e)
		}
		found[e.ID] = e
		w.tracks[w.numbers[e.ID]].seq = e.Seq
	}
	if err := j.inOrder(); err != nil {
		return err
	}
	for _, t := range w.order {
		if e := found[t.id]; e != nil && t.retired.Load() {
			return fmt.Errorf("job %d is in the file again, %s, after it was gone\n%s", t.N, e.State, t.story())
		} else if !t.retired.Load() {
			if err := t.found(e); err != nil {
				return err
			}
		}
	}
	if err := j.together(found); err != nil {
		return err
	}
	if check {
		return w.proc.q.Check(context.Background())
	}
	return nil
}

// together judges rules between jobs while no call is in progress.
func (j *judge) together(found map[pawl.ID]*pawl.Envelope) error {
	type key struct{ queue, kind, unique string }
	unique := make(map[key]int)
	busy := make(map[string]bool) // effects of leased jobs, and "" for a job that crashed twice
	leased, pool := 0, j.w.c.Pool
	for _, e := range found {
		if e.State == pawl.Leased {
			leased++
		}
		if t := j.w.tracks[j.w.numbers[e.ID]]; e.State == pawl.Leased {
			busy[t.effect()] = true
			busy[""] = busy[""] || e.Crashes >= 2
		}
	}
	if pool > 0 && leased > pool {
		return fmt.Errorf("%d jobs are leased, and the pool of their queues has a limit of %d", leased, pool)
	}
	for _, t := range j.w.order {
		e := found[t.id]
		if e == nil {
			continue
		}
		if live := e.State != pawl.Dead && e.State != pawl.Completed; live && t.Unique != "" {
			k := key{t.Queue, t.Kind, t.Unique}
			if other := unique[k]; other != 0 {
				return fmt.Errorf("jobs %d and %d have the same unique key", other, t.N)
			}
			unique[k] = t.N
		}
		if e.State != pawl.Ready || j.isPaused(t.Queue, now()) != running || t.Effect != "" && busy[t.effect()] || pool > 0 && leased == pool {
			continue
		}
		for _, f := range j.waiting {
			may := e.Crashes == 0 || f.request.Max > f.request.Ahead && (e.Crashes == 1 || !busy[""])
			if may && slices.Contains(f.request.Queues, t.Queue) && driver.Wants(&f.request, t.Kind) {
				return fmt.Errorf("job %d is ready, and a fetch waits for jobs of its queue and kind\n%s", t.N, t.story())
			}
		}
	}
	return j.whole(found)
}

// whole requires that all jobs or no jobs of a batch without an answer are in the file.
func (j *judge) whole(found map[pawl.ID]*pawl.Envelope) error {
	j.w.mu.Lock()
	batches := j.batches
	j.batches = nil
	j.w.mu.Unlock()
	for _, batch := range batches {
		there := 0
		plain := true
		for _, r := range batch {
			t := j.w.tracks[r.job]
			plain = plain && r.end == never && t.Unique == "" && t.Effect == "" // a job may be skipped immediately
			if found[t.id] != nil {
				there++
			}
		}
		if plain && there != 0 && there != len(batch) {
			return fmt.Errorf("of a batch of %d jobs %d are in the file", len(batch), there)
		}
	}
	return nil
}
