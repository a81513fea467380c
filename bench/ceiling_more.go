package main

import (
	"slices"
	"time"

	"github.com/gopawl/pawl/bench/report"
)

// ceilingBacklog is what backlogged is to a queue. It stores 64 a commit, and takes the
// best of its sizes of transaction to drain by.
func (t *trial) ceilingBacklog(jobs int) error {
	if err := t.room(jobs); err != nil {
		return err
	}
	c, err := openCeiling(t.dir)
	if err != nil {
		return err
	}
	defer c.close()
	if err := c.fill(jobs, small); err != nil {
		return err
	}
	var stored int
	var storing, all time.Duration
	done := make([]int, len(ceilingBatches))
	draining := make([]time.Duration, len(ceilingBatches))
	for turn := 0; all < 2*t.limit || turn < len(ceilingBatches); turn++ {
		n, took, err := t.steps(c, func() int { return int(c.seq) }, producers, 0)
		if err != nil {
			return err
		}
		stored, storing, all = stored+n, storing+took, all+took
		i := turn % len(ceilingBatches)
		n, took, err = t.steps(c, func() int { return int(c.completed) }, 0, ceilingBatches[i])
		if err != nil {
			return err
		}
		done[i], draining[i], all = done[i]+n, draining[i]+took, all+took
	}
	t.rate("enqueue", stored, storing)
	best := 0.0
	for i, n := range done {
		best = max(best, float64(n)/draining[i].Seconds())
	}
	t.report("drain", best, perSecond)
	return nil
}

// steps repeats a transaction until a portion is counted, or the limit is over.
func (t *trial) steps(c *ceiling, count func() int, store, claim int) (n int, took time.Duration, err error) {
	from, began := count(), time.Now()
	for n < portion && took < t.limit {
		if err := c.step(store, claim, small); err != nil {
			return n, took, err
		}
		n, took = count()-from, time.Since(began)
	}
	return n, took, t.ctx.Err()
}

// loneCommit is what the times of a single producer are held against on the same disk.
func loneCommit(t *trial) error {
	c, err := openCeiling(t.dir)
	if err != nil {
		return err
	}
	defer c.close()
	all := make([]time.Duration, loneRounds)
	for i := range all {
		began := time.Now()
		if err := c.step(1, 0, small); err != nil {
			return err
		}
		all[i] = time.Since(began)
	}
	slices.Sort(all)
	t.report("lone-commit", report.Milli(report.Percentile(all, 50)), milliseconds)
	return nil
}

func ceilingAllocs(t *trial) error {
	c, err := openCeiling(t.dir)
	if err != nil {
		return err
	}
	defer c.close()
	return t.allocated(func(jobs int) error { return t.ceilingFlow(c, jobs, small) })
}

func ceilingWrites(t *trial) error {
	c, err := openCeiling(t.dir)
	if err != nil {
		return err
	}
	defer c.close()
	return t.written(func(jobs int, payload []byte) error { return t.ceilingFlow(c, jobs, payload) })
}

// ceilingFlow takes jobs through all states, 64 a commit.
func (t *trial) ceilingFlow(c *ceiling, jobs int, payload []byte) error {
	for ; jobs > 0 && t.ctx.Err() == nil; jobs -= producers {
		n := min(producers, jobs)
		if err := c.step(n, n, payload); err != nil {
			return err
		}
	}
	if err := t.ctx.Err(); err != nil {
		return err
	}
	return c.step(0, 0, payload) // completes the last
}
