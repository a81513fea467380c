package soak

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gopawl/pawl"
)

// blockSize is the number of jobs that a producer takes at a time. It stores them in batches
// of equal size.
const blockSize = 64

// batchSize returns the size of a block's batches: from 2 to the whole block.
func batchSize(round, block int) int { return 2 << ((round + block*7) % 6) }

// batchOf returns the batch of a job.
func batchOf(round, n int) (from, to int) {
	size := batchSize(round, n/blockSize)
	from = n - n%size
	return from, from + size
}

// producers is the number of goroutines that store jobs.
const producers = 2

// produce stores the jobs of a range of blocks, except those that an earlier process began to
// store.
func (l *life) produce(ctx context.Context, from, to int) error {
	var (
		all  sync.WaitGroup
		next atomic.Int64
		errs [producers]error
	)
	next.Store(int64(from))
	for p := range producers {
		all.Go(func() {
			for errs[p] == nil && l.violation() == nil {
				n := int(next.Add(blockSize)) - blockSize
				if n >= to {
					return
				}
				errs[p] = l.block(ctx, n)
			}
		})
	}
	all.Wait()
	return errors.Join(errs[:]...)
}

func (l *life) block(ctx context.Context, from int) error {
	size := batchSize(l.round, from/blockSize)
	for n := from; n < from+blockSize; n += size {
		if l.cell(n).has(begun) {
			continue
		}
		if err := l.batch(ctx, n, n+size); err != nil {
			return err
		}
	}
	return nil
}

// batch stores jobs, and cancels the jobs of class cancelled.
func (l *life) batch(ctx context.Context, from, to int) error {
	jobs := make([]*pawl.Envelope, 0, to-from)
	now := time.Now()
	for n := from; n < to; n++ {
		e, err := envelope(l.round, n, now)
		if err != nil {
			return err
		}
		jobs = append(jobs, e)
	}
	l.changeAll(from, to, func(_ int, c *cell) { c.flags |= begun })
	done, err := l.q.Enqueue(ctx, jobs...)
	if err != nil {
		return fmt.Errorf("enqueue: %w", err)
	}
	l.changeAll(from, to, func(_ int, c *cell) { c.flags |= accepted })
	for i, d := range done {
		n := from + i
		if d.Existing != existing(n) || existing(n) && d.ID != idOf(l.round, n-1) {
			return fmt.Errorf("job %d, of class %d, was stored as %s, existing: %v", n, classOf(n), d.ID, d.Existing)
		}
	}
	if err := l.storeAgain(ctx, from, to); err != nil {
		return err
	}
	return l.cancel(ctx, from, to)
}

// storeAgain stores the long-delayed jobs of a range again. Their unique keys must prevent it.
func (l *life) storeAgain(ctx context.Context, from, to int) error {
	for n := from; n < to; n++ {
		if classOf(n) != cancelled {
			continue
		}
		e, err := envelope(l.round, n, time.Now())
		if err != nil {
			return err
		}
		e.ID = pawl.ID{}
		done, err := l.q.Enqueue(ctx, e)
		if err != nil {
			return fmt.Errorf("enqueue job %d again: %w", n, err)
		}
		if d := done[0]; !d.Existing || d.ID != idOf(l.round, n) {
			return fmt.Errorf("job %d was stored again, as %s", n, d.ID)
		}
	}
	return nil
}

// cancel cancels the jobs of class cancelled in a range.
func (l *life) cancel(ctx context.Context, from, to int) error {
	for n := from; n < to; n++ {
		if classOf(n) != cancelled {
			continue
		}
		if err := l.q.Cancel(ctx, idOf(l.round, n)); err != nil {
			return fmt.Errorf("cancel job %d: %w", n, err)
		}
	}
	return nil
}

// cancelAgain cancels the jobs that a killed process had to cancel.
func (l *life) cancelAgain(ctx context.Context) error {
	for n := range l.cells {
		if !l.cell(n).has(begun) {
			continue
		}
		err := l.cancel(ctx, n, n+1)
		if err != nil && !errors.Is(err, pawl.ErrNotFound) && !errors.Is(err, pawl.ErrConflict) {
			return err
		}
	}
	return nil
}
