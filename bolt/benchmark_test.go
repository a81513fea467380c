package bolt_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/internal/withid"
)

// These benchmarks run in memory where the system has a memory file system: they measure the
// code. The module in bench measures disks.

// mail returns a new job of 100 bytes.
var mail = pawl.Envelope{Kind: "post.letter", MaxRetries: 3, Payload: bytes.Repeat([]byte("x"), 100)}

// mails are n jobs to enqueue repeatedly, each time after a call of renew.
type mails []*pawl.Envelope

func newMails(n int) mails {
	jobs := make(mails, n)
	for i := range jobs {
		jobs[i] = new(pawl.Envelope)
	}
	jobs.renew()
	return jobs
}

func (jobs mails) renew() {
	for _, e := range jobs {
		*e = mail
	}
}

// store enqueues n jobs.
func store(tb testing.TB, q *bolt.Queue, n int) {
	jobs := newMails(min(n, pawl.MaxBatchJobs))
	for ; n > 0; n -= len(jobs) {
		jobs = jobs[:min(n, len(jobs))]
		jobs.renew()
		if err := withid.Enqueue(tb.Context(), q, jobs...); err != nil {
			tb.Fatal(err)
		}
	}
}

// lease fetches up to n jobs, or none if there is none.
func lease(tb testing.TB, q *bolt.Queue, n int) []*pawl.Lease {
	leases, err := q.Fetch(tb.Context(), pawl.Request{Max: n, Wait: pawl.WaitNot})
	if err != nil && !errors.Is(err, pawl.ErrEmpty) {
		tb.Fatal(err)
	}
	return leases
}

// openAt opens a queue that the caller closes.
func openAt(tb testing.TB, path string) *bolt.Queue {
	q, err := bolt.Open(path, &bolt.Options{Logger: hclog.NewNullLogger()})
	require.NoError(tb, err)
	return q
}

// openNew opens an empty queue and closes it at the end.
func openNew(tb testing.TB) *bolt.Queue {
	q := openAt(tb, filepath.Join(bolt.MemoryFolder(tb), "jobs.db"))
	tb.Cleanup(func() { require.NoError(tb, q.Close()) })
	return q
}

// perSecond reports the jobs of a benchmark per second of measured time.
func perSecond(b *testing.B, jobs int) {
	b.ReportMetric(float64(jobs)/b.Elapsed().Seconds(), "jobs/s")
}

// BenchmarkEnqueue measures one producer. Each job is a separate commit.
func BenchmarkEnqueue(b *testing.B) {
	q := openNew(b)
	jobs := newMails(1)
	b.ReportAllocs()
	for b.Loop() {
		jobs.renew()
		if err := withid.Enqueue(b.Context(), q, jobs...); err != nil {
			b.Fatal(err)
		}
	}
	perSecond(b, b.N)
}

// BenchmarkEnqueue64 measures 64 concurrent producers whose jobs share commits. An operation is
// one job.
func BenchmarkEnqueue64(b *testing.B) {
	q := openNew(b)
	var taken atomic.Int64
	var producing sync.WaitGroup
	b.ReportAllocs()
	b.ResetTimer()
	for range 64 {
		producing.Go(func() {
			jobs := newMails(1)
			for taken.Add(1) <= int64(b.N) {
				jobs.renew()
				if err := withid.Enqueue(b.Context(), q, jobs...); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	producing.Wait()
	perSecond(b, b.N)
}

// BenchmarkEnqueueBatch measures batches of 1,000 jobs. An operation is one batch.
func BenchmarkEnqueueBatch(b *testing.B) {
	q := openNew(b)
	jobs := newMails(1000)
	b.ReportAllocs()
	for b.Loop() {
		jobs.renew()
		if err := withid.Enqueue(b.Context(), q, jobs...); err != nil {
			b.Fatal(err)
		}
	}
	perSecond(b, b.N*len(jobs))
}

// backlog is how many jobs a benchmark stores at a time, unmeasured, to work on.
const backlog = 6400

// BenchmarkFetchAck measures 64 jobs leased by one call and acked by another.
func BenchmarkFetchAck(b *testing.B) {
	const batch = 64
	q := openNew(b)
	b.ReportAllocs()
	for left := 0; b.Loop(); left -= batch {
		if left == 0 {
			b.StopTimer()
			store(b, q, backlog)
			left = backlog
			b.StartTimer()
		}
		if err := q.Settle(b.Context(), acksOf(lease(b, q, batch))...); err != nil {
			b.Fatal(err)
		}
	}
	perSecond(b, b.N*batch)
}

// BenchmarkNack measures one failed attempt, after which the job is ready again.
func BenchmarkNack(b *testing.B) {
	q := openNew(b)
	store(b, q, backlog)
	var leases []*pawl.Lease
	cause := errors.New("connection refused")
	b.ReportAllocs()
	for b.Loop() {
		if len(leases) == 0 {
			b.StopTimer()
			leases = lease(b, q, backlog)
			b.StartTimer()
		}
		if err := q.Settle(b.Context(), leases[0].Nack(0, cause)); err != nil {
			b.Fatal(err)
		}
		leases = leases[1:]
	}
	perSecond(b, b.N)
}

// BenchmarkBacklog measures what must not depend on the number of jobs, with 100,000 jobs.
func BenchmarkBacklog(b *testing.B) {
	path := filepath.Join(bolt.MemoryFolder(b), "jobs.db")
	q := openAt(b, path)
	store(b, q, 100_000)

	// Stats measures the counts of a queue.
	b.Run("Stats", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := q.Stats(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	})

	// Page measures the first 64 jobs of a list, which is one page.
	b.Run("Page", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			left := 64
			for _, err := range q.Jobs(b.Context(), pawl.Filter{}) {
				if err != nil {
					b.Fatal(err)
				}
				if left--; left == 0 {
					break
				}
			}
		}
	})

	require.NoError(b, q.Close())

	// Open measures opening the file after a clean close.
	b.Run("Open", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			q := openAt(b, path)
			b.StopTimer()
			require.NoError(b, q.Close())
			b.StartTimer()
		}
	})
}

// BenchmarkEnqueueBesideIdleFetch measures an enqueue while a fetch waits for other queues. The
// time must not depend on how many queues that fetch names.
func BenchmarkEnqueueBesideIdleFetch(b *testing.B) {
	for _, queues := range []int{1, 1000} {
		b.Run(fmt.Sprint(queues), func(b *testing.B) {
			q := openNew(b)
			names := make([]string, queues)
			for i := range names {
				names[i] = fmt.Sprintf("tenant-%04d", i)
				e := mail
				e.Queue = names[i]
				require.NoError(b, withid.Enqueue(b.Context(), q, &e))
			}
			for left := queues; left > 0; {
				leases, err := q.Fetch(b.Context(), pawl.Request{Queues: names, Max: left})
				require.NoError(b, err)
				require.NoError(b, q.Settle(b.Context(), acksOf(leases)...))
				left -= len(leases)
			}
			ctx, cancel := context.WithCancel(b.Context())
			var waiting sync.WaitGroup
			waiting.Go(func() { _, _ = q.Fetch(ctx, pawl.Request{Queues: names, Max: 1}) })
			jobs := newMails(1)
			for b.Loop() {
				jobs.renew()
				require.NoError(b, withid.Enqueue(b.Context(), q, jobs...))
			}
			cancel()
			waiting.Wait()
		})
	}
}

// BenchmarkFetchBehindOtherKind measures one job fetched and acked by its kind, alone and
// behind a million jobs of another kind. Both must take equally long.
func BenchmarkFetchBehindOtherKind(b *testing.B) {
	for _, others := range []int{0, 1_000_000} {
		b.Run(fmt.Sprint(others), func(b *testing.B) {
			q := openNew(b)
			store(b, q, others)
			jobs := make([]*pawl.Envelope, pawl.MaxBatchJobs)
			left := 0
			for b.Loop() {
				if left == 0 {
					b.StopTimer()
					for i := range jobs {
						jobs[i] = &pawl.Envelope{Kind: "post.parcel", Payload: mail.Payload}
					}
					require.NoError(b, withid.Enqueue(b.Context(), q, jobs...))
					left = len(jobs)
					b.StartTimer()
				}
				leases, err := q.Fetch(b.Context(), pawl.Request{Kinds: []string{"post.parcel"}, Max: 1})
				require.NoError(b, err)
				require.NoError(b, q.Settle(b.Context(), acksOf(leases)...))
				left--
			}
		})
	}
}
