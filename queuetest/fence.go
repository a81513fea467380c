package queuetest

import (
	"time"

	"github.com/gopawl/pawl"
)

// stale makes a lease stale in some way, returns it, and checks that the queue refuses
// its use.
func stale(how string, lose func(*fixture, *pawl.Lease) *pawl.Lease) test {
	return newTest(how,
		"A stale holder gets ErrLeaseLost from every settlement and changes nothing, whatever happened to the job since.", func(f *fixture) {
			f.add(func(e *pawl.Envelope) { e.Payload = make([]byte, 2000) })
			l := lose(f, f.lease())
			unchanged := f.unchanged()
			for _, v := range verbs {
				f.is(v.end(f.Context(), f.q, l), pawl.ErrLeaseLost, v.name)
			}
			lost := f.extend(l)
			equal(f, len(lost), 1, "leases lost")
			equal(f, lost[0], l, "lease lost")
			unchanged("after the stale calls")
		})
}

func fenceTests() []test {
	settled := func(v verb) func(*fixture, *pawl.Lease) *pawl.Lease {
		return func(f *fixture, l *pawl.Lease) *pawl.Lease {
			f.end(v, l)
			return l
		}
	}
	var tests []test
	for _, v := range verbs {
		tests = append(tests, stale("after "+v.name, settled(v)))
	}
	return append(tests,
		stale("failed, and leased by another", func(f *fixture, l *pawl.Lease) *pawl.Lease {
			f.nack(l, 0)
			f.lease()
			return l
		}),
		stale("released, and leased by another", func(f *fixture, l *pawl.Lease) *pawl.Lease {
			f.release(l)
			f.lease()
			return l
		}),
		stale("expired", func(f *fixture, l *pawl.Lease) *pawl.Lease {
			f.expire(l)
			return l
		}),
		stale("expired, and leased by another", func(f *fixture, l *pawl.Lease) *pawl.Lease {
			f.expire(l)
			f.lease()
			return l
		}),
		stale("poison", func(f *fixture, l *pawl.Lease) *pawl.Lease {
			for range 4 {
				f.expire(l)
				l = f.lease()
			}
			f.expire(l)
			return l
		}),
		stale("retried", func(f *fixture, l *pawl.Lease) *pawl.Lease {
			f.abandon(l)
			f.retry(l.ID, false)
			return l
		}),
		stale("enqueued anew under its ID", func(f *fixture, l *pawl.Lease) *pawl.Lease {
			f.ack(l)
			f.add(func(e *pawl.Envelope) { e.ID = l.ID })
			f.lease()
			return l
		}),
		stale("a guess", func(_ *fixture, l *pawl.Lease) *pawl.Lease {
			return &pawl.Lease{Envelope: l.Envelope, Token: l.Token ^ 1}
		}),
		stale("the token of another job", func(f *fixture, l *pawl.Lease) *pawl.Lease {
			f.add()
			return &pawl.Lease{Envelope: l.Envelope, Token: f.lease().Token}
		}),
		stale("a job that never was", func(_ *fixture, l *pawl.Lease) *pawl.Lease {
			return &pawl.Lease{Envelope: &pawl.Envelope{ID: pawl.NewID(time.Now())}, Token: l.Token}
		}),
		stale("a restart", func(f *fixture, l *pawl.Lease) *pawl.Lease {
			f.restart()
			return l
		}).needing(alone),
		stale("a restart, and leased by another", func(f *fixture, l *pawl.Lease) *pawl.Lease {
			f.restart()
			f.lease()
			return l
		}).needing(alone),
		newTest("the new holder goes on", "A stale holder cannot end the lease of the new holder.", func(f *fixture) {
			f.add()
			old := f.lease()
			f.expire(old)
			l := f.lease()
			f.is(f.q.Settle(f.Context(), old.Ack()), pawl.ErrLeaseLost, "the stale ack")
			f.ack(l)
		}),
	)
}
