package sim

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// longestSleep is the time until the queue notices a step of the clock.
const longestSleep = time.Minute

type pauseState int

const (
	running pauseState = iota
	paused
	unsure
)

// isPaused returns the state of a queue at an instant without a pause or resume.
func (j *judge) isPaused(queue string, at int64) (is pauseState) {
	j.w.mu.Lock()
	defer j.w.mu.Unlock()
	for _, p := range j.pauses {
		switch {
		case p.queue != queue || p.at > at:
		case p.unknown || p.at == at:
			is = unsure
		case p.paused:
			is = paused
		default:
			is = running
		}
	}
	return is
}

// inOrder judges the fetches since the last scan: the jobs that they took and the jobs that
// they left.
func (j *judge) inOrder() error {
	fetches := j.answers
	j.answers = nil
	for _, f := range fetches {
		idle := f.request.Max - f.request.Ahead
		if len(f.leases) > f.request.Max {
			return fmt.Errorf("a fetch of %d jobs returned %d", f.request.Max, len(f.leases))
		}
		last := make(map[string]*track) // the last job of each queue
		lastDue := make(map[string]known)
		for _, r := range f.leases {
			t := j.w.tracks[r.job]
			if r.crashes > 0 {
				idle--
			}
			if j.isPaused(t.Queue, r.at) == paused {
				return fmt.Errorf("job %d was leased, and its queue is paused", t.N)
			}
			if !slices.Contains(f.request.Queues, t.Queue) || !driver.Wants(&f.request, t.Kind) {
				return fmt.Errorf("job %d of queue %s was leased to a fetch that did not ask for it", t.N, t.Queue)
			}
			last[t.Queue] = t
			lastDue[t.Queue] = leasedAs(t, r)
		}
		if idle < 0 {
			return fmt.Errorf("a fetch with %d idle slots returned more jobs that had crashed", f.request.Max-f.request.Ahead)
		}
		for queue, t := range last {
			if lastDue[queue].State == "" {
				continue
			}
			if err := j.ahead(f, t, lastDue[queue]); err != nil {
				return err
			}
		}
	}
	return nil
}

// leasedAs returns the state of a job right before its lease, if known.
func leasedAs(t *track, r *record) known {
	for _, k := range t.at(r.at, true) {
		if k.token == r.token {
			return k
		}
	}
	return known{}
}

// ahead requires that a fetch left no job that comes before t, the last job of its queue in
// the answer. Only jobs that were ready throughout the instant of the fetch count.
func (j *judge) ahead(f *fetch, t *track, as known) error {
	for _, other := range j.w.order {
		if other.seq == 0 || t.seq == 0 || other.retired.Load() || other == t || other.Queue != t.Queue || other.Effect != "" || !driver.Wants(&f.request, other.Kind) {
			continue
		}
		before, after := other.at(f.at, false), other.at(f.at, true)
		if len(before) != 1 || len(after) != 1 || before[0] != after[0] {
			continue
		}
		k := before[0]
		if k.State != pawl.Ready || k.crashes > 0 || other.touched(f.at) {
			continue
		}
		if f.request.RetryShare != 0 && (k.attempts > 0) != (as.attempts > 0) {
			continue
		}
		if cmp.Or(cmp.Compare(t.Priority, other.Priority), cmp.Compare(k.due, as.due), cmp.Compare(other.seq, t.seq)) < 0 {
			return fmt.Errorf("at %s job %d was leased before job %d, which was ready and comes first: priority %d and %d, ready since %s and %s, sequence %d and %d\n%s\n%s",
				clock(f.at), t.N, other.N, t.Priority, other.Priority, clock(as.due), clock(k.due), t.seq, other.seq, t.story(), other.story())
		}
	}
	return nil
}

// touched reports whether a call may have changed a job in an instant since the last scan.
func (t *track) touched(at int64) bool {
	return slices.ContainsFunc(t.spans, func(s span) bool { return s.at == at })
}
