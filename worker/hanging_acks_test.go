package worker_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/worker"
)

// Rule: while acks do not come back, what was fetched ahead and cannot start goes back to
// the queue.
func TestAcksThatHangHoldNoOtherJobs(t *testing.T) {
	for _, slots := range []int{1, 10} {
		synctest.Test(t, func(t *testing.T) {
			const jobs = 4 * worker.MaxUnsettled
			s := newShelf(t, jobs)
			held, letAck := gate(t)
			var handled, calls atomic.Int32
			blocked := &faulty{Queue: s,
				ack: func(context.Context, ...*pawl.Lease) error {
					if calls.Add(1) > 3 {
						<-held
					}
					<-time.After(time.Second)
					return nil
				},
			}
			w := newWorker(blocked, worker.Options{Concurrency: slots})
			worker.Handle(w, task, func(context.Context, *pawl.Job[string]) error {
				handled.Add(1)
				<-time.After(time.Millisecond)
				return nil
			})
			stop := start(t, w)
			<-time.After(time.Minute)
			synctest.Wait()
			require.EqualValues(t, jobs-s.left(), handled.Load(), "jobs that were leased and did not go back")
			require.NotZero(t, s.left())
			letAck()
			synctest.Wait()
			require.NoError(t, stop())
		})
	}
}
