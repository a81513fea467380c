package workflow_test

import (
	"context"
	"flag"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/worker"
	"github.com/gopawl/pawl/workflow"
)

var (
	sleepersFlag = flag.Int("sleepers", 2_000, "runs of BenchmarkSleepers, of which 100 000 wake in a minute")
	atOnceFlag   = flag.Bool("at-once", false, "all runs of BenchmarkSleepers wake at the same time")
)

// BenchmarkSleepers lets runs sleep until times that are close together, or all the same, and reports what that
// holds: goroutines and heap beyond those of the empty queue, events per second, and how long
// after the last time all runs had ended.
func BenchmarkSleepers(b *testing.B) {
	const slots, starters = 64, 64
	sleepers := *sleepersFlag
	within := time.Duration(sleepers) * time.Minute / 100_000
	until := 3*time.Second + 2*within
	if *atOnceFlag {
		within = 0
	}
	for b.Loop() {
		q, err := bolt.Open(filepath.Join(b.TempDir(), "sleepers.db"), nil)
		require.NoError(b, err)
		defer q.Close()
		e := workflow.Open(q, nil)
		var due atomic.Pointer[time.Time]
		flow := workflow.Define("sleeper", func(r *workflow.Run, n int) (int, error) {
			at, err := workflow.Step(r, "choose", func(context.Context) (time.Time, error) {
				return due.Load().Add(time.Duration(n) * within / time.Duration(sleepers)), nil
			})
			if err != nil {
				return 0, err
			}
			return n, workflow.SleepUntil(r, "sleep", at)
		})
		w := worker.New(q, &worker.Options{Concurrency: slots})
		require.NoError(b, e.Handle(b.Context(), w, flow))
		before, goroutines := heap(), runtime.NumGoroutine()

		var asleep, woken, ended, events atomic.Int64
		all := make(chan struct{})
		stop := q.Listen(func(e pawl.Event) {
			events.Add(1)
			switch e.Type {
			case pawl.EventSnoozed:
				if asleep.Add(1) == int64(sleepers) {
					close(all)
				}
			case pawl.EventFetched:
				if asleep.Load() == int64(sleepers) {
					woken.Add(1)
				}
			case pawl.EventSucceeded:
				ended.Add(1)
			}
		})
		defer stop()
		ctx, cancel := context.WithCancel(b.Context())
		var working sync.WaitGroup
		working.Go(func() { require.NoError(b, w.Run(ctx)) })

		began := time.Now()
		first := began.Add(until)
		due.Store(&first)
		var starting sync.WaitGroup
		for s := range starters {
			starting.Go(func() {
				for n := s; n < sleepers; n += starters {
					_, err := flow.Start(ctx, e, fmt.Sprint(n), n)
					require.NoError(b, err)
				}
			})
		}
		starting.Wait()
		<-all
		b.ReportMetric(time.Since(began).Seconds(), "s-until-all-sleep")
		require.True(b, time.Now().Before(first), "the machine is too slow for the times of this benchmark")
		quiet := events.Load()
		<-time.After(time.Second)
		b.ReportMetric(float64(events.Load()-quiet), "events-asleep")
		b.ReportMetric(float64(woken.Load()), "woken-early")
		b.ReportMetric(float64(heap()-before)/(1<<20), "MiB-heap")
		b.ReportMetric(float64(runtime.NumGoroutine()-goroutines), "goroutines")

		last := first.Add(within)
		for ended.Load() < int64(sleepers) {
			<-time.After(10 * time.Millisecond)
			require.Less(b, time.Since(last), 5*time.Minute)
		}
		b.ReportMetric(time.Since(last).Seconds(), "s-after-last")
		cancel()
		working.Wait()
	}
}

// heap returns the memory in use after a collection.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
