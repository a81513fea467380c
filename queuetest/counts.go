package queuetest

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// counts returns the counts that the queue reports. It ends the case if the queue has
// none.
func (f *fixture) counts() map[string]pawl.Counts {
	f.Helper()
	if f.config.Counts == nil {
		f.Skip("the queue does not count")
	}
	all, err := f.config.Counts(f.Context(), f.q)
	f.ok(err, "count")
	for queue, c := range all {
		c.Blocked = 0 // it depends on what fetches have met; see blocked
		all[queue] = c
	}
	return all
}

// blocked returns how many ready jobs of a queue are blocked, after a fetch that found no job.
func (f *fixture) blocked(queue string) int {
	f.Helper()
	all, err := f.config.Counts(f.Context(), f.q)
	f.ok(err, "count")
	return all[queue].Blocked
}

// heldKeys returns how many keys of a queue dead jobs hold.
func (f *fixture) heldKeys(queue string) int {
	f.Helper()
	return f.counts()[queue].Held
}

// countsAre requires the counts of one queue, and the same counts from a list of all
// jobs.
func (f *fixture) countsAre(queue string, want pawl.Counts, when string) {
	f.Helper()
	equal(f, f.counts()[queue], want, "counts after "+when)
	var listed pawl.Counts
	for _, e := range f.list(pawl.Filter{Queue: queue}) {
		*driver.CountOf(&listed, e.State)++
		if e.State == pawl.Dead && e.HoldsKey {
			listed.Held++
		}
	}
	equal(f, listed, want, "jobs listed after "+when)
}

var countTests = []test{
	newTest("after every transition",
		"A job is in exactly one state, and the counts equal the number of jobs in each state.", func(f *fixture) {
			var l *pawl.Lease
			lease := func() { l = f.lease() }
			for _, step := range []struct {
				name string
				do   func()
				want pawl.Counts
			}{
				{"enqueue", func() { f.add() }, pawl.Counts{Ready: 1}},
				{"enqueue with a delay", func() { f.add(after(time.Hour)) }, pawl.Counts{Ready: 1, Delayed: 1}},
				{"fetch", lease, pawl.Counts{Leased: 1, Delayed: 1}},
				{"extend", func() { f.extend(l) }, pawl.Counts{Leased: 1, Delayed: 1}},
				{"nack", func() { f.nack(l, 0) }, pawl.Counts{Ready: 1, Delayed: 1}},
				{"fetch after nack", lease, pawl.Counts{Leased: 1, Delayed: 1}},
				{"nack with a delay", func() { f.nack(l, time.Minute) }, pawl.Counts{Delayed: 2}},
				{"the delay", func() { f.pass(time.Minute) }, pawl.Counts{Ready: 1, Delayed: 1}},
				{"fetch after the delay", lease, pawl.Counts{Leased: 1, Delayed: 1}},
				{"snooze", func() { f.snooze(l, time.Minute) }, pawl.Counts{Delayed: 2}},
				{"the snooze", func() { f.pass(time.Minute) }, pawl.Counts{Ready: 1, Delayed: 1}},
				{"fetch after the snooze", lease, pawl.Counts{Leased: 1, Delayed: 1}},
				{"release", func() { f.release(l) }, pawl.Counts{Ready: 1, Delayed: 1}},
				{"fetch after release", lease, pawl.Counts{Leased: 1, Delayed: 1}},
				{"an expiry", func() { f.expire(l) }, pawl.Counts{Ready: 1, Delayed: 1}},
				{"fetch after the expiry", lease, pawl.Counts{Leased: 1, Delayed: 1}},
				{"the last crash", func() { f.expire(l) }, pawl.Counts{Dead: 1, Delayed: 1}},
				{"retry", func() { f.retry(l.ID, false) }, pawl.Counts{Ready: 1, Delayed: 1}},
				{"fetch after retry", lease, pawl.Counts{Leased: 1, Delayed: 1}},
				{"abandon", func() { f.abandon(l) }, pawl.Counts{Dead: 1, Delayed: 1}},
				{"another retry", func() { f.retry(l.ID, true) }, pawl.Counts{Ready: 1, Delayed: 1}},
				{"the last fetch", lease, pawl.Counts{Leased: 1, Delayed: 1}},
				{"ack", func() { f.ack(l) }, pawl.Counts{Delayed: 1}},
			} {
				step.do()
				f.countsAre(pawl.DefaultQueue, step.want, step.name)
			}
		}).with(Settings{MaxCrashes: 2}),
	newTest("each queue apart", "Counts belong to one queue. A queue that is empty now is still known.", func(f *fixture) {
		equal(f, len(f.counts()), 0, "queues before the first job")
		f.fill(3, "b")
		f.fill(2, "a")
		f.leases(1, "b")
		for _, l := range f.leases(2, "a") {
			f.ack(l)
		}
		f.countsAre("b", pawl.Counts{Ready: 2, Leased: 1}, "a fetch")
		f.countsAre("a", pawl.Counts{}, "all acks")
		equal(f, len(f.counts()), 2, "queues")
	}),
	aloneTest("after a restart", "Counts are correct after a restart.", func(f *fixture) {
		for _, state := range []pawl.State{pawl.Dead, pawl.Leased, pawl.Delayed, pawl.Ready} {
			f.held(state)
		}
		f.countsAre(pawl.DefaultQueue, pawl.Counts{Ready: 1, Delayed: 1, Leased: 1, Dead: 1}, "one job of each state")
		f.restart()
		f.countsAre(pawl.DefaultQueue, pawl.Counts{Ready: 2, Delayed: 1, Dead: 1}, "the restart")
	}),
}

// Listener is a queue that emits events to listeners which come and go.
type Listener interface {
	// Listen calls fn for each event from now on, until stop returns.
	Listen(fn func(pawl.Event)) (stop func())

	// Done returns a channel that is closed when the queue stops.
	Done() <-chan struct{}
}

// Statter is a queue that describes itself.
type Statter interface {
	// Stats returns how many jobs each queue has in each state.
	Stats(ctx context.Context) (pawl.Stats, error)
}

// Totaler is a queue that counts its transitions.
type Totaler interface {
	// Totals counts the transitions that this process has made since it opened the queue.
	Totals() driver.Totals
}

// Metered is a queue that keeps the counts of the last week by minute.
type Metered interface {
	// Throughput reports what happened to jobs in the last minutes, hours, or days.
	Throughput(ctx context.Context, q driver.ThroughputQuery) (driver.Throughput, error)
}

func (f *fixture) listener() Listener { return able[Listener](f) }

// stats returns the description of a queue that must be known.
func (f *fixture) stats(queue string) pawl.QueueStats {
	f.Helper()
	all, err := able[Statter](f).Stats(f.Context())
	f.ok(err, "stats")
	for _, q := range all.Queues {
		if q.Name == queue {
			return q
		}
	}
	f.Fatalf("the statistics have no queue %q", queue)
	return pawl.QueueStats{}
}

// throughput returns what happened to the jobs of a queue, or of all, in the last minutes, hours, or days.
func (f *fixture) throughput(queue string, last time.Duration) driver.Totals {
	f.Helper()
	t, err := able[Metered](f).Throughput(f.Context(), driver.ThroughputQuery{Queue: queue, Last: last})
	f.ok(err, "throughput")
	total := t.Total()
	total.Changes = 0
	return total
}

var listenTests = []test{
	newTest("from then on",
		"A listener gets each event of the calls that begin after Listen has returned, beside other listeners, and none "+
			"after stop has returned.", func(f *fixture) {
			q := f.listener()
			f.add()
			var first, second atomic.Int64
			stop := q.Listen(func(pawl.Event) { first.Add(1) })
			end := q.Listen(func(e pawl.Event) {
				if e.Type == pawl.EventEnqueued {
					second.Add(1)
				}
			})
			defer end()
			f.add()
			f.add()
			f.pass(0)
			equal(f, first.Load(), 2, "events of the first listener")
			stop()
			stop()
			f.add()
			f.pass(0)
			equal(f, first.Load(), 2, "events after its stop")
			equal(f, second.Load(), 3, "events of the second listener")
		}),
	newTest("a listener that panics", "A panic of a listener fails no call and keeps no event from others.", func(f *fixture) {
		q := f.listener()
		defer q.Listen(func(pawl.Event) { panic("a mistake") })()
		var seen atomic.Int64
		defer q.Listen(func(pawl.Event) { seen.Add(1) })()
		f.add()
		f.pass(0)
		equal(f, seen.Load(), 1, "events")
	}),
	newTest("the end", "Close closes Done. From then on Extend without a lease returns ErrClosed.", func(f *fixture) {
		q := f.listener()
		f.needClose()
		select {
		case <-q.Done():
			f.Fatal("Done is closed")
		default:
		}
		_, err := f.q.Extend(f.Context())
		f.ok(err, "extend")
		closed := f.closed()
		<-q.Done()
		_, err = closed.Extend(f.Context())
		f.is(err, pawl.ErrClosed, "extend")
	}),
}

var statTests = []test{
	newTest("counts", "Statistics count the jobs of each queue in each state.", func(f *fixture) {
		able[Statter](f)
		for _, state := range byTheirEnd {
			f.held(state, on("a"))
		}
		f.held(pawl.Dead, on("b"))
		equal(f, f.stats("a").Counts, pawl.Counts{Ready: 1, Delayed: 1, Leased: 1, Dead: 1, Completed: 1}, "counts")
		equal(f, f.stats("b").Counts, pawl.Counts{Dead: 1}, "counts")
	}),
	newTest("totals", "A queue counts its transitions by type, the same with a listener as without one.", func(f *fixture) {
		q := able[Totaler](f)
		counted := func() driver.Totals {
			before := q.Totals()
			for range 4 {
				f.add()
			}
			leases := f.fetch(4)
			f.ack(leases[0])
			f.nack(leases[1], time.Hour)
			f.ok(f.q.Settle(f.Context(), leases[2].Nack(time.Hour, traced("goroutine 7"))), "nack")
			f.abandon(leases[3])
			return q.Totals().Since(before)
		}
		want := driver.Totals{Changes: 12, Enqueued: 4, Succeeded: 1, Retried: 2, Died: 1}
		equal(f, counted(), want, "totals")
		if l, ok := f.q.(Listener); ok {
			defer l.Listen(func(pawl.Event) {})()
			equal(f, counted(), want, "totals with a listener")
		}
	}),
	newTest("throughput", "A queue reports what happened to the jobs of each queue in each minute of the last hour, and "+
		"in each hour of the last week, and nothing older.", func(f *fixture) {
		able[Metered](f)
		began := time.Now()
		for range 2 {
			f.add(on("b"))
			f.add()
			f.add()
			f.add()
			leases := f.fetch(3)
			f.ack(leases[0])
			f.nack(leases[1], 24*time.Hour)
			f.abandon(leases[2])
			f.pass(90 * time.Second)
		}
		all := driver.Totals{Enqueued: 8, Succeeded: 2, Retried: 2, Died: 2}
		equal(f, f.throughput("", time.Hour), all, "counts of an hour")
		equal(f, f.throughput("b", time.Hour), driver.Totals{Enqueued: 2}, "counts of queue b")
		equal(f, f.throughput("", time.Minute), driver.Totals{}, "counts of this minute")
		t, err := able[Metered](f).Throughput(f.Context(), driver.ThroughputQuery{})
		f.ok(err, "throughput")
		for _, p := range t.Periods {
			if minute := began.Truncate(time.Minute); p.At.Equal(minute) || p.At.Equal(minute.Add(time.Minute)) {
				equal(f, p.Enqueued, 4, "jobs of a minute")
			}
		}
		equal(f, len(t.Builds), 1, "builds")
		f.pass(time.Hour)
		equal(f, f.throughput("", time.Hour).Enqueued, 0, "jobs of the next hour")
		equal(f, f.throughput("", 7*24*time.Hour).Enqueued, 8, "jobs of the week")
		f.pass(7 * 24 * time.Hour)
		f.add()
		equal(f, f.throughput("", 7*24*time.Hour).Enqueued, 1, "jobs of the next week")
	}),
	newTest("pause", "Statistics say whether a queue is paused.", func(f *fixture) {
		able[Statter](f)
		f.add(on("a"))
		f.pause("a")
		f.pause("new")
		equal(f, f.stats("a").Paused, true, "paused")
		equal(f, f.stats("new").Paused, true, "paused")
		f.resume("a")
		equal(f, f.stats("a").Paused, false, "paused")
	}),
	newTest("oldest", "Statistics say since when the longest waiting ready job of a queue is ready.", func(f *fixture) {
		able[Statter](f)
		f.add(on("a"), after(time.Minute))
		f.sameTime(f.stats("a").Oldest, time.Time{}, "without a ready job")
		f.add(on("a"), priority(-9))
		since := time.Now()
		f.pass(time.Second)
		f.add(on("a"), priority(9))
		f.sameTime(f.stats("a").Oldest, since, "the oldest")
	}),
	tooLate("too late", "Statistics end with their context. After Close they give ErrClosed.", context.Canceled,
		func(f *fixture) []func(context.Context) error {
			q := able[Statter](f)
			return []func(context.Context) error{func(ctx context.Context) error { _, err := q.Stats(ctx); return err }}
		}),
}
