package queuetest

import (
	"errors"
	"io"
	"sync"
	"time"

	"github.com/gopawl/pawl"
)

// closed closes the queue and returns it, for calls that come too late. It ends the
// case if the queue has no Close.
func (f *fixture) closed() pawl.Queue {
	f.Helper()
	f.needClose()
	q := f.q
	f.close()
	return q
}

func (f *fixture) needClose() {
	f.Helper()
	if _, ok := f.q.(io.Closer); !ok {
		f.Skip("the queue is no io.Closer")
	}
}

var closeTests = []test{
	newTest("while fetches wait", "Close makes every waiting fetch return ErrClosed.", func(f *fixture) {
		f.needClose()
		for range 3 {
			_, call := f.fetching(f.Context(), pawl.Request{Max: 1})
			defer f.ends(call, pawl.ErrClosed, "a fetch that waits")
		}
		f.close()
	}),
	newTest("before a call", "After Close every method returns ErrClosed.", func(f *fixture) {
		l := f.populated()
		q := f.closed()
		for _, c := range calls() {
			f.is(c.do(f.Context(), q, l), pawl.ErrClosed, c.name)
		}
		if i, ok := q.(Inspector); ok {
			_, err := i.Job(f.Context(), l.ID)
			f.is(err, pawl.ErrClosed, "Job")
			seen := 0
			for e, err := range i.Jobs(f.Context(), pawl.Filter{}) {
				equal(f, e, nil, "envelope")
				f.is(err, pawl.ErrClosed, "Jobs")
				seen++
			}
			equal(f, seen, 1, "steps of the list")
		}
		if r, ok := q.(Retrier); ok {
			f.is(r.Retry(f.Context(), l.ID, false), pawl.ErrClosed, "Retry")
		}
		if h, ok := q.(NowRunner); ok {
			f.is(h.RunNow(f.Context(), l.ID), pawl.ErrClosed, "RunNow")
		}
	}),
	newTest("with work ahead",
		"Close waits for no job. Nothing of a queue runs after Close, whatever was scheduled: the bubble ends.", func(f *fixture) {
			f.populated()
			start := time.Now()
			f.closed()
			equal(f, time.Since(start), 0, "the time that Close took")
		}),
	restartTest("amid calls",
		"A call during Close is either carried out or refused with ErrClosed. An accepted call is durable.", func(f *fixture) {
			const callers = 20
			batch := newBatch(callers)
			answers := make([]error, callers)
			done := make(chan int, callers)
			for i, e := range batch {
				e.ID = pawl.NewID(time.Now())
				go func() {
					answers[i] = f.try(e)
					done <- i
				}()
			}
			q := f.q
			for range callers / 2 {
				<-done
			}
			f.ok(q.(io.Closer).Close(), "close")
			for range callers / 2 {
				<-done
			}
			f.reopen()
			for i, e := range batch {
				if answers[i] != nil {
					f.is(answers[i], pawl.ErrClosed, "enqueue")
				}
				equal(f, f.job(e.ID) != nil, answers[i] == nil, "the job is stored")
			}
		}),
	restartTest("amid fetches",
		"A fetch during Close returns its leases or an error. A job that it does not return is not leased.", func(f *fixture) {
			batch := newBatch(40)
			f.ok(f.try(batch...), "enqueue")
			given := make(chan pawl.ID, len(batch))
			q := f.q
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					for {
						leases, err := q.Fetch(f.Context(), pawl.Request{Max: 1})
						if err != nil {
							if !errors.Is(err, pawl.ErrClosed) {
								f.Errorf("fetch: %v", err)
							}
							return
						}
						given <- leases[0].ID
					}
				})
			}
			first := <-given
			f.ok(q.(io.Closer).Close(), "close")
			wg.Wait()
			close(given)
			crashes := map[pawl.ID]int{first: 1}
			for id := range given {
				crashes[id]++
			}
			f.reopen()
			for _, e := range batch {
				if got := f.must(e.ID); f.config.Alone {
					equal(f, got.Crashes, crashes[e.ID], "leases found at open")
				} else {
					equal(f, got.State == pawl.Leased, crashes[e.ID] == 1, "the job is leased")
				}
			}
		}),
}
