package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gopawl/pawl/bench/system"
)

// benchCase is one thing to measure. Peers runs on every system, ceiling and own only on
// what they are named after; nil where the case has no such part.
type benchCase struct {
	name, about string
	peers       func(*trial, system.Queue) error
	ceiling     func(*trial) error
	own         func(*trial) error // on pawl
	once        bool               // too long for more than one round
	backlog     int                // 0, or its jobs: a run leaves out the backlogs that its size does not have
}

// has reports whether a run of this size has the case.
func (s *size) has(c *benchCase) bool { return c.backlog == 0 || slices.Contains(s.backlog, c.backlog) }

// size is how much work there is in the cases.
type size struct {
	rounds  int
	limit   time.Duration // of one measurement of throughput
	full    int           // jobs in a full queue, at most
	samples int           // of latency in one round
	idle    time.Duration // how long an idle queue is watched
	million int           // what stands for a million
	backlog []int         // jobs in a growing backlog
	reader  time.Duration // how long a reader stays open

	endurance time.Duration // how long a queue works at a steady rate
	pace      int           // jobs a second of that rate
}

var (
	fullSize = size{
		rounds: 3, limit: 1500 * time.Millisecond, full: 400_000, samples: 200, idle: time.Minute, million: 1_000_000,
		backlog: []int{10_000, 1_000_000, 10_000_000}, reader: 10 * time.Second,
		endurance: 10 * time.Minute, pace: 5000,
	}
	quickSize = size{
		rounds: 1, limit: 100 * time.Millisecond, full: 20_000, samples: 10, idle: 2 * time.Second, million: 50_000,
		backlog: []int{10_000, 100_000}, reader: time.Second,
		endurance: 2 * time.Second, pace: 500,
	}
)

// trial is one case on one system in one round.
type trial struct {
	size
	ctx     context.Context
	dir     string // empty, on the disk that is measured
	system  system.System
	server  *system.Server // nil where the system has none
	metered bool           // report what the server uses for each job
	used    system.Usage   // of the server, at the last call of mark
	samples []sample
}

// sample is one figure of a trial.
type sample struct {
	metric string // empty, or what of the case it is
	value  float64
	unit   string
}

func (t *trial) report(metric string, value float64, unit string) {
	t.samples = append(t.samples, sample{metric, value, unit})
}

// Units.
const (
	perSecond    = "jobs/s"
	megabytes    = "MB/s" // of payload
	microseconds = "µs/job"
	bytesPerJob  = "B/job"
	milliseconds = "ms"
	mebibytes    = "MiB"
)

func (t *trial) rate(metric string, n int, took time.Duration) {
	t.report(metric, float64(n)/took.Seconds(), perSecond)
}

// mark remembers what the server has used so far, for the next call of perJob.
func (t *trial) mark() (err error) {
	if t.metered {
		t.used, err = t.server.Usage(t.ctx)
	}
	return err
}

// perJob reports what the server has used for each of n jobs since the last mark.
func (t *trial) perJob(n int) error {
	if !t.metered {
		return nil
	}
	now, err := t.server.Usage(t.ctx)
	if err != nil {
		return err
	}
	used := now.Sub(t.used)
	t.report("server-cpu", float64(used.CPU)/float64(time.Microsecond)/float64(n), microseconds)
	if used.Log != 0 {
		t.report("server-log", float64(used.Log)/float64(n), bytesPerJob)
	}
	return nil
}

// produce has producers enqueue for as long as the limit and returns how many jobs they
// stored, and how long that took.
func (t *trial) produce(producers int, enqueue func() error) (n int, took time.Duration, err error) {
	var (
		wg    sync.WaitGroup
		count atomic.Int64
		first firstError
	)
	began := time.Now()
	end := began.Add(t.limit)
	for range producers {
		wg.Go(func() {
			for time.Now().Before(end) && !first.failed() {
				if err := enqueue(); err != nil {
					first.set(err)
					return
				}
				count.Add(1)
			}
		})
	}
	wg.Wait()
	return int(count.Load()), time.Since(began), first.err
}

// fill stores jobs until there are n, or the time is up, and returns how many there are.
func (t *trial) fill(q system.Queue, n int, payload []byte) (int, error) {
	end := time.Now().Add(t.limit)
	batch := slices.Repeat([][]byte{payload}, max(1, min(1000, (8<<20)/max(len(payload), 1))))
	for have := 0; ; {
		if have >= n || time.Now().After(end) {
			return have, nil
		}
		batch = batch[:min(len(batch), n-have)]
		if err := q.EnqueueAll(t.ctx, batch); err != nil {
			return have, err
		}
		have += len(batch)
	}
}

// firstJob is how much longer than the limit a drain may take for its first job. A limit of 50 ms is
// over before that on a busy machine.
const firstJob = time.Minute

// drain has workers complete up to n jobs within the limit, or the first one after it. It returns how
// many they did and the time from their start to the last.
func (t *trial) drain(q system.Queue, workers, n int) (done int, took time.Duration, err error) {
	ctx, stop := context.WithTimeout(t.ctx, t.limit+firstJob)
	defer stop()
	var count, last atomic.Int64
	began := time.Now()
	limit := time.AfterFunc(t.limit, func() {
		if count.Load() > 0 {
			stop()
		}
	})
	defer limit.Stop()
	err = q.Work(ctx, workers, func([]byte) {
		if ctx.Err() != nil {
			return
		}
		last.Store(int64(time.Since(began)))
		if count.Add(1) == int64(n) || time.Since(began) > t.limit {
			stop()
		}
	})
	if err == nil && count.Load() == 0 {
		err = fmt.Errorf("no job was done within %v", t.limit+firstJob)
	}
	return int(count.Load()), time.Duration(last.Load()), err
}

// firstError keeps the first of several.
type firstError struct {
	mu  sync.Mutex
	err error
}

func (f *firstError) set(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		f.err = err
	}
}

func (f *firstError) failed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err != nil
}

func fileSize(path string) (int64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
