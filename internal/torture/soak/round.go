package soak

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
)

// play runs one round: it stores all jobs and works until all have ended. Many rounds have a
// break in the middle, without work.
func (l *life) play(ctx context.Context) error {
	half := len(l.cells) / blockSize / 2 * blockSize
	pause := breakOf(l.round)
	if pause != nil { // until the break, some jobs have no handler
		if err := l.rest(); err != nil {
			return err
		}
	}
	if l.off == nil {
		l.work(pause == nil)
	}
	err := l.produce(ctx, 0, half)
	if err == nil && pause != nil {
		if err = l.rest(); err == nil {
			err = pause(l, ctx)
		}
		if err == nil {
			l.work(true)
		}
	}
	if err == nil {
		err = l.produce(ctx, half, len(l.cells))
	}
	if err == nil {
		err = l.drain(ctx)
	}
	return errors.Join(err, l.violation())
}

// breakOf returns the function for the break of a round, nil for a round without a break.
func breakOf(round int) func(*life, context.Context) error {
	switch round % 8 {
	case 1:
		return (*life).reopen
	case 2:
		return (*life).compact
	case 3:
		return (*life).backUp
	case 6:
		return (*life).takeTurns
	}
	return nil
}

// turnsTaken is the number of jobs that takeTurns fetches.
const turnsTaken = 16

// takeTurns requires that queues with enough jobs take turns.
func (l *life) takeTurns(ctx context.Context) error {
	if err := l.quiet(ctx); err != nil {
		return err
	}
	stats, err := l.q.Stats(ctx)
	if err != nil {
		return err
	}
	enough := 0
	for _, q := range stats.Queues {
		if q.Ready >= 2*turnsTaken { // some of these jobs may wait for the effect of another
			enough++
		}
	}
	leases, err := l.q.Fetch(ctx, pawl.Request{Queues: queues, Max: turnsTaken, Wait: pawl.WaitNot})
	if errors.Is(err, pawl.ErrEmpty) && enough == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	got := make(map[string]int)
	for _, lease := range leases {
		got[lease.Queue]++
		if err := l.q.Settle(ctx, lease.Release()); err != nil {
			return err
		}
	}
	if enough == len(queues) && got[queues[0]] != got[queues[1]] {
		return fmt.Errorf("queues with enough jobs gave unequal numbers of jobs: %v", got)
	}
	return nil
}

// quiet requires that the counts match the ledger.
func (l *life) quiet(ctx context.Context) error {
	if err := l.flush(ctx); err != nil {
		return err
	}
	stats, err := l.q.Stats(ctx)
	if err != nil {
		return err
	}
	return l.tally(stats)
}

// reopen closes the paused queue and opens it again.
func (l *life) reopen(ctx context.Context) error {
	for _, name := range queues {
		if err := l.q.Pause(ctx, name); err != nil {
			return err
		}
	}
	if err := l.again(ctx, func() error { return nil }); err != nil {
		return err
	}
	if _, err := l.q.Fetch(ctx, pawl.Request{Queues: queues, Max: 1, Wait: pawl.WaitNot}); !errors.Is(err, pawl.ErrEmpty) {
		return fmt.Errorf("the queues are paused, and a fetch returns %v", err)
	}
	for _, name := range queues {
		if err := l.q.Resume(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// again closes the queue, calls closed, opens the queue, and requires that its content is the
// same.
func (l *life) again(ctx context.Context, closed func() error) error {
	if err := l.quiet(ctx); err != nil {
		return err
	}
	if err := l.q.Close(); err != nil {
		return err
	}
	if err := closed(); err != nil {
		return err
	}
	if err := l.open(); err != nil {
		return err
	}
	if err := l.q.Check(ctx); err != nil {
		return err
	}
	return l.quiet(ctx)
}

// backUp backs up the queue at work, and requires that the copy has the same content.
func (l *life) backUp(ctx context.Context) error {
	path := l.path + ".backup"
	if err := l.q.Backup(ctx, path); err != nil {
		return err
	}
	defer os.Remove(path)
	o := l.options()
	o.OnEvent = nil
	q, err := bolt.Open(path, o)
	if err != nil {
		return err
	}
	stats, err := q.Stats(ctx)
	if err == nil {
		err = errors.Join(l.tally(stats), q.Check(ctx))
	}
	return errors.Join(err, q.Close())
}

// compact replaces the file by a compact copy.
func (l *life) compact(ctx context.Context) error {
	path := l.path + ".compact"
	if err := l.q.Compact(ctx, path); err != nil {
		return err
	}
	return l.again(ctx, func() error { return os.Rename(path, l.path) })
}

// flush waits for all events so far: the answer of a call follows the events of every earlier
// commit.
func (l *life) flush(ctx context.Context) error {
	_, err := l.q.Reap(ctx)
	return err
}

// lookEvery is the interval of the checks for an empty queue.
const lookEvery = 2 * time.Millisecond

// drain waits until the queue is empty.
func (l *life) drain(ctx context.Context) error {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		if err := l.violation(); err != nil {
			return err
		}
		stats, err := l.q.Stats(ctx)
		if err != nil {
			return err
		}
		if total(stats) == (pawl.Counts{}) {
			return l.flush(ctx)
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// end judges the round.
func (l *life) end(ctx context.Context) error {
	if err := l.judge(); err != nil {
		return err
	}
	if err := l.q.View(ctx, l.judgeEffects); err != nil {
		return err
	}
	return l.q.Check(ctx)
}
