package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/gopawl/pawl/bench/system"
)

// ownBacklog is backlogged on pawl alone. A second queue with the smallest backlog takes
// turns with it, so that the ratio of the two leaves out what the disk does meanwhile.
func (t *trial) ownBacklog(jobs int) error {
	if err := t.room(jobs); err != nil {
		return err
	}
	return t.onPawl(filepath.Join(t.dir, "large"), func(large *system.PawlQueue) error {
		return t.onPawl(filepath.Join(t.dir, "small"), func(little *system.PawlQueue) error {
			if err := errors.Join(t.store(jobs, large.EnqueueAll), t.store(smallestBacklog, little.EnqueueAll)); err != nil {
				return err
			}
			var l, s turns
			for l.took() < 2*t.limit {
				if err := errors.Join(t.turn(large, &l), t.turn(little, &s)); err != nil {
					return err
				}
			}
			t.report("enqueue", l.storeRate(), perSecond)
			t.report("drain", l.drainRate(), perSecond)
			t.report("enqueue-to-10k", l.storeRate()/s.storeRate(), ratio)
			t.report("drain-to-10k", l.drainRate()/s.drainRate(), ratio)
			return nil
		})
	})
}

// backlogged measures at a backlog that stays about as large as it is: it grows by a
// portion and shrinks by as much, in turns, until both together took twice the limit.
// A portion is the same at every size, so that what it costs to start workers is too.
func (t *trial) backlogged(q system.Queue, jobs int) error {
	if err := t.store(jobs, q.EnqueueAll); err != nil {
		return err
	}
	var all turns
	for all.took() < 2*t.limit {
		if err := t.turn(q, &all); err != nil {
			return err
		}
	}
	t.report("enqueue", all.storeRate(), perSecond)
	t.report("drain", all.drainRate(), perSecond)
	return nil
}

// turns are portions that went into a queue and out of it.
type turns struct {
	stored, done      int
	storing, draining time.Duration
}

func (s *turns) took() time.Duration { return s.storing + s.draining }

func (s *turns) storeRate() float64 { return float64(s.stored) / s.storing.Seconds() }

func (s *turns) drainRate() float64 { return float64(s.done) / s.draining.Seconds() }

// turn has 64 producers add a portion, and 16 no-op workers take as much.
func (t *trial) turn(q system.Queue, s *turns) error {
	n, took, err := t.produceUpTo(portion, func() error { return q.Enqueue(t.ctx, small) })
	s.stored, s.storing = s.stored+n, s.storing+took
	if err != nil {
		return err
	}
	n, took, err = t.drain(q, workers, n)
	s.done, s.draining = s.done+n, s.draining+took
	return err
}

// room refuses a backlog that the disk may not hold with ease.
func (t *trial) room(jobs int) error {
	free, err := freeSpace(t.dir)
	if need := 3 * int64(jobs) * rowSize; err == nil && free < need {
		return fmt.Errorf("skipped: %d MiB are free on the disk, of %d MiB that are three times the file of %d jobs", free>>20, need>>20, jobs)
	}
	return nil
}

// store calls enqueueAll until it has stored so many jobs.
func (t *trial) store(jobs int, enqueueAll func(context.Context, [][]byte) error) error {
	batch := slices.Repeat([][]byte{small}, bulk)
	for jobs > 0 {
		batch = batch[:min(len(batch), jobs)]
		if err := enqueueAll(t.ctx, batch); err != nil {
			return err
		}
		jobs -= len(batch)
	}
	return nil
}

// produceUpTo is produce by 64 producers, which end early when there are n jobs.
func (t *trial) produceUpTo(n int, enqueue func() error) (int, time.Duration, error) {
	enough := errors.New("enough")
	var begun atomic.Int64
	stored, took, err := t.produce(producers, func() error {
		if begun.Add(1) > int64(n) {
			return enough
		}
		return enqueue()
	})
	if errors.Is(err, enough) {
		err = nil
	}
	return stored, took, err
}

// onPawl runs fn on the queue in a folder, which it makes if need be.
func (t *trial) onPawl(dir string, fn func(*system.PawlQueue) error) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	q, err := system.OpenPawl(dir)
	if err != nil {
		return err
	}
	return errors.Join(fn(q), q.Close())
}
