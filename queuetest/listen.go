package queuetest

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/gopawl/pawl"
)

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
	newTest("too late", "Statistics end with their context. After Close they give ErrClosed.", func(f *fixture) {
		q := able[Statter](f)
		ctx, cancel := context.WithCancel(f.Context())
		cancel()
		_, err := q.Stats(ctx)
		f.is(err, context.Canceled, "stats")
		f.closed()
		_, err = q.Stats(f.Context())
		f.is(err, pawl.ErrClosed, "stats")
	}),
}
