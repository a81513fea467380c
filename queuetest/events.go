package queuetest

import (
	"errors"
	"slices"
	"sync"
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
	equal(f, e.Took, 2*time.Second, "time that the run took")
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
	for _, s := range slices.Concat(stories, runNowStories, deaths()) {
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
				f.ok(f.try(newBatch(jobs)...), "enqueue")
				var wg sync.WaitGroup
				for n := range workers {
					wg.Go(func() {
						for i := n; ; i++ {
							leases, err := f.q.Fetch(f.Context(), pawl.Request{Max: 1 + i%4, Wait: pawl.WaitFinished})
							if errors.Is(err, pawl.ErrEmpty) {
								return
							}
							if err != nil {
								f.Errorf("fetch: %v", err)
								return
							}
							for _, l := range leases {
								v := verbs[[]int{0, 1, 3, 4, 2, 0}[(i+int(l.Seq%97))%6]]
								if err := v.end(f.Context(), f.q, l); err != nil {
									f.Errorf("%s: %v", v.name, err)
								}
							}
						}
					})
				}
				wg.Wait()
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
