package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/driver"
)

// BenchmarkMillion runs the command on a file with a million jobs, in a new process each time,
// stopped and live: the medians of nine runs in milliseconds. Then it retries 100 000 dead jobs
// that a filter selects. Run it with -benchtime 1x.
func BenchmarkMillion(b *testing.B) {
	binary := filepath.Join(b.TempDir(), "jobctl")
	out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput()
	require.NoError(b, err, string(out))
	path := filepath.Join(b.TempDir(), "jobs.db")
	opts := &bolt.Options{Logger: hclog.NewNullLogger()}
	q, err := bolt.Open(path, opts)
	require.NoError(b, err)
	million(b, q)
	require.NoError(b, q.Close())

	jobctl := func(args ...string) (ms float64) {
		began := time.Now()
		out, err := exec.Command(binary, append([]string{"--db", path}, args...)...).CombinedOutput()
		require.NoError(b, err, string(out))
		if slices.Contains(args, "retry") {
			require.Contains(b, string(out), "retried 100000")
		}
		return float64(time.Since(began).Microseconds()) / 1000
	}
	median := func(args ...string) float64 {
		all := make([]float64, 9)
		for i := range all {
			all[i] = jobctl(args...)
		}
		slices.Sort(all)
		return all[len(all)/2]
	}
	measure := func(b *testing.B, queue string) {
		for range b.N {
			b.ReportMetric(median("stats"), "stats-ms")
			b.ReportMetric(median("job", "list"), "list-ms")
			b.ReportMetric(median("dead", "list"), "dead-list-ms")
			b.ReportMetric(jobctl("dead", "retry", "-q", queue, "--error", "timeout", "-y"), "retry-100000-ms")
			b.ReportMetric(0, "ns/op")
		}
	}
	b.Run("stopped", func(b *testing.B) { measure(b, "stopped") })

	q, err = bolt.Open(path, opts)
	require.NoError(b, err)
	server, err := admin.Serve(q, &admin.Options{Logger: hclog.NewNullLogger()})
	require.NoError(b, err)
	b.Run("live", func(b *testing.B) { measure(b, "live") })
	require.NoError(b, server.Close())
	require.NoError(b, q.Close())
}

// million stores 1 000 000 jobs: 400 000 dead jobs, half of them in each of two queues, and
// every second one dead after a timeout; the others are ready, and a tenth delayed.
func million(b *testing.B, q *bolt.Queue) {
	const portion = 5_000
	now := time.Now()
	payload := []byte{0xc4, 98}
	payload = append(payload, make([]byte, 98)...) // MessagePack of 98 bytes
	for n := 0; n < 1_000_000; n += portion {
		jobs := make([]*pawl.Envelope, portion)
		for i := range jobs {
			e := &pawl.Envelope{Kind: "mail.send", Queue: "default", Payload: payload, MaxRetries: 3, State: pawl.Ready}
			switch {
			case n < 400_000:
				e.Queue, e.State, e.Attempts, e.Failures = "stopped", pawl.Dead, 4, 1
				if n >= 200_000 {
					e.Queue = "live"
				}
				text := "421 timeout of the server"
				if i%2 == 0 {
					text = "550 no such mailbox"
				}
				e.Death = &pawl.Death{Reason: pawl.ReasonExhausted, At: now}
				e.History = []pawl.Failure{driver.NewFailure(4, now, text)}
			case i%10 == 0:
				e.State, e.NotBefore = pawl.Delayed, now.Add(24*time.Hour)
			}
			jobs[i] = e
		}
		require.NoError(b, q.Restore(context.Background(), jobs, nil), fmt.Sprint(n))
	}
}
