//go:build unix

package admin

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/bolt/offline"
	"github.com/gopawl/pawl/internal/race"
	"github.com/gopawl/pawl/internal/withid"
)

// slowClients is more than [maxConns], also under the race detector.
var slowClients = max(maxConns+44, race.Fewer(1000))

// slowRequests are the requests of slow clients: they send this, and then neither send nor read.
var slowRequests = []string{
	"", // half open
	"GET " + opStats.path + " HTTP/1.1\r\nHost: localhost\r\nX-Header: a",
	"POST " + opReap.path + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n",
	"POST " + opEnqueue.path + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n{",
	"GET " + pathEvents + " HTTP/1.1\r\nHost: localhost\r\n\r\n",
	"POST " + opList.path + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 31\r\n\r\n" + `{"detail":"whole","limit":1000}`,
	"GET " + opList.path + " HTTP/1.1\r\nHost: localhost\r\n\r\n",
	"GET " + pathBackup + " HTTP/1.1\r\nHost: localhost\r\n\r\n",
}

// slowRole is a thousand slow clients until it is asked to end. It reports when all of them have
// connected. Every ten seconds, each sends a few more bytes; a client that was dropped notices,
// and reconnects.
func slowRole(socket string) error {
	var begun sync.WaitGroup
	begun.Add(slowClients)
	for i := range slowClients {
		go func() {
			first := sync.OnceFunc(begun.Done)
			again, drop := time.NewTicker(10*time.Millisecond), time.NewTicker(10*time.Second)
			for {
				conn, err := (&net.Dialer{}).Dial("unix", socket)
				if err != nil {
					<-again.C
					continue
				}
				_, err = io.WriteString(conn, slowRequests[i%len(slowRequests)])
				first()
				for err == nil {
					<-drop.C
					_, err = io.WriteString(conn, "a")
				}
				_ = conn.Close()
			}
		}()
	}
	begun.Wait()
	fmt.Println("ready")
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// work stores, runs and settles jobs, eight at a time.
func work(t testing.TB, q *bolt.Queue, jobs int) {
	t.Helper()
	ctx := context.Background()
	var wg sync.WaitGroup
	errs := make(chan error, 8)
	for i := range 8 {
		queue := fmt.Sprint("q", i)
		wg.Go(func() {
			for range jobs / 80 {
				batch := make([]*pawl.Envelope, 10)
				for i := range batch {
					batch[i] = &pawl.Envelope{Kind: "k", Queue: queue, Payload: []byte("\xc0")}
				}
				err := withid.Enqueue(ctx, q, batch...)
				if err == nil {
					var leases []*pawl.Lease
					if leases, err = q.Fetch(ctx, pawl.Request{Queues: []string{queue}, Max: 10, Wait: pawl.WaitNot}); err == nil {
						acks := make([]pawl.Settlement, len(leases))
						for i, l := range leases {
							acks[i] = l.Ack()
						}
						err = q.Settle(ctx, acks...)
					}
				}
				if err != nil {
					errs <- err
					return
				}
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
}

// A thousand clients that neither send nor read do not keep others from being answered, and
// leave nothing behind.
func TestThousandSlowClientsKeepNobodyOut(t *testing.T) {
	ctx, q := context.Background(), openLive(t)
	var dead []pawl.ID
	for range race.Fewer(100) {
		e := &pawl.Envelope{Kind: "dead", Queue: "dead", Payload: make([]byte, 4096)}
		require.NoError(t, withid.Enqueue(ctx, q, e))
		require.NoError(t, q.Cancel(ctx, e.ID))
		dead = append(dead, e.ID)
	}
	s := serveTest(t, q)
	goroutines, files := runtime.NumGoroutine(), openFiles(t)
	slow := startApp(t, "slow", strings.TrimPrefix(s.Addr(), "unix://"))

	worked := make(chan struct{})
	go func() {
		defer close(worked)
		work(t, q, race.Fewer(8000))
	}()
	for _, id := range dead {
		a, err := open(ctx, offline.New(q.Path(), nil), &DialOptions{Timeout: testTimeout}, testTimeout, func() {})
		require.NoError(t, err)
		stats, err := a.Stats(ctx)
		require.NoError(t, err)
		require.NotNil(t, stats.Process)
		_, err = a.List(ctx, Query{Filter: Filter{Filter: pawl.Filter{State: pawl.Dead}}})
		require.NoError(t, err)
		require.NoError(t, withid.Enqueue(ctx, a, &pawl.Envelope{Kind: "mine", Queue: "mine"}))
		errs, err := a.Do(ctx, Action{Verb: Delete}, id)
		require.NoError(t, err)
		require.NoError(t, errs[0])
		require.NoError(t, a.Close())
	}
	<-worked
	stats, err := q.Stats(ctx)
	require.NoError(t, err)
	for _, one := range stats.Queues {
		require.Zero(t, one.Leased+one.Dead)
		if one.Name == "mine" {
			require.Equal(t, len(dead), one.Ready)
		}
	}
	slow.killHard(t)
	requireSettled(t, goroutines, files)
}

// BenchmarkSlowClients measures how much throughput a queue keeps while a thousand slow clients
// are connected: "ratio" should be 0.9 or more. The two measurements alternate, so that other
// load on the machine affects both; with much load, "cpu-ratio", of the processor time that the
// process used for its jobs, is more accurate.
//
// The clients cost work of the garbage collector, once per cycle. A process with nothing in
// memory but the queue has hundreds of cycles a second; one with 32 MiB of its own, as most apps
// have at least, a few.
func BenchmarkSlowClients(b *testing.B) {
	b.Run("app=0", func(b *testing.B) { benchmarkSlowClients(b, 0) })
	b.Run("app=32MiB", func(b *testing.B) { benchmarkSlowClients(b, 32<<20) })
}

func benchmarkSlowClients(b *testing.B, app int) {
	q := openLive(b)
	s := serveTest(b, q)
	own := make([]*[128]byte, app/128) // the memory of the app
	for i := range own {
		own[i] = new([128]byte)
	}
	defer runtime.KeepAlive(own)
	const jobs = 5_000
	window := 11 * time.Second // each slow client is dropped once in this time
	if testing.Short() {
		window = time.Second // shows only that the benchmark works
	}
	var aloneJobs, besideJobs int
	var alone, beside, aloneCPU, besideCPU time.Duration
	measure := func(done *int, wall, cpu *time.Duration) {
		work(b, q, jobs) // until all clients have settled
		began, used := time.Now(), usedCPU(b)
		for time.Since(began) < window {
			work(b, q, jobs)
			*done += jobs
		}
		*wall += time.Since(began)
		*cpu += usedCPU(b) - used
	}
	for b.Loop() {
		measure(&aloneJobs, &alone, &aloneCPU)
		slow := startApp(b, "slow", strings.TrimPrefix(s.Addr(), "unix://"))
		measure(&besideJobs, &beside, &besideCPU)
		slow.killHard(b)
	}
	rate := func(jobs int, in time.Duration) float64 { return float64(jobs) / in.Seconds() }
	b.ReportMetric(rate(besideJobs, beside)/rate(aloneJobs, alone), "ratio")
	b.ReportMetric(rate(besideJobs, besideCPU)/rate(aloneJobs, aloneCPU), "cpu-ratio")
	b.ReportMetric(rate(aloneJobs, alone), "jobs/s-alone")
	b.ReportMetric(rate(besideJobs, beside), "jobs/s-beside")
	b.ReportMetric(0, "ns/op")
}

// usedCPU returns the processor time of this process.
func usedCPU(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
