package main

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gopawl/pawl/bench/report"
	"github.com/gopawl/pawl/bench/system"
)

// The cases that every system runs.

const (
	producers = 64
	workers   = 16
	bulk      = 1000
	steady    = 4096 // jobs of the steady backlog
	pause     = 20 * time.Millisecond
)

var small = make([]byte, 100)

// serverCases are the shared cases for servers: without payloads, and without the ceiling, which takes no part.
func serverCases() (cases []benchCase) {
	for _, c := range sharedCases() {
		if !strings.HasPrefix(c.name, "payload") {
			c.about, _, _ = strings.Cut(c.about, "; the ceiling")
			cases = append(cases, c)
		}
	}
	return cases
}

func sharedCases() []benchCase {
	cases := []benchCase{
		{
			name:    "producer",
			about:   "one producer, one job a call",
			peers:   func(t *trial, q system.Queue) error { return t.producing(q, 1) },
			ceiling: func(t *trial) error { return t.ceilingRate("", 1, 0, small) },
		},
		{
			name:    "producers",
			about:   "64 producers, one job a call; the ceiling stores 64 a commit",
			peers:   func(t *trial, q system.Queue) error { return t.producing(q, producers) },
			ceiling: func(t *trial) error { return t.ceilingRate("", producers, 0, small) },
		},
		{
			name:    "bulk",
			about:   "one producer, 1 000 jobs a call",
			peers:   bulking,
			ceiling: func(t *trial) error { return t.ceilingRate("", bulk, 0, small) },
		},
		{
			name:    "drain",
			about:   "16 no-op workers empty a full queue",
			peers:   func(t *trial, q system.Queue) error { return t.draining(q, workers) },
			ceiling: func(t *trial) error { return t.ceilingDrain("", small) },
		},
		{
			name:    "steady",
			about:   "64 producers and 16 no-op workers with at most 4 096 jobs between them; jobs completed",
			peers:   steadily,
			ceiling: func(t *trial) error { return t.ceilingRate("", producers, producers, small) },
		},
		{
			name:    "latency",
			about:   "from enqueue to start on a queue that idles 20 ms between jobs; the ceiling is a lone commit",
			peers:   latency,
			ceiling: ceilingLatency,
		},
	}
	for _, p := range []struct {
		name string
		size int
	}{{"4KiB", 4 << 10}, {"64KiB", 64 << 10}} {
		payload := make([]byte, p.size)
		cases = append(cases, benchCase{
			name:    "payload-" + p.name,
			about:   "payloads of " + p.name + ": 64 producers store, then 16 no-op workers drain",
			peers:   func(t *trial, q system.Queue) error { return t.payloads(q, payload) },
			ceiling: func(t *trial) error { return t.ceilingPayloads(payload) },
		})
	}
	return cases
}

func (t *trial) producing(q system.Queue, producers int) error {
	if err := t.mark(); err != nil {
		return err
	}
	n, took, err := t.produce(producers, func() error { return q.Enqueue(t.ctx, small) })
	if err != nil {
		return err
	}
	t.rate("", n, took)
	return t.perJob(n)
}

// draining has workers empty a full queue, as far as they come.
func (t *trial) draining(q system.Queue, workers int) error {
	n, err := t.fill(q, t.full, small)
	if err != nil {
		return err
	}
	if err := t.mark(); err != nil {
		return err
	}
	done, took, err := t.drain(q, workers, n)
	if err != nil {
		return err
	}
	t.rate("", done, took)
	return t.perJob(done)
}

func bulking(t *trial, q system.Queue) error {
	batch := slices.Repeat([][]byte{small}, bulk)
	if err := t.mark(); err != nil {
		return err
	}
	n, took, err := t.produce(1, func() error { return q.EnqueueAll(t.ctx, batch) })
	if err != nil {
		return err
	}
	t.rate("", n*bulk, took)
	return t.perJob(n * bulk)
}

// steadily counts jobs that were completed while producers went on.
func steadily(t *trial, q system.Queue) error {
	if err := t.mark(); err != nil {
		return err
	}
	room := make(chan struct{}, steady)
	ctx, stop := context.WithTimeout(t.ctx, t.limit)
	defer stop()
	var (
		wg    sync.WaitGroup
		first firstError
	)
	for range producers {
		wg.Go(func() {
			for {
				select {
				case room <- struct{}{}:
				case <-ctx.Done():
					return
				}
				if err := q.Enqueue(t.ctx, small); err != nil {
					first.set(err)
					return
				}
			}
		})
	}
	began := time.Now()
	var took time.Duration
	var n int
	var mu sync.Mutex
	err := q.Work(ctx, workers, func([]byte) {
		if ctx.Err() == nil {
			<-room
			mu.Lock()
			n, took = n+1, time.Since(began)
			mu.Unlock()
		}
	})
	wg.Wait()
	if err == nil {
		err = first.err
	}
	if err != nil {
		return err
	}
	t.rate("", n, took)
	return t.perJob(n)
}

func latency(t *trial, q system.Queue) error {
	ctx, stop := context.WithCancel(t.ctx)
	defer stop()
	started := make(chan time.Time, 1)
	worked := make(chan error, 1)
	go func() { worked <- q.Work(ctx, workers, func([]byte) { started <- time.Now() }) }()
	once := func() (time.Duration, error) {
		began := time.Now()
		if err := q.Enqueue(t.ctx, small); err != nil {
			return 0, err
		}
		select {
		case at := <-started:
			return at.Sub(began), nil
		case err := <-worked:
			return 0, err
		}
	}
	err := t.sampled(once)
	stop()
	if err == nil {
		err = <-worked
	}
	return err
}

func ceilingLatency(t *trial) error {
	c, err := openCeiling(t.dir)
	if err != nil {
		return err
	}
	defer c.close()
	return t.sampled(func() (time.Duration, error) {
		began := time.Now()
		err := c.step(1, 0, small)
		return time.Since(began), err
	})
}

// sampled takes the time of something again and again, with pauses between. The first
// times are for caches and pools.
func (t *trial) sampled(once func() (time.Duration, error)) error {
	const warmUp = 5
	var all []time.Duration
	for i := range t.size.samples + warmUp {
		time.Sleep(pause)
		d, err := once()
		if err != nil {
			return err
		}
		if i >= warmUp {
			all = append(all, d)
		}
	}
	slices.Sort(all)
	t.report("p50", report.Milli(report.Percentile(all, 50)), milliseconds)
	t.report("p99", report.Milli(report.Percentile(all, 99)), milliseconds)
	return nil
}

func (t *trial) payloads(q system.Queue, payload []byte) error {
	n, took, err := t.produce(producers, func() error { return q.Enqueue(t.ctx, payload) })
	if err != nil {
		return err
	}
	t.bytes("enqueue", n, took, payload)
	done, took, err := t.drain(q, workers, n)
	t.bytes("drain", done, took, payload)
	return err
}

func (t *trial) bytes(metric string, n int, took time.Duration, payload []byte) {
	t.report(metric, float64(n)*float64(len(payload))/1e6/took.Seconds(), megabytes)
}

// ceilingRate repeats one transaction of a fixed size.
func (t *trial) ceilingRate(metric string, store, claim int, payload []byte) error {
	c, err := openCeiling(t.dir)
	if err != nil {
		return err
	}
	defer c.close()
	n, took, err := t.produce(1, func() error { return c.step(store, claim, payload) })
	t.rate(metric, n*store, took)
	return err
}

// ceilingBatches are the sizes of transaction of which the ceiling takes the best.
var ceilingBatches = []int{64, 256, 512, 1024}

func (t *trial) ceilingDrain(metric string, payload []byte) error {
	c, err := openCeiling(t.dir)
	if err != nil {
		return err
	}
	defer c.close()
	if err := c.fill(t.full, payload); err != nil {
		return err
	}
	rate, err := t.ceilingBest(c, payload)
	t.report(metric, rate, perSecond)
	return err
}

// ceilingBest drains a part of the queue by each size of transaction, and returns the
// most jobs a second.
func (t *trial) ceilingBest(c *ceiling, payload []byte) (best float64, err error) {
	share := (c.seq - c.claimed) / uint64(len(ceilingBatches))
	for _, batch := range ceilingBatches {
		from := c.completed
		began := time.Now()
		for c.completed-from < share && time.Since(began) < t.limit {
			if err := c.step(0, batch, payload); err != nil {
				return best, err
			}
		}
		best = max(best, float64(c.completed-from)/time.Since(began).Seconds())
	}
	return best, nil
}

func (c *ceiling) fill(n int, payload []byte) error {
	for n > 0 {
		batch := min(bulk, n)
		if err := c.step(batch, 0, payload); err != nil {
			return err
		}
		n -= batch
	}
	return nil
}

func (t *trial) ceilingPayloads(payload []byte) error {
	c, err := openCeiling(t.dir)
	if err != nil {
		return err
	}
	defer c.close()
	n, took, err := t.produce(1, func() error { return c.step(producers, 0, payload) })
	if err != nil {
		return err
	}
	t.bytes("enqueue", n*producers, took, payload)
	rate, err := t.ceilingBest(c, payload)
	t.report("drain", rate*float64(len(payload))/1e6, megabytes)
	return err
}
