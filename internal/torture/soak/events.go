package soak

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/torture/harness"
)

// event records an event of the queue. The queue emits an event when it is durable, and
// before anything can follow from it, so later attempts can be compared with it.
func (l *life) event(e pawl.Event) {
	round, n := numberOf(e.Job.ID)
	l.mu.Lock()
	defer l.mu.Unlock()
	if round != l.round || n < 0 || n >= len(l.cells) {
		l.wrong(fmt.Errorf("%s of job %s, which is none of round %d", e.Type, e.Job.ID, l.round))
		return
	}
	l.progress.Add(1)
	l.counts[e.Type]++
	if l.events++; l.durable && l.events%(len(l.cells)/progressLines) == 0 {
		harness.Emit(at)
	}
	c := &l.cells[n]
	before := *c
	err := c.event(e.Type)
	if e.Type == pawl.EventEnqueued && err == nil {
		err = l.number(e.Job.Seq)
	}
	if e.Type == pawl.EventDied && !before.has(running) && (failures(n) > 0 || classOf(n) == permanent) {
		err = fmt.Errorf("it did not run (%s)", e.Cause)
	}
	if err != nil {
		l.wrong(fmt.Errorf("%s of job %d (%s, class %d): %w; so far %+v", e.Type, n, e.Job.ID, classOf(n), err, before))
	}
	l.keep(n, n+1)
	switch {
	case e.Type == pawl.EventSucceeded && classOf(n) == onePair:
		l.ended[n&^1] = time.Now()
	case e.Type == pawl.EventDied:
		l.deadJobs.add(n)
	}
}

// event records one event of the job.
func (c *cell) event(what pawl.EventType) error {
	ran := c.has(running)
	over := func(counter *uint8) error {
		if !ran {
			return errors.New("it did not run")
		}
		c.flags &^= running
		*counter++
		return nil
	}
	switch what {
	case pawl.EventSucceeded:
		if c.has(done) {
			return errors.New("it had succeeded before")
		}
		c.flags |= done
		return over(&c.settled)
	case pawl.EventRetried:
		c.failures++
		return over(&c.settled)
	case pawl.EventSnoozed:
		c.snoozes++
		return over(&c.settled)
	case pawl.EventReleased:
		if ran { // otherwise the job was fetched ahead
			return over(&c.cuts)
		}
	case pawl.EventDied:
		c.flags |= died
		if ran {
			return over(&c.settled)
		}
	case pawl.EventSkipped:
		c.flags |= skipped
	case pawl.EventRevived:
		c.flags |= revived
	case pawl.EventDeleted:
		c.flags |= deleted
	case pawl.EventReaped:
		return errors.New("its lease expired, and its worker was alive")
	}
	return nil
}

// deadJobs are the dead jobs that the operator has not handled yet.
type deadJobs struct {
	mu   sync.Mutex
	some map[int]bool
	bell chan struct{} // capacity 1
}

func (l *deadJobs) add(n int) {
	l.mu.Lock()
	if l.some == nil {
		l.some = make(map[int]bool)
	}
	l.some[n] = true
	l.mu.Unlock()
	select {
	case l.bell <- struct{}{}:
	default:
	}
}

func (l *deadJobs) take() (some map[int]bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	some, l.some = l.some, nil
	return some
}

// number requires that a sequence is higher than all sequences from before the queue
// was opened.
func (l *life) number(seq uint64) error {
	for last := l.seq.Load(); seq > last && !l.seq.CompareAndSwap(last, seq); last = l.seq.Load() {
	}
	if seq <= l.lastSeq {
		return fmt.Errorf("it got sequence %d, and one before the queue was opened has %d", seq, l.lastSeq)
	}
	return nil
}
