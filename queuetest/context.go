package queuetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/gopawl/pawl"
)

// call is a method of a queue, with a lease for it to settle.
type call struct {
	name string
	do   func(ctx context.Context, q pawl.Queue, l *pawl.Lease) error
}

// calls returns the methods of a queue, including the ways to settle.
func calls() []call {
	list := []call{
		{"enqueue", func(ctx context.Context, q pawl.Queue, _ *pawl.Lease) error {
			_, err := q.Enqueue(ctx, &pawl.Envelope{Kind: "new"})
			return err
		}},
		{"fetch", func(ctx context.Context, q pawl.Queue, _ *pawl.Lease) error {
			_, err := q.Fetch(ctx, pawl.Request{Max: 9})
			return err
		}},
		{"extend", func(ctx context.Context, q pawl.Queue, l *pawl.Lease) error { _, err := q.Extend(ctx, l); return err }},
		{"reap", func(ctx context.Context, q pawl.Queue, _ *pawl.Lease) error { _, err := q.Reap(ctx); return err }},
	}
	for _, v := range verbs {
		list = append(list, call{v.name, v.end})
	}
	return list
}

// populated fills a queue with a job in each state and returns the lease of the leased
// one.
func (f *fixture) populated() *pawl.Lease {
	f.Helper()
	f.held(pawl.Dead)
	f.held(pawl.Delayed)
	f.add()
	l := f.lease()
	f.held(pawl.Ready)
	return l
}

func contextTests() (tests []test) {
	for _, c := range calls() {
		tests = append(tests,
			newTest("before "+c.name,
				"A call whose context has ended returns ErrNotAccepted, which wraps the error of the context, and changes "+
					"nothing.", func(f *fixture) {
					l := f.populated()
					unchanged := f.unchanged()
					ctx := f.ended()
					err := c.do(ctx, f.q, l)
					f.is(err, pawl.ErrNotAccepted, c.name)
					f.is(err, context.Canceled, c.name)
					unchanged("after the refusal")
				}),
		)
	}
	for _, v := range verbs {
		tests = append(tests,
			newTest("during "+v.name,
				"If the context of an operation ends, the operation is carried out whole or not at all, and its error says "+
					"which.", func(f *fixture) {
					for range 20 {
						f.add()
						l := f.lease()
						err := f.interrupted(func(ctx context.Context) error { return v.end(ctx, f.q, l) })
						lost := len(f.extend(l)) == 1
						if errors.Is(err, pawl.ErrNotAccepted) {
							equal(f, lost, false, "the lease is lost, although "+v.name+" was not accepted")
							f.ack(l)
							continue
						}
						f.ok(err, v.name)
						equal(f, lost, true, "the lease is lost after "+v.name)
						if v.next == pawl.Ready {
							f.ack(f.lease())
						}
					}
				}),
		)
	}
	return append(tests,
		newTest("during enqueue", "If the context of an enqueue ends, the batch is stored whole or not at all, and the "+
			"error says which.", func(f *fixture) {
			stored := 0
			for range 50 {
				err := f.interrupted(func(ctx context.Context) error {
					_, err := f.q.Enqueue(ctx, newBatch(3)...)
					return err
				})
				switch {
				case err == nil:
					stored += 3
				default:
					f.is(err, pawl.ErrNotAccepted, "enqueue")
				}
				equal(f, len(f.list(pawl.Filter{})), stored, "jobs stored")
			}
		}).needing(batches),
		newTest("during fetch", "A fetch that returns an error has leased nothing.", func(f *fixture) {
			for range 50 {
				leases := new([]*pawl.Lease)
				ctx, cancel := context.WithCancel(f.Context())
				done := make(chan error, 1)
				go func() {
					var err error
					*leases, err = f.q.Fetch(ctx, pawl.Request{Max: 9})
					done <- err
				}()
				go cancel()
				f.add()
				if err := <-done; err != nil {
					f.is(err, pawl.ErrNotAccepted, "fetch")
					equal(f, len(*leases), 0, "leases beside an error")
					*leases = f.leases(1)
				}
				equal(f, len(*leases), 1, "leases")
				f.ack((*leases)[0])
			}
		}),
		newTest("while a fetch waits", "A fetch waits no longer than its context and takes no job afterwards.", func(f *fixture) {
			ctx, cancel := context.WithTimeout(f.Context(), time.Minute)
			defer cancel()
			start := time.Now()
			_, err := f.q.Fetch(ctx, pawl.Request{Max: 1})
			f.is(err, pawl.ErrNotAccepted, "fetch")
			f.is(err, context.DeadlineExceeded, "fetch")
			equal(f, time.Since(start), time.Minute, "it waited")
			id := f.add().ID
			equal(f, f.lease().ID, id, "job")
		}),
		newTest("with a cause", "ErrNotAccepted wraps the cause for which the context ended.", func(f *fixture) {
			ctx, cancel := context.WithCancelCause(f.Context())
			cancel(errBoom)
			_, err := f.q.Enqueue(ctx, newBatch(1)...)
			f.is(err, context.Canceled, "the context's error")
			f.is(err, errBoom, "its cause")
		}),
	)
}

// tooLate is the case of calls whose context has ended, which return an error that matches refusal
// and change nothing, and of the same calls after Close, which return ErrClosed.
func tooLate(name, rule string, refusal error, prepare func(f *fixture) (calls []func(ctx context.Context) error)) test {
	return newTest(name, rule, func(f *fixture) {
		calls := prepare(f)
		unchanged := f.unchanged()
		for i, call := range calls {
			f.is(call(f.ended()), refusal, fmt.Sprint("call ", i, ", whose context has ended"))
		}
		unchanged("after the refusals")
		f.closed()
		for i, call := range calls {
			f.is(call(f.Context()), pawl.ErrClosed, fmt.Sprint("call ", i, " after Close"))
		}
	})
}

// interrupted runs fn with a context that ends at any moment.
func (f *fixture) interrupted(fn func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancel(f.Context())
	defer cancel()
	go cancel()
	return fn(ctx)
}

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
			f.enqueue(batch...)
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
