package queuetest

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/metrics"
)

// witness receives the events of a queue and has its counters.
type witness struct {
	mu     sync.Mutex
	events []pawl.Event // with jobs of their own
	late   string       // an event with the time of another moment
	tally  metrics.Tally
}

// witnessed replaces the queue with one whose events and counters are visible. It ends
// the case if the queue has none.
func (f *fixture) witnessed(s Settings) *witness {
	f.Helper()
	if !f.config.Events {
		f.Skip("the queue emits no events")
	}
	w := new(witness)
	s.OnEvent, s.Collector = w.see, &w.tally
	f.fresh(s)
	return w
}

func (w *witness) see(e pawl.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !e.At.Equal(time.Now()) {
		w.late = fmt.Sprintf("%s at %v, received at %v", e.Type, e.At, time.Now())
	}
	e.Job = copied(e.Job)
	w.events = append(w.events, e)
}

// taken returns the events since its last call.
func (w *witness) taken() []pawl.Event {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	events := w.events
	w.events = nil
	return events
}

// typesOf returns the types of events, in order, as one text. A death includes its
// reason.
func typesOf(events []pawl.Event) string {
	var words []string
	for _, e := range events {
		word := string(e.Type)
		if e.Type == pawl.EventDied && e.Job.Death != nil {
			word += "/" + string(e.Job.Death.Reason)
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

// outcome has the parts of an event by which counters tell events apart.
type outcome struct {
	kind     pawl.EventType
	reason   pawl.Reason // of a death
	timedOut bool
}

// counted is the table of the contract: the counters that an event increments.
func (o outcome) counted() []string {
	names := map[pawl.EventType][]string{
		pawl.EventFetched:   {"jobs_fetched"},
		pawl.EventSucceeded: {"jobs_succeeded"},
		pawl.EventSkipped:   {"jobs_skipped_idempotent"},
		pawl.EventRetried:   {"jobs_failed", "jobs_requeued", "retries_total"},
		pawl.EventDied:      {"jobs_failed_permanently"},
		pawl.EventReleased:  {"jobs_released"},
		pawl.EventSnoozed:   {"jobs_snoozed"},
		pawl.EventReaped:    {"jobs_reaped"},
		pawl.EventRecovered: {"jobs_recovered"},
	}[o.kind]
	names = slices.Concat(names, map[pawl.Reason][]string{
		pawl.ReasonExhausted: {"jobs_failed", "retry_exhausted_total"},
		pawl.ReasonPermanent: {"jobs_failed"},
		pawl.ReasonPoison:    {"jobs_poisoned"},
		pawl.ReasonDeadline:  {"jobs_expired"},
		pawl.ReasonCancelled: {"jobs_cancelled"},
		pawl.ReasonSignature: {"jobs_rejected_signature"},
		pawl.ReasonPayload:   {"jobs_rejected_payload"},
	}[o.reason])
	if o.timedOut {
		names = append(names, "jobs_timed_out")
	}
	return names
}

// figures are counters, and distributions by the observed values.
type figures struct {
	counts map[metrics.Figure]int64
	values map[metrics.Figure]metrics.Distribution
}

func newFigures() *figures {
	return &figures{make(map[metrics.Figure]int64), make(map[metrics.Figure]metrics.Distribution)}
}

// add counts an event by the table of the contract.
func (s *figures) add(e pawl.Event) {
	l := metrics.Labels{Queue: e.Job.Queue, Kind: e.Job.Kind}
	o := outcome{kind: e.Type, timedOut: e.TimedOut}
	if e.Type == pawl.EventDied {
		o.reason = e.Job.Death.Reason
	}
	for _, name := range o.counted() {
		s.counts[metrics.Figure{Name: name, Labels: l}]++
	}
	observe := func(name string, d time.Duration) {
		key, v := metrics.Figure{Name: name, Labels: l}, d.Seconds()
		all, seen := s.values[key]
		if !seen {
			all.Min, all.Max = v, v
		}
		all.Count, all.Sum = all.Count+1, all.Sum+v
		all.Min, all.Max = min(all.Min, v), max(all.Max, v)
		s.values[key] = all
	}
	switch e.Type {
	case pawl.EventFetched:
		observe("jobs_age_seconds", e.At.Sub(e.Job.NotBefore))
		if !e.Job.BackoffSince.IsZero() {
			observe("retry_latency_seconds", e.At.Sub(e.Job.BackoffSince))
		}
	case pawl.EventSucceeded:
		observe("jobs_exec_seconds", e.Took)
	case pawl.EventRetried:
		observe("retry_delay_seconds", e.Delay)
	}
}

// compare finds where the counters of a queue differ from these.
func (s *figures) compare(got metrics.Snapshot) error {
	if !maps.Equal(got.Counts, s.counts) {
		return fmt.Errorf("the counters are %v, want %v", got.Counts, s.counts)
	}
	if len(got.Distributions) != len(s.values) {
		return fmt.Errorf("the distributions are %v, want %v", got.Distributions, s.values)
	}
	for key, want := range s.values {
		// A sum depends on the order in which its parts were added.
		d := got.Distributions[key]
		if rounding := 1e-6 * (1 + math.Abs(want.Sum)); math.Abs(d.Sum-want.Sum) > rounding ||
			d.Count != want.Count || d.Min != want.Min || d.Max != want.Max {
			return fmt.Errorf("%s of %v is %+v, want %+v", key.Name, key.Labels, d, want)
		}
	}
	return nil
}
