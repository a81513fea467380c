package bolt

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Why returns what keeps a job from running now. It returns [pawl.ErrNotFound] if the job is not in
// the file.
func (r *reader) Why(ctx context.Context, id pawl.ID) ([]pawl.Obstacle, error) {
	f, err := r.facts(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("look for what keeps a job from running: %w", err)
	}
	return f.Obstacles(), nil
}

// Why is like [Reader.Why]. It also says if no worker fetches jobs of that kind.
func (q *Queue) Why(ctx context.Context, id pawl.ID) ([]pawl.Obstacle, error) {
	f, err := q.facts(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("look for what keeps a job from running: %w", err)
	}
	served, need := q.sessions.serve(f.Job.Queue, f.Job.Kind)
	f.Unserved, f.Need = !served, need
	return f.Obstacles(), nil
}

// facts reads what limits a job.
func (r *reader) facts(ctx context.Context, id pawl.ID) (f driver.Facts, err error) {
	err = r.view(ctx, func(s *store) error {
		j, err := s.listed(id)
		if err != nil {
			return err
		}
		at, err := s.where(j.Envelope)
		if err != nil {
			return err
		}
		if f.Job, err = s.complete(j, at, 0); err != nil {
			return err
		}
		if f.Prerequisites, err = s.prerequisites(j.ID); err != nil {
			return err
		}
		n, now := at.line.queue, r.now()
		row, err := s.queue(n)
		if err != nil {
			return err
		}
		counts, err := s.countsOf(n)
		if err != nil {
			return err
		}
		f.Queue = pawl.QueueStats{Name: row.name, Paused: row.paused, Limits: row.limits, Counts: counts, Rests: driver.Rests(row.rests, now)}
		if f.Pooled, err = s.pooled(row.limits.Pool); err != nil {
			return err
		}
		own, _, err := s.keyStats(ownKey(n), row.limits.Rate, 0, now)
		if err != nil {
			return err
		}
		f.QueueNext = own.Next
		if j.Key != "" && row.limits.PerKey() {
			holders, leased := s.keyHolders(n, j.Key)
			if f.Key, _, err = s.keyStats(limitKey(nil, n, j.Key), row.limits.RatePerKey, leased, now); err != nil {
				return err
			}
			f.Key.Holders = holders
		}
		if j.IdempotencyKey != "" && f.Job.State == pawl.Ready {
			effect, err := s.effect(effectKey(nil, j.Envelope))
			f.Holder = effect.holder
			return err
		}
		return nil
	})
	return f, err
}

// keyStats reads the row of a key, given the number of its leased jobs. Ok says whether the row exists.
func (s *store) keyStats(key []byte, rate pawl.Rate, leased int, now time.Time) (k pawl.KeyStats, ok bool, err error) {
	sealed := s.keys.Get(key)
	if sealed == nil {
		return k, false, nil
	}
	row, err := parseKeyRow(key, sealed)
	if err != nil {
		return k, false, fmt.Errorf("row %x of bucket %s: %w", key, bucketKeys, err)
	}
	k = pawl.KeyStats{Key: string(key[5:]), Running: leased, Ready: row.waiting, Blocked: row.waiting, Backlog: row.backlog, Rests: driver.Rests(row.rests, now)}
	k.Next = later(driver.PaceOf(rate).Next(row.tat, now), k.Rests)
	if row.head != nil {
		k.Head = row.head.id
	}
	if row.head != nil && row.head.holds && leased == 0 {
		if j, err := s.record(k.Head); err == nil { // otherwise a later step makes the job dead
			k.Held = j.Death != nil
		}
	}
	for _, l := range row.lanes {
		k.Ready += l.ready
		if l.blocked {
			eachRow(s.delayed, append(blockedPrefix(nil, key), l.at[:]...), func(_, _ []byte) { k.Ready, k.Blocked = k.Ready+1, k.Blocked+1 })
		}
	}
	k.Ready = max(0, k.Ready-leased) // the row counts them too
	return k, true, nil
}

// keyHolders finds the first leased jobs of a key, and counts all of them.
func (s *store) keyHolders(n queueNumber, key string) (ids []pawl.ID, leased int) {
	s.eachKeyedLease(func(id pawl.ID, row leaseRow) {
		if row.line.queue != n || row.key != key {
			return
		}
		if leased++; leased <= pawl.MaxHolders {
			ids = append(ids, id)
		}
	})
	return ids, leased
}

// blockedOf finds blocked jobs of a key, in the order in which they are unblocked: by lane, or by turn.
func (s *store) blockedOf(limit []byte) (ids []pawl.ID) {
	c := s.delayed.Cursor()
	for _, prefix := range [][]byte{blockedPrefix(nil, limit), turnPrefix(nil, limit)} {
		for k, v := c.Seek(prefix); bytes.HasPrefix(k, prefix) && len(ids) < pawl.MaxHolders; k, v = c.Next() {
			if row, err := parseDelayedRow(k, v); err == nil {
				ids = append(ids, row.id)
			}
		}
	}
	return ids
}

// Key reads one key of a queue. It returns [pawl.ErrNotFound] if the queue has no limits per key, or
// no counts of that key.
func (r *reader) Key(ctx context.Context, queue, key string) (k pawl.KeyStats, err error) {
	err = r.view(ctx, func(s *store) error {
		n, row, err := s.keyed(queue)
		if err != nil || row == nil || key == "" || len(key) > pawl.MaxKeyBytes {
			return err
		}
		var ok bool
		holders, leased := s.keyHolders(n, key)
		if k, ok, err = s.keyStats(limitKey(nil, n, key), row.limits.RatePerKey, leased, r.now()); ok {
			k.Holders, k.Waiting = holders, s.blockedOf(limitKey(nil, n, key))
		}
		return err
	})
	if err == nil && k.Key == "" {
		err = driver.NoKey(queue, key)
	}
	return k, err
}

// Keys reads up to max keys of a queue with limits per key, beginning after the key after. An empty after begins at the
// first key. It returns the keys that have ready or leased jobs, or whose rate is partly used up. If the queue has
// [pawl.Limits.MaxWaitingPerKey], it also returns the keys that have delayed jobs. Short keys come first.
func (r *reader) Keys(ctx context.Context, queue, after string, max int) (all []pawl.KeyStats, err error) {
	if err := driver.CheckKeys(after, max); err != nil {
		return nil, err
	}
	err = r.view(ctx, func(s *store) error {
		n, row, err := s.keyed(queue)
		if err != nil || row == nil {
			return err
		}
		prefix, now := binary.BigEndian.AppendUint32(nil, uint32(n)), r.now()
		leased := make(map[string]int)
		s.eachKeyedLease(func(_ pawl.ID, row leaseRow) {
			if row.line.queue == n {
				leased[row.key]++
			}
		})
		c := s.keys.Cursor()
		k, _ := c.Seek(append(limitKey(nil, n, after), 0))
		for ; bytes.HasPrefix(k, prefix) && len(all) < max; k, _ = c.Next() {
			if len(k) < 5 || isOwn(k) {
				continue
			}
			one, _, err := s.keyStats(k, row.limits.RatePerKey, leased[string(k[5:])], now)
			if err != nil {
				return err
			}
			all = append(all, one)
		}
		return nil
	})
	return all, err
}

// keyed returns the row of a queue with limits per key, or nil.
func (s *store) keyed(queue string) (n queueNumber, row *queueRow, err error) {
	n, ok, err := s.number(queue)
	if err != nil || !ok {
		return n, nil, err
	}
	if row, err = s.queue(n); err != nil || !row.limits.PerKey() {
		return n, nil, err
	}
	return n, row, nil
}
