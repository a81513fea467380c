package bolt_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/internal/busy"
	"github.com/gopawl/pawl/internal/withid"
	"github.com/gopawl/pawl/worker"
)

func openInMemory(t *testing.T, o bolt.Options) *bolt.Queue {
	t.Helper()
	path := filepath.Join(bolt.MemoryFolder(t), "jobs.db")
	o.Logger, o.Lease = hclog.NewNullLogger(), busy.Lease()
	q, err := bolt.Open(path, &o)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, q.Close())
		bolt.CheckFile(t, path)
	})
	return q
}

// Two jobs of one idempotency key never run concurrently, whichever workers fetch them. One job
// of each key succeeds: the jobs after it are skipped, the jobs before it failed.
func TestKeysNeverRunSideBySide(t *testing.T) {
	const workers, keys, each, failures = 16, 5, 60, 3
	var skipped, failed atomic.Int32
	q := openInMemory(t, bolt.Options{OnEvent: func(e pawl.Event) {
		switch e.Type {
		case pawl.EventSkipped:
			skipped.Add(1)
		case pawl.EventDied:
			failed.Add(1)
		}
	}})
	kind := pawl.Define[int]("k", pawl.MaxRetries(0))
	var batch []*pawl.Envelope
	for i := range keys * each {
		e, err := kind.Envelope(i%keys, pawl.IdempotencyKey(fmt.Sprint(i%keys)), pawl.OnQueue([]string{"a", "b"}[i/keys%2]))
		require.NoError(t, err)
		batch = append(batch, e)
	}
	require.NoError(t, withid.Enqueue(t.Context(), q, batch...))

	var running, runs, succeeded [keys]atomic.Int32
	var beside atomic.Int32
	free := make(chan struct{}, 1)
	handler := func(ctx context.Context, job *pawl.Job[int]) error {
		if running[job.Args].Add(1) > 1 {
			beside.Add(1)
		}
		defer running[job.Args].Add(-1)
		free <- struct{}{} // so that others run in the meantime
		<-free
		if runs[job.Args].Add(1) <= failures {
			return fmt.Errorf("attempt %d of %d that fail", runs[job.Args].Load(), failures)
		}
		succeeded[job.Args].Add(1)
		return nil
	}
	errs := make(chan error, workers)
	var all sync.WaitGroup
	for range workers {
		w := worker.New(q, &worker.Options{
			Queues: []string{"a", "b"}, Concurrency: 4, Logger: hclog.NewNullLogger(),
		})
		worker.Handle(w, kind, handler)
		all.Go(func() { errs <- w.Drain(t.Context(), pawl.WaitDrained) })
	}
	all.Wait()
	for range workers {
		require.NoError(t, <-errs)
	}
	require.Zero(t, beside.Load(), "runs beside another of their key")
	for key := range keys {
		require.EqualValues(t, failures+1, runs[key].Load())
		require.EqualValues(t, 1, succeeded[key].Load())
	}
	require.EqualValues(t, keys*failures, failed.Load())
	require.EqualValues(t, keys*(each-failures-1), skipped.Load())
}

// Rule: endless enqueues of jobs that are already in the queue do not change it. Its file does not
// grow at all after the first batch, so few batches show as much as many.
func TestUniqueKeysHoldTheQueueSmall(t *testing.T) {
	const keys = 1000
	enqueues, small := 4*pawl.MaxBatchJobs, int64(0)
	q := openInMemory(t, bolt.Options{})
	ids := make(map[string]pawl.ID)
	batch := make([]*pawl.Envelope, pawl.MaxBatchJobs)
	for stored := 0; stored < enqueues; stored += len(batch) {
		for i := range batch {
			batch[i] = &pawl.Envelope{Kind: "k", UniqueKey: fmt.Sprint("key ", (stored+i)%keys)}
		}
		done, err := q.Enqueue(t.Context(), batch...)
		require.NoError(t, err)
		for i, d := range done {
			first, known := ids[batch[i].UniqueKey]
			if !known {
				ids[batch[i].UniqueKey] = d.ID
			} else if d.ID != first || !d.Existing {
				t.Fatalf("enqueue %d gave job %s (existing: %v), the key is that of job %s", stored+i, d.ID, d.Existing, first)
			}
		}
		if stored == 0 {
			small = sizeOf(t, q)
		}
	}
	require.Len(t, ids, keys)
	all, err := counts(t.Context(), q)
	require.NoError(t, err)
	require.Equal(t, map[string]pawl.Counts{pawl.DefaultQueue: {Ready: keys}}, all)
	require.Less(t, small, int64(4<<20), "bytes of the file")
	require.Equal(t, small, sizeOf(t, q))
}

// sizeOf returns the bytes of the file.
func sizeOf(t *testing.T, q *bolt.Queue) int64 {
	t.Helper()
	stats, err := q.Stats(t.Context())
	require.NoError(t, err)
	return stats.Size
}
