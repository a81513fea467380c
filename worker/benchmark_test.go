package worker_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/internal/memdir"
	"github.com/gopawl/pawl/internal/withid"
	"github.com/gopawl/pawl/worker"
)

// aText makes jobs of 100 bytes.
var aText = strings.Repeat("x", 98)

// openInMemory opens a queue in a file system in memory, if the system has one: the
// benchmarks measure the code, not the disk.
func openInMemory(tb testing.TB) *bolt.Queue {
	q, err := bolt.Open(filepath.Join(memdir.New(tb), "jobs.db"), &bolt.Options{Logger: hclog.NewNullLogger()})
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, q.Close()) })
	return q
}

// texts are n jobs that are not enqueued yet.
func texts(tb testing.TB, n int) []*pawl.Envelope {
	jobs := make([]*pawl.Envelope, n)
	for i := range jobs {
		var err error
		jobs[i], err = task.Envelope(aText)
		require.NoError(tb, err)
	}
	return jobs
}

// BenchmarkDrain measures 16 workers that do nothing, from a full queue to an empty one;
// an operation is one job. In succeed each job succeeds, in failOnce each fails once first,
// so that it has two attempts.
func BenchmarkDrain(b *testing.B) {
	for name, fails := range map[string]int{"succeed": 0, "failOnce": 1} {
		b.Run(name, func(b *testing.B) {
			q := openInMemory(b)
			for left := b.N; left > 0; left -= pawl.MaxBatchJobs {
				require.NoError(b, withid.Enqueue(b.Context(), q, texts(b, min(left, pawl.MaxBatchJobs))...))
			}
			w := newWorker(q, worker.Options{Concurrency: 16, Policy: pawl.Fixed(0)})
			worker.Handle(w, task, func(_ context.Context, j *pawl.Job[string]) error {
				if j.Attempts < fails {
					return errors.New("boom")
				}
				return nil
			})
			b.ReportAllocs()
			b.ResetTimer()
			require.NoError(b, w.Drain(b.Context(), pawl.WaitFinished))
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
		})
	}
}

// ackTeller reports acks that succeeded.
type ackTeller struct {
	pawl.Queue
	acked chan int // how many jobs were in one
}

func (q *ackTeller) Settle(ctx context.Context, settlements ...pawl.Settlement) error {
	err := q.Queue.Settle(ctx, settlements...)
	if err == nil {
		q.acked <- len(settlements)
	}
	return err
}

// BenchmarkLatency measures a job on an idle queue, from the call of Enqueue to the end of
// the ack, and start-ns, the part of it until the handler starts.
func BenchmarkLatency(b *testing.B) {
	q := &ackTeller{openInMemory(b), make(chan int)}
	started := make(chan time.Time, 1)
	w := newWorker(q, worker.Options{Concurrency: 16})
	worker.Handle(w, task, func(context.Context, *pawl.Job[string]) error {
		started <- time.Now()
		return nil
	})
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	var waited time.Duration
	b.ReportAllocs()
	for b.Loop() {
		called := time.Now()
		if _, err := task.Enqueue(b.Context(), q, aText); err != nil {
			b.Fatal(err)
		}
		waited += (<-started).Sub(called)
		<-q.acked
	}
	b.ReportMetric(float64(waited)/float64(b.N), "start-ns/op")
	cancel()
	require.NoError(b, <-done)
}
