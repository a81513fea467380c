package main

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl/bench/report"
	"github.com/gopawl/pawl/bench/system"
)

// spacing ends each run by a clean close, which may add a list of the free pages. The
// reader comes when a tenth of the jobs is done, so that it meets the queue at work.
func spacing(t *trial) error {
	const backlog = 1000
	for _, run := range []struct {
		metric string
		held   time.Duration
	}{{"file", 0}, {"file-reader", t.reader}} {
		dir := filepath.Join(t.dir, run.metric)
		err := t.onPawl(dir, func(q *system.PawlQueue) error {
			var (
				wg      sync.WaitGroup
				done    atomic.Int64
				reading error
			)
			err := t.flow(q, producers, t.million, backlog, small, func(n int64) {
				done.Store(n)
				if n == int64(t.million/10) && run.held > 0 {
					wg.Go(func() { reading = t.hold(q, run.held, &done) })
				}
			})
			wg.Wait()
			return errors.Join(err, reading)
		})
		if err != nil {
			return err
		}
		n, err := fileSize(filepath.Join(dir, system.PawlFile))
		if err != nil {
			return err
		}
		t.report(run.metric, report.MiB(n), mebibytes)
	}
	return nil
}

// hold keeps a read transaction open, and reports how many jobs were done meanwhile.
func (t *trial) hold(q *system.PawlQueue, d time.Duration, done *atomic.Int64) error {
	return q.Bolt.View(t.ctx, func(*bbolt.Tx) error {
		from, began := done.Load(), time.Now()
		err := t.wait(d)
		t.rate("jobs-reader", int(done.Load()-from), time.Since(began))
		return err
	})
}

// flow takes so many jobs through a queue, by producers and 16 no-op workers, with at
// most room of them in it. ran is called after each with the number of completed jobs.
func (t *trial) flow(q system.Queue, producers, jobs, room int, payload []byte, ran func(n int64)) error {
	ctx, stop := context.WithCancel(t.ctx)
	defer stop()
	inside := make(chan struct{}, room)
	var (
		wg    sync.WaitGroup
		begun atomic.Int64
		done  atomic.Int64
		first firstError
	)
	for range producers {
		wg.Go(func() {
			for begun.Add(1) <= int64(jobs) {
				select {
				case inside <- struct{}{}:
				case <-ctx.Done():
					return
				}
				if err := q.Enqueue(t.ctx, payload); err != nil {
					first.set(err)
					stop()
					return
				}
			}
		})
	}
	err := q.Work(ctx, workers, func([]byte) {
		<-inside
		n := done.Add(1)
		ran(n)
		if n == int64(jobs) {
			stop()
		}
	})
	stop()
	wg.Wait()
	return cmp.Or(first.err, err, t.ctx.Err())
}

// allocating has 128 producers: while those of one commit wait, those of the next
// gather, so that a commit stores somewhat less than 64 jobs, and leases and completes as
// many.
func allocating(t *trial) error {
	return t.onPawl(t.dir, func(q *system.PawlQueue) error {
		return t.allocated(func(jobs int) error {
			return t.flow(q, 2*producers, jobs, 8*producers, small, func(int64) {})
		})
	})
}

// allocated reports what a job allocates in run, once pools and caches are warm.
func (t *trial) allocated(run func(jobs int) error) error {
	jobs := min(50_000, t.million/5)
	if err := run(jobs / 20); err != nil {
		return err
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := run(jobs)
	runtime.ReadMemStats(&after)
	t.report("allocs", float64(after.Mallocs-before.Mallocs)/float64(jobs), "allocs/job")
	t.report("bytes", float64(after.TotalAlloc-before.TotalAlloc)/float64(jobs), "B/job")
	return err
}

func writing(t *trial) error {
	return t.onPawl(t.dir, func(q *system.PawlQueue) error {
		return t.written(func(jobs int, payload []byte) error {
			return t.flow(q, producers, jobs, 2*producers, payload, func(int64) {})
		})
	})
}

// written reports what this process writes in run for a byte of payload. Nothing else
// in it writes meanwhile.
func (t *trial) written(run func(jobs int, payload []byte) error) error {
	const payload = 64 << 10
	jobs := max(256, t.million/500)
	before, err := bytesWritten()
	if err != nil {
		return err
	}
	if err := run(jobs, make([]byte, payload)); err != nil {
		return err
	}
	after, err := bytesWritten()
	t.report("written", float64(after-before)/float64(jobs*payload), "B/B")
	return err
}
