//go:build unix

package dashboard

import (
	"flag"
	"math"
	"path/filepath"
	"runtime"
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

// BenchmarkStalledStreams compares a queue alone with a queue under 200 streams that no client reads: what the
// streams add to the processor time of a job, in percent. Each round under streams stands between two rounds
// alone, so that other work on the machine changes all three alike. The second round alone against the first is
// the control: it shows what such a comparison finds where there is nothing. Of both it prints the median, and
// the interval that has the true median with a probability of 95 %. Syncs cost nothing here, so the share of the
// streams is the greatest possible. The metric cpu-% is what the streams use of a processor by themselves. Run
// it with -benchtime 1x.
func BenchmarkStalledStreams(b *testing.B) {
	if testing.Short() {
		b.Skip("it takes minutes: not with -short")
	}
	q, err := bolt.Open(filepath.Join(memdir.New(b), "jobs.db"), &bolt.Options{Logger: hclog.NewNullLogger()})
	require.NoError(b, err)
	drive(b, q) // warm
	for range b.N {
		var added, control []float64
		for range *stalledRounds {
			before := drive(b, q)
			under := underStreams(b, q, drive)
			after := drive(b, q)
			added = append(added, 100*(2*under/(before+after)-1))
			control = append(control, 100*(after/before-1))
		}
		b.ReportMetric(reportMedian(b, "added by streams", added), "added-cpu-%")
		b.ReportMetric(reportMedian(b, "control", control), "control-%")
		alone := trickle(b, q)
		b.ReportMetric(100*(underStreams(b, q, trickle)-alone), "cpu-%")
		b.ReportMetric(0, "ns/op")
	}
	require.NoError(b, q.Close())
}

// stalledRounds is how often BenchmarkStalledStreams compares.
var stalledRounds = flag.Int("rounds", 60, "rounds of BenchmarkStalledStreams, of about five seconds")

// underStreams measures while there are streams that no client reads.
func underStreams(b *testing.B, q *bolt.Queue, measure func(*testing.B, *bolt.Queue) float64) float64 {
	b.Helper()
	const streams = 200
	d, err := New(admin.Of(q), &Options{Authorize: everything, Logger: hclog.NewNullLogger()})
	require.NoError(b, err)
	server := openStalled(b, d, streams)
	defer server.Close()
	used := measure(b, q)
	require.Len(b, d.streams, streams) // all of them still wait
	require.NoError(b, d.Close())
	return used
}

// reportMedian logs and returns the median. The order statistics around it, a standard deviation of their
// binomial distribution and more away, limit where the true one is.
func reportMedian(b *testing.B, what string, all []float64) float64 {
	slices.Sort(all)
	n := len(all)
	away := int(0.98 * math.Sqrt(float64(n)))
	median := (all[(n-1)/2] + all[n/2]) / 2
	b.Logf("%s: median %.1f %%, with 95 %% probability from %.1f to %.1f %%", what, median, all[max(0, n/2-1-away)], all[min(n-1, (n-1)/2+1+away)])
	return median
}

// drive returns the processor time of a job, over 1.2 s in which the dashboard looks at the queue at least once. It
// first runs jobs for a while that do not count, so that the end of the last round is over.
func drive(b *testing.B, q *bolt.Queue) float64 {
	b.Helper()
	runtime.GC()
	runJobs(b, q, 300*time.Millisecond)
	used := processorTime(b)
	jobs := runJobs(b, q, 1200*time.Millisecond)
	return (processorTime(b) - used).Seconds() / float64(jobs)
}

// runJobs enqueues, fetches, and acks jobs by hundreds for a time, and returns their number.
func runJobs(b *testing.B, q *bolt.Queue, during time.Duration) (jobs int) {
	b.Helper()
	for began := time.Now(); time.Since(began) < during; {
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
	return jobs
}

// trickle changes the queue for five seconds, so that every stream has something to send, but seldom. It returns
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
