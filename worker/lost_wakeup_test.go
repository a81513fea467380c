package worker_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/withid"
	"github.com/gopawl/pawl/memory"
	"github.com/gopawl/pawl/worker"
)

// Rule: if a slot becomes free, and the only job that waits for it must no longer start,
// the worker fetches for the slot again.
func TestSlotOfAStuckHandlerIsFetchedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := memory.New(nil)
		defer q.Close()
		slow := &faulty{Queue: q, ack: func(ctx context.Context, leases ...*pawl.Lease) error {
			<-time.After(40 * time.Millisecond) // long enough that a job is fetched ahead
			return q.Settle(ctx, acksOf(leases)...)
		}}
		w := newWorker(slow, worker.Options{Concurrency: 1, StuckGrace: 10 * time.Millisecond})
		var ran []string
		worker.Handle(w, task, func(_ context.Context, job *pawl.Job[string]) error {
			ran = append(ran, job.Args)
			switch job.Args {
			case "first":
				<-time.After(60 * time.Millisecond)
			case "stuck":
				<-time.After(90 * time.Millisecond) // whatever its context says
			}
			return nil
		})
		enqueue(t, q, "first")
		stop := start(t, w)
		<-time.After(150 * time.Millisecond)
		stuck, err := task.Envelope("stuck", pawl.Timeout(20*time.Millisecond), pawl.MaxRetries(0))
		require.NoError(t, err)
		late, err := task.Envelope("late", pawl.Deadline(time.Now().Add(60*time.Millisecond)))
		require.NoError(t, err)
		require.NoError(t, withid.Enqueue(t.Context(), q, stuck, late))
		<-time.After(time.Second)
		enqueue(t, q, "last")
		<-time.After(time.Minute)
		synctest.Wait()
		require.Equal(t, []string{"first", "stuck", "last"}, ran)
		require.NoError(t, stop())
	})
}
