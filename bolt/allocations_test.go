package bolt_test

import (
	"testing"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/internal/allowance"
	"github.com/gopawl/pawl/internal/withid"
)

// Rule: enqueue, fetch and ack allocate as often per job as the stored allowance says.
func TestAllocations(t *testing.T) {
	const commits, rounds, batch = 500, 100, 64
	times := func(t *testing.T, n int, op func() error) {
		for range n {
			if err := op(); err != nil {
				t.Fatal(err)
			}
		}
	}
	enqueues := func(t *testing.T, q *bolt.Queue, jobs mails) func() error {
		return func() error { jobs.renew(); return withid.Enqueue(t.Context(), q, jobs...) }
	}
	allowance.Compare(t, []allowance.Operation{
		// Most of it is bbolt's, for a commit, and depends slightly on which pages are free.
		{Name: "enqueue", Ops: commits, Slack: 0.3, Start: func(t *testing.T, count allowance.RunCount) {
			op := enqueues(t, openNew(t), newMails(1))
			count(func() { times(t, commits, op) })
		}},
		{Name: "enqueue-batch", Ops: rounds * batch, Slack: 0.1, Start: func(t *testing.T, count allowance.RunCount) {
			op := enqueues(t, openNew(t), newMails(batch))
			count(func() { times(t, rounds, op) })
		}},
		{Name: "fetch-and-ack", Ops: rounds * batch, Slack: 0.1, Start: func(t *testing.T, count allowance.RunCount) {
			q := openNew(t)
			store(t, q, 2*rounds*batch)
			count(func() {
				times(t, rounds, func() error { return q.Settle(t.Context(), acksOf(lease(t, q, batch))...) })
			})
		}},
	})
}

// acksOf returns settlements for leases whose attempts succeeded.
func acksOf(leases []*pawl.Lease) []pawl.Settlement {
	acks := make([]pawl.Settlement, len(leases))
	for i, l := range leases {
		acks[i] = l.Ack()
	}
	return acks
}
