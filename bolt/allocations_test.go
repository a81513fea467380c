package bolt_test

import (
	"testing"

	"github.com/gopawl/pawl/bolt"
)

// Rule: enqueue, fetch and ack allocate as often for a job as is stored.
func TestAllocations(t *testing.T) {
	const batch = 64
	on := func(stored int, count runCount, run func(q *bolt.Queue)) {
	}
	_ = on
	compareAllowances(t, []allowance{
		{name: "enqueue", ops: 1000, slack: 0, start: func(t *testing.T, count runCount) {
			q, jobs := openNew(t), newLetters(1)
			count(func() {
				for range 1000 {
					jobs.renew()
					if err := q.Enqueue(t.Context(), jobs...); err != nil {
						t.Fatal(err)
					}
				}
			})
		}},
		{name: "enqueue-batch", ops: 100 * batch, start: func(t *testing.T, count runCount) {
			q, jobs := openNew(t), newLetters(batch)
			count(func() {
				for range 100 {
					jobs.renew()
					if err := q.Enqueue(t.Context(), jobs...); err != nil {
						t.Fatal(err)
					}
				}
			})
		}},
		{name: "fetch-and-ack", ops: 100 * batch, start: func(t *testing.T, count runCount) {
			q := openNew(t)
			store(t, q, 2*100*batch)
			count(func() {
				for range 100 {
					if err := q.Ack(t.Context(), lease(t, q, batch)...); err != nil {
						t.Fatal(err)
					}
				}
			})
		}},
	})
}
