package soak

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
)

var errBoom = errors.New("boom")

// handle is the handler of all jobs. First it records the start of the attempt and compares
// it with the ledger.
func (l *life) handle(ctx context.Context, job *pawl.Job[args]) error {
	n := job.Args.N
	if err := l.start(job); err != nil {
		l.wrong(fmt.Errorf("an attempt of job %d (%s, class %d): %w", n, job.ID, classOf(n), err))
		return nil
	}
	err := l.act(ctx, job)
	if err == nil {
		l.change(n, func(c *cell) { c.returned++ })
	}
	return err
}

// start requires that an attempt may start, and records it.
func (l *life) start(job *pawl.Job[args]) (err error) {
	n := job.Args.N
	switch {
	case job.Args.Round != l.round || n < 0 || n >= len(l.cells):
		return fmt.Errorf("it is of round %d, and this is round %d", job.Args.Round, l.round)
	case job.ID != idOf(l.round, n) || !bytes.Equal(job.Args.Fill, fill(l.round, n)):
		return errors.New("it has another payload than it was given")
	case job.NotBefore.After(time.Now()):
		return fmt.Errorf("it was to wait until %v", job.NotBefore)
	case job.Crashes > l.kills:
		return fmt.Errorf("it counts %d crashes, and %d processes died", job.Crashes, l.kills)
	}
	l.change(n, func(c *cell) {
		if err = l.may(n, *c, job.Attempts); err == nil {
			c.starts++
			c.flags |= running
		}
	})
	return err
}

// may returns the reason why, according to the ledger, an attempt must not start. The
// caller holds mu.
func (l *life) may(n int, c cell, attempts int) error {
	least, most := int(c.failures), int(c.failures)
	if l.kills > 0 { // the last events of a killed process are lost
		most += int(c.cuts)
	}
	if classOf(n) == permanent && c.has(revived) {
		least, most = 0, 0
	}
	switch {
	case !c.has(begun):
		return errors.New("nobody enqueued it")
	case c.has(running):
		return fmt.Errorf("another attempt of it is under way: %+v", c)
	case c.has(done | skipped | deleted):
		return fmt.Errorf("it is over: %+v", c)
	case c.has(died) && !c.has(revived) && classOf(n) != permanent:
		return fmt.Errorf("it is dead: %+v", c)
	case existing(n):
		return errors.New("another job has its unique key")
	case classOf(n) == cancelled || classOf(n) == overdue:
		return errors.New("it was to wait for an hour")
	case attempts < least || attempts > most:
		return fmt.Errorf("it counts %d attempts: %+v", attempts, c)
	}
	if classOf(n) != onePair {
		return nil
	}
	if l.cells[n^1].has(running) {
		return errors.New("its effect is under way in another job")
	}
	if at, ok := l.ended[n&^1]; ok && time.Since(at) < effectTime {
		return fmt.Errorf("its effect took place %v ago", time.Since(at))
	}
	return nil
}

// act does the work of a job's class.
func (l *life) act(ctx context.Context, job *pawl.Job[args]) error {
	n := job.Args.N
	c := l.cell(n)
	switch classOf(n) {
	case slow:
		select {
		case <-time.After(slowness(n)):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	case retried, exhausted:
		if job.Attempts < failures(n) {
			return pawl.RetryAfter(time.Duration(n%5)*time.Millisecond, errBoom)
		}
	case panics:
		if job.Attempts == 0 {
			panic(errBoom)
		}
	case snoozed:
		if c.snoozes == 0 {
			return pawl.Snooze(time.Duration(n%5) * time.Millisecond)
		}
	case permanent:
		if !c.has(revived) {
			return pawl.Permanent(errBoom)
		}
	case stopped:
		if err := l.q.Cancel(ctx, job.ID); err != nil {
			return err
		}
		<-ctx.Done()
		return context.Cause(ctx)
	case inTx:
		err := l.q.Update(ctx, func(tx *bbolt.Tx) error { return errors.Join(errBoom, l.countEffect(tx, n)) })
		switch { // its effect will show whether something was stored
		case err == nil:
			l.wrong(fmt.Errorf("an Update of job %d was answered as done, and its function had failed", n))
		case !errors.Is(err, errBoom):
			return err
		}
		return l.q.Update(ctx, func(tx *bbolt.Tx) error {
			if err := l.countEffect(tx, n); err != nil {
				return err
			}
			return l.q.AckTx(tx, job.Lease)
		})
	}
	return nil
}

// effects is the bucket with the number of each handler's effects.
var effects = []byte("effects of handlers")

func (l *life) countEffect(tx *bbolt.Tx, n int) error {
	b, err := tx.CreateBucketIfNotExists(effects)
	if err != nil {
		return err
	}
	id := idOf(l.round, n)
	count := uint32(1)
	if old := b.Get(id[:]); old != nil {
		count += binary.BigEndian.Uint32(old)
	}
	return b.Put(id[:], binary.BigEndian.AppendUint32(nil, count))
}

// forgetEffects removes the effects of earlier rounds.
func forgetEffects(tx *bbolt.Tx) error {
	if tx.Bucket(effects) == nil {
		return nil
	}
	return tx.DeleteBucket(effects)
}
