package queuetest

import (
	"context"
	"time"

	"github.com/gopawl/pawl"
)

// verb is a way to end a lease.
type verb struct {
	name string
	end  func(ctx context.Context, q pawl.Queue, l *pawl.Lease) error

	// next is the state of the job after the verb, or "" if the job is gone.
	next pawl.State
}

// snoozed is the delay of the snooze among the verbs.
const snoozed = time.Minute

var verbs = []verb{
	{"ack", func(ctx context.Context, q pawl.Queue, l *pawl.Lease) error { return q.Settle(ctx, l.Ack()) }, ""},
	{"nack", func(ctx context.Context, q pawl.Queue, l *pawl.Lease) error { return q.Settle(ctx, l.Nack(0, errBoom)) }, pawl.Ready},
	{"abandon", func(ctx context.Context, q pawl.Queue, l *pawl.Lease) error {
		return q.Settle(ctx, l.Abandon(pawl.ReasonPermanent, errBoom))
	}, pawl.Dead},
	{"release", func(ctx context.Context, q pawl.Queue, l *pawl.Lease) error { return q.Settle(ctx, l.Release()) }, pawl.Ready},
	{"snooze", func(ctx context.Context, q pawl.Queue, l *pawl.Lease) error { return q.Settle(ctx, l.Snooze(snoozed)) }, pawl.Delayed},
}

// end ends a lease by one of the verbs.
func (f *fixture) end(v verb, l *pawl.Lease) {
	f.Helper()
	f.ok(v.end(f.Context(), f.q, l), v.name)
}

// Short forms of the verbs that must succeed.

func (f *fixture) ack(l *pawl.Lease) {
	f.Helper()
	f.ok(f.q.Settle(f.Context(), l.Ack()), "ack")
}

func (f *fixture) nack(l *pawl.Lease, delay time.Duration) {
	f.Helper()
	f.ok(f.q.Settle(f.Context(), l.Nack(delay, errBoom)), "nack")
}

func (f *fixture) abandon(l *pawl.Lease) {
	f.Helper()
	f.ok(f.q.Settle(f.Context(), l.Abandon(pawl.ReasonExhausted, errBoom)), "abandon")
}

func (f *fixture) release(l *pawl.Lease) {
	f.Helper()
	f.ok(f.q.Settle(f.Context(), l.Release()), "release")
}

func (f *fixture) snooze(l *pawl.Lease, delay time.Duration) {
	f.Helper()
	f.ok(f.q.Settle(f.Context(), l.Snooze(delay)), "snooze")
}

func (f *fixture) extend(leases ...*pawl.Lease) (lost []*pawl.Lease) {
	f.Helper()
	lost, err := f.q.Extend(f.Context(), leases...)
	f.ok(err, "extend")
	return lost
}

func (f *fixture) reap() int {
	f.Helper()
	n, err := f.q.Reap(f.Context())
	f.ok(err, "reap")
	return n
}

func (f *fixture) cancel(id pawl.ID) {
	f.Helper()
	f.ok(f.canceller().Cancel(f.Context(), id), "cancel")
}

func (f *fixture) retry(id pawl.ID, keepAttempts bool) {
	f.Helper()
	f.ok(f.retrier().Retry(f.Context(), id, keepAttempts), "retry")
}
