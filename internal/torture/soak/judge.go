package soak

import (
	"encoding/binary"
	"errors"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// judge requires that every job of the round had its expected end. The queue is empty, so a
// job without an end is lost.
func (l *life) judge() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for n, c := range l.cells {
		if err := l.judgeJob(n, c); err != nil {
			return fmt.Errorf("job %d, of class %d, after %d kills: %w: %+v", n, classOf(n), l.kills, err, c)
		}
	}
	stored := 0
	for n := range l.cells {
		if !existing(n) {
			stored++
		}
	}
	if enqueued := l.counts[pawl.EventEnqueued]; l.kills == 0 && enqueued != stored {
		return fmt.Errorf("%d jobs were stored, and %d events reported that", stored, enqueued)
	}
	return errors.Join(l.err)
}

// judgeJob is judge for one job. It checks less after kills, because the last events of a
// killed process are lost. The caller holds mu.
func (l *life) judgeJob(n int, c cell) error {
	known := l.kills == 0
	switch {
	case !c.has(begun):
		return errors.New("nobody stored it")
	case c.has(doubted) && !known:
		if stored, err := l.wasStored(n); err != nil || !stored {
			return err
		}
	case !c.has(accepted):
		return errors.New("its storing was never answered")
	case c.has(running):
		return errors.New("an attempt of it did not end")
	case c.starts != c.settled+c.cuts:
		return errors.New("its attempts are not the ones that ended")
	}
	switch classOf(n) {
	case cancelled, overdue:
		return unless(c.starts == 0 && (c.has(deleted) || !known), "it had to die without an attempt")
	case stopped:
		return unless(c.starts > 0 && (c.has(deleted) || !known), "it had to die in its attempt")
	case exhausted:
		return unless(c.returned == 0 && (!known || c.has(deleted) && int(c.failures) == exhaustedRetries), "it had to die of its failures")
	case uniquePair:
		if existing(n) {
			return unless(c.starts == 0, "it was not stored")
		}
	case onePair:
		other := l.cells[n^1]
		if c.has(skipped) || !known && c.returned == 0 {
			c = other
		}
	}
	switch {
	case classOf(n) == inTx && !known: // its effect shows whether it was done
		return unless(c.starts > 0, "it is lost")
	case !c.has(done) && (known || c.returned == 0):
		return errors.New("it is lost")
	case !known || classOf(n) == onePair:
		return nil
	}
	snoozes := uint8(0)
	if classOf(n) == snoozed {
		snoozes = 1
	}
	return unless(int(c.failures) == failures(n) && c.snoozes == snoozes && c.has(died) == (classOf(n) == permanent),
		"it did not fail as expected")
}

func unless(ok bool, text string) error {
	if ok {
		return nil
	}
	return errors.New(text)
}

// wasStored reports whether a kill left a job stored. All of its batch was stored, or none.
// The caller holds mu.
func (l *life) wasStored(n int) (bool, error) {
	from, to := batchOf(l.round, n)
	stored, not, one := 0, 0, 0
	for n := from; n < to; n++ {
		c := l.cells[n]
		switch {
		case existing(n):
		case c.starts > 0 || c.has(done|skipped|died|deleted):
			stored++
		case classOf(n) == onePair && l.cells[n^1].returned > 0: // the kill came before the event of the skip
		default:
			not, one = not+1, n
		}
	}
	if stored > 0 && not > 0 {
		return false, fmt.Errorf("of its batch %d were stored and %d were not, as job %d, of class %d: %+v", stored, not, one, classOf(one), l.cells[one])
	}
	return stored > 0, nil
}

// judgeEffects requires one effect for each job that its handler acked in the same
// transaction.
func (l *life) judgeEffects(tx *bbolt.Tx) error {
	b := tx.Bucket(effects)
	for n := range l.cells {
		if classOf(n) != inTx {
			continue
		}
		id, count := idOf(l.round, n), uint32(0)
		if b != nil {
			if v := b.Get(id[:]); v != nil {
				count = binary.BigEndian.Uint32(v)
			}
		}
		c := l.cell(n)
		if want := c.starts > 0; count > 1 || want != (count == 1) {
			return fmt.Errorf("the effect of job %d took place %d times: %+v", n, count, c)
		}
	}
	return nil
}

// total returns the counts of all queues.
func total(stats pawl.Stats) (all pawl.Counts) {
	for _, q := range stats.Queues {
		driver.AddCounts(&all, q.Counts)
	}
	return all
}

// tally requires that the queue has exactly the stored jobs without an end. No call is in
// progress.
func (l *life) tally(stats pawl.Stats) error {
	have := total(stats)
	l.mu.Lock()
	defer l.mu.Unlock()
	want := 0
	for n, c := range l.cells {
		if c.has(accepted) && !existing(n) && !c.has(done|skipped|deleted) {
			want++
		}
	}
	switch {
	case have.Leased != 0:
		return fmt.Errorf("%d jobs are leased, and no worker is at work", have.Leased)
	case l.kills > 0: // the last events are lost
		return nil
	case have.Ready+have.Delayed+have.Dead != want: // jobs still move between these states as time passes
		return fmt.Errorf("%d jobs are not done, and the queue counts %+v", want, have)
	}
	return nil
}
