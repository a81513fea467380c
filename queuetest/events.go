package queuetest

import (
	"cmp"
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

// story is a sequence of calls and the events that they emit, in order.
type story struct {
	name, rule string
	needs      needs // besides events
	settings   Settings
	before     func(f *fixture) *pawl.Lease // whose events do not count; f.lone unless it is set
	happens    func(f *fixture, l *pawl.Lease)
	want       string
	look       func(f *fixture, l *pawl.Lease, events []pawl.Event) // at more than the types
}

// lone enqueues a job, and leases it.
func (f *fixture) lone(change ...func(*pawl.Envelope)) *pawl.Lease {
	f.Helper()
	f.add(change...)
	return f.lease()
}

// runFor lets an attempt take some time.
func (f *fixture) runFor(l *pawl.Lease, d time.Duration) {
	l.Started = time.Now()
	f.pass(d)
}

// cancelled is lone with a job that was cancelled.
func (f *fixture) cancelled() *pawl.Lease {
	f.Helper()
	l := f.lone()
	f.cancel(l.ID)
	return l
}

// nearDeadline is lone with a job whose deadline is one second away.
func (f *fixture) nearDeadline() *pawl.Lease { return f.lone(within(time.Second)) }

// settled ends the lease of a job whose attempt took two seconds and timed out.
func settled(f *fixture, l *pawl.Lease, end func(*fixture, *pawl.Lease)) {
	f.runFor(l, 2*time.Second)
	l.TimedOut = true
	end(f, l)
}

// ofRun requires that an event describes the attempt that settled ended.
func ofRun(f *fixture, e pawl.Event, cause string) {
	f.Helper()
	equal(f, e.Took, 2*time.Second, "time that the attempt took")
	equal(f, e.TimedOut, true, "timed out")
	equal(f, e.Cause, cause, "cause")
}

func abandonFor(reason pawl.Reason) func(*fixture, *pawl.Lease) {
	return func(f *fixture, l *pawl.Lease) {
		f.ok(f.q.Settle(f.Context(), l.Abandon(reason, errBoom)), "abandon")
	}
}

// deaths returns the stories of abandon.
func deaths() (list []story) {
	for _, reason := range []pawl.Reason{pawl.ReasonExhausted, pawl.ReasonPermanent, pawl.ReasonPoison, pawl.ReasonSignature, pawl.ReasonPayload} {
		list = append(list, story{
			name:    "abandon, " + string(reason),
			rule:    "EventDied carries the reason, the cause, the duration of the attempt, and whether it timed out.",
			happens: func(f *fixture, l *pawl.Lease) { settled(f, l, abandonFor(reason)) },
			want:    "died/" + string(reason),
			look:    func(f *fixture, _ *pawl.Lease, events []pawl.Event) { ofRun(f, events[0], "boom") },
		})
	}
	return list
}

// test runs a story and counts its events.
func (s story) test() test {
	rule := s.rule + " The counters count each event once, as the table in the contract says."
	return newTest(s.name, rule, func(f *fixture) {
		w := f.witnessed(s.settings)
		before := func(f *fixture) *pawl.Lease { return f.lone() }
		if s.before != nil {
			before = s.before
		}
		l := before(f)
		counted := newFigures()
		for _, e := range w.taken() {
			counted.add(e)
		}
		f.ok(counted.compare(w.tally.Snapshot()), "count what was before")
		s.happens(f, l)
		events := w.taken()
		equal(f, typesOf(events), s.want, "events")
		equal(f, w.late, "", "an event whose time is not that of its transition")
		for _, e := range events {
			if e.Job.ID.IsZero() || e.Job.Queue == "" || e.Job.Kind == "" {
				f.Fatalf("the event %s does not say which job it is about: %+v", e.Type, e.Job)
			}
			counted.add(e)
		}
		if s.look != nil {
			s.look(f, l, events)
		}
		f.ok(counted.compare(w.tally.Snapshot()), "count")
	}).needing(s.needs)
}

func eventTests() (tests []test) {
	for _, s := range slices.Concat(stories, runNowStories, editStories, deaths()) {
		tests = append(tests, s.test())
	}
	return append(tests,
		newTest("to nobody", "A queue may have a listener for events without a collector of counters, and the reverse.", func(f *fixture) {
			w := f.witnessed(Settings{})
			f.fresh(Settings{OnEvent: w.see})
			f.ack(f.lone())
			equal(f, typesOf(w.taken()), "enqueued fetched succeeded", "events without a collector")
			equal(f, len(w.tally.Snapshot().Counts), 0, "counters")
			f.fresh(Settings{Collector: &w.tally})
			f.ack(f.lone())
			equal(f, typesOf(w.taken()), "", "events of another queue")
			equal(f, w.tally.Snapshot().Total(metrics.JobsSucceeded), 1, "successes counted without a listener")
			f.fresh(Settings{})
			f.ack(f.lone())
		}),
		newTest("from many at once",
			"The events of a job come in the order of its transitions, however many callers there are, and none is missing.", func(f *fixture) {
				const jobs, workers = 200, 8
				w := f.witnessed(Settings{})
				f.enqueue(newBatch(jobs)...)
				f.drain([]*fixture{f}, workers, pawl.Request{Max: 4}, func(q pawl.Queue, i int, leases []*pawl.Lease) {
					for _, l := range leases {
						v := verbs[[]int{0, 1, 3, 4, 2, 0}[(i+int(l.Seq%97))%6]]
						if err := v.end(f.Context(), q, l); err != nil {
							f.Errorf("%s: %v", v.name, err)
						}
					}
				})
				counted := newFigures()
				lives := make(map[pawl.ID][]pawl.Event)
				for _, e := range w.taken() {
					counted.add(e)
					lives[e.Job.ID] = append(lives[e.Job.ID], e)
				}
				f.ok(counted.compare(w.tally.Snapshot()), "count")
				equal(f, len(lives), jobs, "jobs with events")
				for id, life := range lives {
					state := pawl.State("")
					for i, e := range life {
						if next, ok := follows(state, e.Type); ok {
							state = next
							continue
						}
						f.Fatalf("job %s: event %d of %s cannot come there", id, i+1, typesOf(life))
					}
					if state != "gone" {
						f.Fatalf("job %s: the last of its events is missing: %s", id, typesOf(life))
					}
				}
			}),
	)
}

// follows returns the state of a job after an event, if that event may come in its
// state before. Ready also stands for delayed.
func follows(state pawl.State, event pawl.EventType) (next pawl.State, ok bool) {
	switch event {
	case pawl.EventEnqueued:
		return pawl.Ready, state == ""
	case pawl.EventFetched:
		return pawl.Leased, state == pawl.Ready
	case pawl.EventRetried, pawl.EventReleased, pawl.EventSnoozed:
		return pawl.Ready, state == pawl.Leased
	case pawl.EventSucceeded, pawl.EventDied:
		return "gone", state == pawl.Leased
	}
	return "", false
}

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

func counterTests() []test {
	return []test{
		newTest("of a long walk",
			"After any number of operations, each counter equals the number of events that it counts.", func(f *fixture) {
				if !f.config.Events {
					f.Skip("the queue emits no events")
				}
				steps := cmp.Or(f.config.CounterSteps, defaultCounterSteps)
				w := f.walk(1, steps, 500)
				if steps < defaultCounterSteps/50 {
					return
				}
				counted := w.tally.Snapshot()
				for _, name := range []string{
					metrics.JobsFetched, metrics.JobsSucceeded, metrics.JobsFailed, metrics.JobsFailedPermanently, metrics.JobsTimedOut,
					metrics.JobsReleased, metrics.JobsSnoozed, metrics.JobsReaped,
				} {
					equal(f, counted.Total(name) > 0, true, "the walk met what counts as "+name)
				}
				equal(f, counted.Total(metrics.RetriesTotal), counted.Total(metrics.JobsRequeued), "retries, which are jobs requeued")
			}),
	}
}
