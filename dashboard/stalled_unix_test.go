//go:build unix

package dashboard

import (
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/internal/memdir"
)

// BenchmarkStalledStreams compares a queue alone with a queue under 200 streams that nobody reads: what the
// streams add to the time and to the processor time of a job, in percent. The results are medians of pairs of
// rounds that take turns, so other work on the machine changes them little. Syncs cost nothing here, so the
// share of the streams is the greatest possible. The metric cpu-% is what the streams use of a processor by
// themselves. Run it with -benchtime 1x.
func BenchmarkStalledStreams(b *testing.B) {
	if testing.Short() {
		b.Skip("it takes a minute: not with -short")
	}
	const streams, pairs = 200, 15
	q, err := bolt.Open(filepath.Join(memdir.New(b), "jobs.db"), &bolt.Options{Logger: hclog.NewNullLogger()})
	require.NoError(b, err)
	drive(b, q, time.Second) // warm
	for range b.N {
		var wall, cpu []float64
		for i := range pairs {
			d, err := New(admin.Of(q), &Options{Authorize: everything, Logger: hclog.NewNullLogger()})
			require.NoError(b, err)
			var alone, under cost
			measureUnder := func() {
				server := openStalled(b, d, streams)
				under = drive(b, q, 2*time.Second)
				require.Len(b, d.streams, streams) // all of them still wait
				require.NoError(b, d.Close())
				server.Close()
			}
			if i%2 == 0 {
				alone = drive(b, q, 2*time.Second)
				measureUnder()
			} else {
				measureUnder()
				alone = drive(b, q, 2*time.Second)
			}
			wall = append(wall, 100*(under.wall/alone.wall-1))
			cpu = append(cpu, 100*(under.cpu/alone.cpu-1))
		}
		slices.Sort(wall)
		slices.Sort(cpu)
		b.Logf("added time, in %%: %.1f", wall)
		b.Logf("added processor time, in %%: %.1f", cpu)
		b.ReportMetric(wall[pairs/2], "added-time-%")
		b.ReportMetric(cpu[pairs/2], "added-cpu-%")
		alone := trickle(b, q)
		d, err := New(admin.Of(q), &Options{Authorize: everything, Logger: hclog.NewNullLogger()})
		require.NoError(b, err)
		server := openStalled(b, d, streams)
		b.ReportMetric(100*(trickle(b, q)-alone), "cpu-%")
		require.NoError(b, d.Close())
		server.Close()
		b.ReportMetric(0, "ns/op")
	}
	require.NoError(b, q.Close())
}

// cost is what a job took.
type cost struct{ wall, cpu float64 }

// drive enqueues, fetches, and acks jobs by hundreds for a time.
func drive(b *testing.B, q *bolt.Queue, during time.Duration) cost {
	b.Helper()
	began, used, jobs := time.Now(), processorTime(b), 0
	for time.Since(began) < during {
		batch := make([]*pawl.Envelope, 100)
		for i := range batch {
			batch[i] = &pawl.Envelope{Kind: "mail.send", Queue: "default"}
		}
		_, err := q.Enqueue(b.Context(), batch...)
		require.NoError(b, err)
		for left := len(batch); left > 0; {
			leases, err := q.Fetch(b.Context(), pawl.Request{Queues: []string{"default"}, Max: left, Wait: pawl.WaitNot})
			require.NoError(b, err)
			settled := make([]pawl.Settlement, len(leases))
			for i, l := range leases {
				settled[i] = l.Ack()
			}
			require.NoError(b, q.Settle(b.Context(), settled...))
			left -= len(leases)
		}
		jobs += len(batch)
	}
	n := float64(jobs)
	return cost{time.Since(began).Seconds() / n, (processorTime(b) - used).Seconds() / n}
}

// trickle changes the queue for five seconds, so that every stream has something to say, but seldom. It returns
// the share of a processor that the process used, which other programs on the machine change little.
func trickle(b *testing.B, q *bolt.Queue) float64 {
	b.Helper()
	began, used := time.Now(), processorTime(b)
	for time.Since(began) < 5*time.Second {
		_, err := sendMail.Enqueue(b.Context(), q, mail{})
		require.NoError(b, err)
		time.Sleep(100 * time.Millisecond)
	}
	return (processorTime(b) - used).Seconds() / time.Since(began).Seconds()
}

// processorTime returns what this process has used.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
