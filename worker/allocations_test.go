package worker_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/allowance"
	"github.com/gopawl/pawl/internal/withid"
	"github.com/gopawl/pawl/worker"
)

// inStep is a queue that makes a worker with that many slots do the same in every round:
// one fetch serves all free slots, and an ack waits until the test lets it continue.
type inStep struct {
	pawl.Queue
	slots int
	acks  chan struct{}
	acked atomic.Int64 // jobs
}

func (q *inStep) Fetch(ctx context.Context, r pawl.Request) ([]*pawl.Lease, error) {
	r.Max, r.Ahead = q.slots, 0
	return q.Queue.Fetch(ctx, r)
}

func (q *inStep) Settle(ctx context.Context, settlements ...pawl.Settlement) error {
	<-q.acks
	q.acked.Add(int64(len(settlements)))
	return q.Queue.Settle(ctx, settlements...)
}

// Rule: a job from Enqueue to Ack allocates as often as the stored number says. It is run
// in batches of 64: each is enqueued by one call, and acked by two, since what finishes
// while an ack is under way is acked by the next.
func TestAllocations(t *testing.T) {
	const rounds, batch = 100, 64
	allowance.Compare(t, []allowance.Operation{{Name: "job", Ops: rounds * batch, Slack: 0.2, Start: func(t *testing.T, count allowance.RunCount) {
		synctest.Test(t, func(t *testing.T) { // no time passes, so the worker keeps its pace
			q := &inStep{Queue: openInMemory(t), slots: batch, acks: make(chan struct{})}
			handlers := make(chan struct{})
			w := newWorker(q, worker.Options{Concurrency: batch})
			worker.Handle(w, task, func(context.Context, *pawl.Job[string]) error { <-handlers; return nil })
			stop := start(t, w)
			var err error
			jobs := make([]*pawl.Envelope, batch)
			count(func() {
				for range rounds {
					for i := range jobs {
						var bad error
						jobs[i], bad = task.Envelope(aText)
						err = errors.Join(err, bad)
					}
					err = errors.Join(err, withid.Enqueue(t.Context(), q, jobs...))
					handlers <- struct{}{}
					synctest.Wait() // its ack is under way, the others' handlers are not done
					for range batch - 1 {
						handlers <- struct{}{}
					}
					synctest.Wait()
					for end := q.acked.Load() + batch; q.acked.Load() < end; synctest.Wait() {
						q.acks <- struct{}{}
					}
				}
			})
			if err = errors.Join(err, stop()); err != nil {
				t.Fatal(err)
			}
		})
	}}})
}
