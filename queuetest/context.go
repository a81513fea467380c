package queuetest

import (
	"context"
	"errors"
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
					ctx, cancel := context.WithCancel(f.Context())
					cancel()
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
		}),
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

// interrupted runs fn with a context that ends at any moment.
func (f *fixture) interrupted(fn func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancel(f.Context())
	defer cancel()
	go cancel()
	return fn(ctx)
}
