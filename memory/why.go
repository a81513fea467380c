package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/core"
)

// Why returns what keeps a job from running now. It returns [pawl.ErrNotFound] if the job is not in
// the queue.
func (q *Queue) Why(ctx context.Context, id pawl.ID) (all []pawl.Obstacle, err error) {
	err = q.look(ctx, func() error {
		j, err := q.get(id)
		if err != nil {
			return fmt.Errorf("look for what keeps a job from running: %w", err)
		}
		l := j.line
		f := driver.Facts{
			Job:       &j.Envelope,
			Queue:     pawl.QueueStats{Name: l.name, Counts: l.counts, Paused: l.paused, Limits: l.limits, Rests: driver.Rests(l.rests[""], q.moves.Now)},
			Pooled:    q.pooled(l.limits.Pool),
			QueueNext: l.pace.Next(l.pace.tats[""], q.moves.Now),

			Prerequisites: q.prerequisites(j),
		}
		if j.Key != "" && l.limits.PerKey() {
			f.Key = q.keyStats(l, j.Key)
		}
		if j.IdempotencyKey != "" && j.State == pawl.Ready && q.isRunning(j) {
			f.Holder = q.leasedWhere(1, func(other *job) bool { return core.EffectName(&other.Envelope) == core.EffectName(&j.Envelope) })[0]
		}
		all = f.Obstacles()
		return nil
	})
	return all, err
}

// leasedWhere returns at most most leased jobs that match.
func (q *Queue) leasedWhere(most int, match func(*job) bool) (ids []pawl.ID) {
	for _, j := range q.leased.jobs {
		if len(ids) < most && match(j) {
			ids = append(ids, j.ID)
		}
	}
	return ids
}

// keyStats counts the jobs of a key.
func (q *Queue) keyStats(l *line, key string) pawl.KeyStats {
	k := pawl.KeyStats{Key: key, Running: l.leased[key], Next: l.keyPace.Next(l.keyPace.tats[key], q.moves.Now)}
	if l.limits.MaxWaitingPerKey > 0 {
		k.Backlog = l.waiting[key]
	}
	if k.Rests = driver.Rests(l.rests[key], q.moves.Now); k.Rests.After(k.Next) {
		k.Next = k.Rests
	}
	if head := l.head(key); head != nil {
		k.Head, k.Held = head.ID, head.State == pawl.Dead
	}
	for _, j := range l.ready.jobs {
		if j.Key == key && !j.waits() {
			k.Ready++
		}
	}
	free := q.unblocked(l)
	for _, j := range l.ready.jobs {
		if j.Key != key || j.waits() || slices.Contains(free, j) {
			continue
		}
		if k.Blocked++; len(k.Waiting) < pawl.MaxHolders {
			k.Waiting = append(k.Waiting, j.ID)
		}
	}
	k.Holders = q.leasedWhere(pawl.MaxHolders, func(j *job) bool { return j.line == l && j.Key == key })
	return k
}

// Key returns one key of a queue. It returns [pawl.ErrNotFound] if the queue has no limits per key, or
// does not know the key.
func (q *Queue) Key(ctx context.Context, queue, key string) (k pawl.KeyStats, err error) {
	err = q.look(ctx, func() error {
		l := q.find(queue)
		if l == nil || !slices.Contains(q.keysOf(l), key) {
			return driver.NoKey(queue, key)
		}
		k = q.keyStats(l, key)
		return nil
	})
	return k, err
}

// Keys returns up to max keys of a queue with limits per key, after a key: "" for the first. It returns
// keys that have ready or leased jobs, keys whose rate is partly used up, and, if the queue has
// [pawl.Limits].MaxWaitingPerKey, keys that have delayed jobs. Short keys come first.
func (q *Queue) Keys(ctx context.Context, queue, after string, max int) (all []pawl.KeyStats, err error) {
	if err := driver.CheckKeys(after, max); err != nil {
		return nil, err
	}
	err = q.look(ctx, func() error {
		l := q.find(queue)
		if l == nil {
			return nil
		}
		for _, key := range q.keysOf(l) {
			if byLength(key, after) > 0 && len(all) < max {
				k := q.keyStats(l, key)
				k.Holders, k.Waiting = nil, nil
				all = append(all, k)
			}
		}
		return nil
	})
	return all, err
}

// keysOf returns the keys of a queue with limits per key, in the order of a list.
func (q *Queue) keysOf(l *line) (keys []string) {
	if !l.limits.PerKey() {
		return nil
	}
	for key := range l.leased {
		keys = append(keys, key)
	}
	if l.limits.MaxWaitingPerKey > 0 {
		for key := range l.waiting {
			keys = append(keys, key)
		}
	}
	for key := range l.order.holders {
		keys = append(keys, key)
	}
	for _, j := range l.ready.jobs {
		if j.Key != "" && !j.waits() {
			keys = append(keys, j.Key)
		}
	}
	for key, tat := range l.keyPace.tats {
		if tat.After(q.moves.Now) {
			keys = append(keys, key)
		}
	}
	for key, until := range l.rests {
		if key != "" && until.After(q.moves.Now) {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, byLength)
	return slices.Compact(keys)
}

func byLength(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) }
