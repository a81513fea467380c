package worker_test

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"weak"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/memory"
	"github.com/gopawl/pawl/worker"
)

// Rule: an idle worker and its queue keep nothing of the jobs that it has settled.
func TestIdleWorkerKeepsNoSettledJob(t *testing.T) {
	for _, result := range []error{nil, pawl.Permanent(errBroken)} {
		synctest.Test(t, func(t *testing.T) {
			q := memory.New(&memory.Options{Logger: hclog.NewNullLogger()})
			var mu sync.Mutex
			var leases []weak.Pointer[pawl.Lease]
			for range 64 {
				enqueue(t, q, "a")
			}
			w := newWorker(q, worker.Options{Concurrency: 64})
			worker.Handle(w, task, func(_ context.Context, job *pawl.Job[string]) error {
				mu.Lock()
				defer mu.Unlock()
				leases = append(leases, weak.Make(job.Lease))
				return result
			})
			start(t, w)
			synctest.Wait()
			runtime.GC()
			runtime.GC()
			mu.Lock()
			defer mu.Unlock()
			require.Len(t, leases, 64)
			for _, l := range leases {
				require.Nil(t, l.Value())
			}
		})
	}
}
