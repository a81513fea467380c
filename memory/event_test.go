package memory_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/withid"
	"github.com/gopawl/pawl/memory"
)

// An event is told before the call returns that made the transition, and what its
// listener does to the job does nothing to the queue.
func TestEventsComeBeforeTheCallReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		emitted := make(chan pawl.EventType, 10)
		q := memory.New(&memory.Options{
			Lease:  time.Hour,
			Logger: hclog.NewNullLogger(),
			OnEvent: func(e pawl.Event) {
				emitted <- e.Type
				*e.Job = pawl.Envelope{}
			},
		})
		defer q.Close()
		next := func(want ...pawl.EventType) {
			t.Helper()
			require.Len(t, emitted, len(want))
			for _, event := range want {
				require.Equal(t, event, <-emitted)
			}
		}

		job := &pawl.Envelope{Kind: "k", Deadline: time.Now().Add(time.Minute)}
		require.NoError(t, withid.Enqueue(t.Context(), q, job))
		next(pawl.EventEnqueued)
		leases, err := q.Fetch(t.Context(), pawl.Request{Max: 1})
		require.NoError(t, err)
		next(pawl.EventFetched)
		<-time.After(time.Minute)
		require.NoError(t, q.Settle(t.Context(), leases[0].Release()))
		next(pawl.EventReleased, pawl.EventDied)

		e, err := q.Job(t.Context(), job.ID)
		require.NoError(t, err)
		require.Equal(t, pawl.ReasonDeadline, e.Death.Reason)
	})
}

// Rule: what a transition did is reported before a fetch returns that waited for it.
func TestEventsComeBeforeAWaitingFetchReturns(t *testing.T) {
	for name, wait := range map[string]pawl.Wait{"a job": pawl.WaitForJob, "the end": pawl.WaitFinished} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				last := map[pawl.Wait]pawl.EventType{pawl.WaitForJob: pawl.EventFetched, pawl.WaitFinished: pawl.EventSucceeded}[wait]
				var waited, returned, reported atomic.Bool
				q := memory.New(&memory.Options{Logger: hclog.NewNullLogger(), OnEvent: func(e pawl.Event) {
					if waited.Load() && e.Type == last {
						synctest.Wait() // the fetch could return now
						reported.Store(!returned.Load())
					}
				}})
				defer q.Close()
				var leases []*pawl.Lease
				var err error
				enqueue := func() { require.NoError(t, withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "k"})) }
				if wait == pawl.WaitFinished {
					enqueue()
					leases, err = q.Fetch(t.Context(), pawl.Request{Max: 1})
					require.NoError(t, err)
				}
				waited.Store(true)
				go func() {
					_, _ = q.Fetch(t.Context(), pawl.Request{Max: 1, Wait: wait})
					returned.Store(true)
				}()
				synctest.Wait()
				if wait == pawl.WaitFinished {
					require.NoError(t, q.Settle(t.Context(), leases[0].Ack()))
				} else {
					enqueue()
				}
				synctest.Wait()
				require.True(t, reported.Load())
				require.True(t, returned.Load())
			})
		})
	}
}
