package queuetest

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/gopawl/pawl"
)

// ackWith acks a lease with a result.
func (f *fixture) ackWith(l *pawl.Lease, result []byte) {
	f.Helper()
	s := l.Ack()
	s.Result = result
	f.ok(f.q.Settle(f.Context(), s), "ack with a result")
}

// awaiting starts a call of Await. The job is there when the call has ended.
func (f *fixture) awaiting(ctx context.Context, id pawl.ID) (**pawl.Envelope, <-chan error) {
	f.Helper()
	q, found := able[pawl.Awaiter](f), new(*pawl.Envelope)
	return found, f.started(func() (err error) {
		*found, err = q.Await(ctx, id)
		return err
	})
}

// awaitedEnds are the ways in which a job ends, with the state and the reason that a waiting call sees.
var awaitedEnds = []struct {
	name    string
	prepare func(e *pawl.Envelope)
	end     func(f *fixture, id pawl.ID)
	state   pawl.State
	reason  pawl.Reason
	text    string
}{
	{"an ack", kept(time.Hour), func(f *fixture, _ pawl.ID) { f.ackWith(f.lease(), []byte{1}) }, pawl.Completed, "", ""},
	{"an ack without a retention", kept(0), func(f *fixture, _ pawl.ID) { f.ackWith(f.lease(), []byte{1}) }, pawl.Completed, "", ""},
	{"an abandon", kept(0), func(f *fixture, _ pawl.ID) { f.abandon(f.lease()) }, pawl.Dead, pawl.ReasonExhausted, errBoom.Error()},
	{"a cancellation while it waits", kept(0), func(f *fixture, id pawl.ID) {
		f.ok(f.canceller().Cancel(f.Context(), id), "cancel")
	}, pawl.Dead, pawl.ReasonCancelled, ""},
	{"its deadline", func(e *pawl.Envelope) { within(time.Minute)(e) }, func(f *fixture, _ pawl.ID) { f.pass(time.Minute) },
		pawl.Dead, pawl.ReasonDeadline, ""},
	{"its crashes", kept(0), func(f *fixture, _ pawl.ID) {
		for range 5 {
			f.expire(f.lease())
		}
	}, pawl.Dead, pawl.ReasonPoison, ""},
}

func resultTests() []test {
	tests := []test{
		newTest("what is stored",
			"An ack stores the result of a job with its record. Nobody else stores one.", func(f *fixture) {
				for _, size := range []int{0, 1, 1000, 5000, pawl.MaxResult} {
					id := f.add(kept(time.Hour), func(e *pawl.Envelope) { e.Payload, e.Result = make([]byte, 3000), []byte("not yet") }).ID
					want := f.must(id)
					equal(f, want.Result == nil, true, "a new job has no result")
					l, result := f.lease(), bytes.Repeat([]byte{'r'}, size)
					f.ackWith(l, result)
					for i := range result {
						result[i] = 'x' // is the caller's
					}
					want.State, want.Attempts, want.Completed = pawl.Completed, 1, time.Now()
					want.Result = bytes.Repeat([]byte{'r'}, size)
					f.same(f.must(id), want, fmt.Sprint("the completed job with a result of ", size))
				}
			}),
		newTest("none", "A job that is acked without a result has none.", func(f *fixture) {
			id := f.completedBy(time.Hour)
			equal(f, f.must(id).Result == nil, true, "it has no result")
		}),
		newTest("without a retention", "The result of a job without a retention goes with its record.", func(f *fixture) {
			id := f.add().ID
			f.ackWith(f.lease(), []byte{1})
			equal(f, f.job(id) == nil, true, "the job is gone")
		}),
		newTest("by a stale lease", "A stale lease stores no result.", func(f *fixture) {
			id := f.add(kept(time.Hour)).ID
			stale := f.lease()
			f.expire(stale)
			l, s := f.lease(), stale.Ack()
			s.Result = []byte("stale")
			f.is(f.q.Settle(f.Context(), s), pawl.ErrLeaseLost, "ack with a stale lease")
			f.ackWith(l, []byte("good"))
			f.is(f.q.Settle(f.Context(), s), pawl.ErrLeaseLost, "ack with a stale lease, later")
			equal(f, string(f.must(id).Result), "good", "result")
		}),
		newTest("refused", "A result above MaxResult, and one of anything but an ack, are refused, and change nothing.", func(f *fixture) {
			f.add(kept(time.Hour))
			l := f.lease()
			unchanged := f.unchanged()
			large := l.Ack()
			large.Result = make([]byte, pawl.MaxResult+1)
			f.is(f.q.Settle(f.Context(), large), pawl.ErrInvalid, "a large result")
			for _, s := range []pawl.Settlement{l.Nack(0, errBoom), l.Abandon(pawl.ReasonPermanent, errBoom), l.Release(), l.Snooze(0)} {
				s.Result = []byte{1}
				f.is(f.q.Settle(f.Context(), s), pawl.ErrInvalid, string(s.Outcome))
			}
			unchanged("after the refusals")
		}),
		newTest("in one call", "Each ack of one call has its own result.", func(f *fixture) {
			for range 3 {
				f.add(kept(time.Hour))
			}
			leases := f.leases(3)
			acks := acksOf(leases)
			for i := range acks {
				acks[i].Result = []byte{byte(i)}
			}
			f.ok(f.q.Settle(f.Context(), acks...), "ack")
			for i, l := range leases {
				equal(f, string(f.must(l.ID).Result), string([]byte{byte(i)}), "result")
			}
		}),
		newTest("restored", "A restored record has its result. A job that is not completed has none to restore.", func(f *fixture) {
			q := f.restorer()
			e := &pawl.Envelope{ID: pawl.NewID(time.Now()), Kind: "k", State: pawl.Completed, Completed: time.Now(), Retain: time.Hour, Result: []byte("r")}
			f.restore([]*pawl.Envelope{e})
			equal(f, string(f.must(e.ID).Result), "r", "result")
			bad := &pawl.Envelope{Kind: "k", State: pawl.Ready, Result: []byte("r")}
			f.is(q.Restore(f.Context(), []*pawl.Envelope{bad}, nil), pawl.ErrInvalid, "restore of a ready job with a result")
		}),
		restartTest("after a restart", "A result survives a restart.", func(f *fixture) {
			id := f.add(kept(time.Hour)).ID
			f.ackWith(f.lease(), bytes.Repeat([]byte("r"), 5000))
			f.restart()
			equal(f, len(f.must(id).Result), 5000, "bytes of the result")
		}),
		newTest("a job that is not there", "Await returns ErrNotFound for a job that was never there, or whose record is gone.", func(f *fixture) {
			_, call := f.awaiting(f.Context(), pawl.NewID(time.Now()))
			f.ends(call, pawl.ErrNotFound, "await")
			id := f.completedBy(time.Minute)
			f.pass(time.Minute)
			_, call = f.awaiting(f.Context(), id)
			f.ends(call, pawl.ErrNotFound, "await of a record that is gone")
		}),
		newTest("what is no end", "Await goes on over failed attempts, snoozes, releases, crashes, and retries.", func(f *fixture) {
			id := f.add(kept(time.Hour)).ID
			found, call := f.awaiting(f.Context(), id)
			f.nack(f.lease(), 0)
			f.release(f.lease())
			f.ok(f.q.Settle(f.Context(), f.lease().Snooze(0)), "snooze")
			f.expire(f.lease())
			f.waits(call, "await")
			f.ackWith(f.lease(), []byte("r"))
			f.ends(call, nil, "await")
			equal(f, string((*found).Result), "r", "result")
		}),
		newTest("a context that ends", "Await ends with its context, and with the queue.", func(f *fixture) {
			id := f.add().ID
			ctx, cancel := context.WithCancel(f.Context())
			_, call := f.awaiting(ctx, id)
			cancel()
			f.ends(call, context.Canceled, "await")
			_, call = f.awaiting(f.Context(), id)
			f.closed()
			f.ends(call, pawl.ErrClosed, "await")
		}),
		newTest("many calls", "Each of many calls that wait for many jobs gets the end of its own.", func(f *fixture) {
			const jobs, calls = 100, 1000
			f.enqueue(newBatch(jobs, kept(time.Hour))...)
			q, ids, errs := able[pawl.Awaiter](f), idsOf(f.list(pawl.Filter{})), make(chan error, calls)
			for i := range calls {
				go func() {
					id := ids[i%jobs]
					e, err := q.Await(f.Context(), id)
					if err == nil && (e.ID != id || !bytes.Equal(e.Result, id[:])) {
						err = fmt.Errorf("job %s has the result %x", e.ID, e.Result)
					}
					errs <- err
				}()
			}
			for _, l := range f.leases(jobs) { // some calls wait by now, and some have not looked yet
				go func() {
					s := l.Ack()
					s.Result = bytes.Clone(l.ID[:])
					if err := f.q.Settle(f.Context(), s); err != nil {
						f.Errorf("ack: %v", err)
					}
				}()
			}
			for range calls {
				f.ok(<-errs, "await")
			}
		}),
	}
	for _, by := range awaitedEnds {
		tests = append(tests, newTest("the end by "+by.name,
			"Await returns a job once it has ended, whatever ended it: with its result, or with its reason and error.", func(f *fixture) {
				id := f.add(by.prepare).ID
				found, call := f.awaiting(f.Context(), id)
				f.waits(call, "before the end")
				by.end(f, id)
				f.ends(call, nil, "after the end")
				e := *found
				equal(f, e.State, by.state, "state")
				if by.state == pawl.Completed {
					equal(f, string(e.Result), "\x01", "result")
					equal(f, e.Completed.IsZero(), false, "it has no time")
					return
				}
				equal(f, e.Death.Reason, by.reason, "reason")
				if by.text != "" {
					equal(f, e.LastError(), by.text, "error")
				}
				again, call := f.awaiting(f.Context(), id)
				f.ends(call, nil, "a call after the end")
				f.same(*again, f.must(id), "what it returns")
			}))
	}
	return append(tests, newTest("of another client",
		"Await returns a job that another client ends, within a minute.", func(f *fixture) {
			other := f.another()
			id := f.add(kept(time.Hour)).ID
			found, call := other.awaiting(f.Context(), id)
			f.waits(call, "before the end")
			f.ackWith(f.lease(), []byte("r"))
			f.hears(call, nil, "await")
			equal(f, string((*found).Result), "r", "result")
		}).needing(several))
}

// refusedResult proves that a queue without results refuses one.
func refusedResult() test {
	t := newTest("refuses results", "A queue without results refuses an ack that has one, and changes nothing.", func(f *fixture) {
		id := f.add().ID
		l := f.lease()
		s := l.Ack()
		s.Result = []byte{1}
		f.lacks(f.q.Settle(f.Context(), s), pawl.Results, "an ack with a result")
		equal(f, f.must(id).State, pawl.Leased, "state")
		f.ack(l)
	})
	t.misses = pawl.Results
	return t
}
