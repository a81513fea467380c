package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bench/report"
	"github.com/gopawl/pawl/bench/system"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/driver"
)

// fallingDue has the queue go by a clock that is set to the second in which all jobs
// are due as soon as they are stored: with the real one they might be due before, or
// everybody would have to wait.
func fallingDue(t *trial) error {
	const timeLimit = 5 * time.Minute
	var ahead atomic.Int64 // of the real clock
	now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	inner, err := bolt.Open(filepath.Join(t.dir, system.PawlFile), &bolt.Options{Logger: hclog.NewNullLogger(), Now: now})
	if err != nil {
		return err
	}
	q := system.NewPawlQueue(inner)
	defer q.Close()
	due := now().Add(24 * time.Hour)
	err = t.store(t.million, func(ctx context.Context, batch [][]byte) error {
		return q.EnqueueWith(ctx, batch, pawl.At(due))
	})
	if err != nil {
		return err
	}

	ctx, stop := context.WithTimeout(t.ctx, timeLimit)
	defer stop()
	var (
		wg       sync.WaitGroup
		allReady time.Duration
		polling  error
		all      []time.Duration
	)
	ahead.Store(int64(time.Until(due)))
	began := time.Now()
	wg.Go(func() {
		polling = until(ctx, q, func(c pawl.Counts) bool { return c.Delayed == 0 })
		allReady = time.Since(began)
		stop()
	})
	for ctx.Err() == nil && err == nil {
		called := time.Now()
		err = q.Enqueue(t.ctx, small)
		all = append(all, time.Since(called))
	}
	stop()
	wg.Wait()
	if err = errors.Join(err, polling); err != nil {
		return err
	}
	slices.Sort(all)
	t.report("enqueue-p50", report.Milli(report.Percentile(all, 50)), milliseconds)
	t.report("enqueue-p99", report.Milli(report.Percentile(all, 99)), milliseconds)
	t.report("all-ready", allReady.Seconds(), seconds)
	return q.Close()
}

// until polls the counts of all queues until they are as wanted.
func until(ctx context.Context, q *system.PawlQueue, wanted func(pawl.Counts) bool) error {
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for {
		stats, err := q.Bolt.Stats(ctx)
		if err != nil {
			return err
		}
		var counts pawl.Counts
		for _, one := range stats.Queues {
			driver.AddCounts(&counts, one.Counts)
		}
		if wanted(counts) {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("%w: the queue still has %+v", context.Cause(ctx), counts)
		}
	}
}
