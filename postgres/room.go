package postgres

import (
	"context"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// room is how many more jobs of a queue with limits may be leased.
type room struct {
	queue         string
	limits        pawl.Limits
	oldest        time.Time // due time of the oldest head of a key that was read
	perKey        int       // how many jobs of a key run at a time; 0 for no limit
	pace, keyPace driver.Pace
	now           time.Time
	leased        int                  // jobs of the queue
	byKey         map[string]int       // leased jobs, by key
	tats          map[string]time.Time // for the keys, and for the queue under the empty key
	rests         map[string]time.Time // until when the keys and the queue rest
	started       map[string]bool      // which of these times changed
	pool          *poolRoom            // of the queue; nil for none
}

func newRoom(queue string, l pawl.Limits, now time.Time) *room {
	perKey := l.RunningPerKey
	if l.InOrder != pawl.OrderNone {
		perKey = 1
	}
	return &room{queue: queue, limits: l, perKey: perKey, pace: driver.PaceOf(l.Rate), keyPace: driver.PaceOf(l.RatePerKey), now: now,
		byKey: make(map[string]int), tats: make(map[string]time.Time), rests: make(map[string]time.Time), started: make(map[string]bool)}
}

// paceLeft returns how many jobs of a key may start now. If the clock was set back, a rate continues from now.
func (r *room) paceLeft(p driver.Pace, key string) int {
	if !p.Limits() {
		return math.MaxInt
	}
	tat := r.tats[key]
	if last := p.Last(r.now); tat.After(last) {
		tat = last
	}
	return p.Left(tat, r.now)
}

// left returns how many jobs of the queue may be leased.
func (r *room) left() int {
	left := r.ownLeft()
	if r.pool != nil && left > 0 {
		left = min(left, r.pool.left(r.queue, r.now))
	}
	return left
}

// ownLeft returns how many jobs of the queue may be leased under its own limits.
func (r *room) ownLeft() int {
	if r.rests[""].After(r.now) {
		return 0
	}
	left := r.paceLeft(r.pace, "")
	if r.limits.Running > 0 {
		left = min(left, max(0, r.limits.Running-r.leased))
	}
	return left
}

// leftOf returns how many jobs of a key may be leased under the limits of keys.
func (r *room) leftOf(key string) int {
	if key == "" {
		return math.MaxInt
	}
	if r.rests[key].After(r.now) {
		return 0
	}
	left := r.paceLeft(r.keyPace, key)
	if r.perKey > 0 {
		left = min(left, max(0, r.perKey-r.byKey[key]))
	}
	return left
}

// lease counts a job that is leased.
func (r *room) lease(key string, cost int) {
	r.leased++
	if r.pool != nil {
		r.pool.leased++
		r.pool.queues[r.queue].served = true
	}
	r.start(r.pace, "", cost)
	if key != "" {
		r.byKey[key]++
		r.start(r.keyPace, key, cost)
	}
}

func (r *room) start(p driver.Pace, key string, cost int) {
	if !p.Limits() {
		return
	}
	tat := r.tats[key]
	if last := p.Last(r.now); tat.After(last) {
		tat = last
	}
	r.tats[key], r.started[key] = p.Start(tat, r.now, cost), true
}

// full returns the keys without room for another lease.
func (r *room) full() (keys []string) {
	for key := range r.byKey {
		if r.leftOf(key) == 0 {
			keys = append(keys, key)
		}
	}
	for key := range r.tats {
		if r.byKey[key] == 0 && r.leftOf(key) == 0 {
			keys = append(keys, key)
		}
	}
	for key := range r.rests {
		if _, listed := r.tats[key]; !listed && r.byKey[key] == 0 && r.leftOf(key) == 0 {
			keys = append(keys, key)
		}
	}
	return keys
}

// next returns when a used-up rate, or the end of a rest, lets one more job start. It is zero if there is neither.
func (r *room) next() (next time.Time) {
	for key := range r.tats {
		next = earlier(next, r.nextOf(key))
	}
	for key := range r.rests {
		next = earlier(next, r.nextOf(key))
	}
	if r.pool != nil {
		next = earlier(next, r.pool.next(r.queue, r.now))
	}
	return next
}

// nextOf returns when the rate and the rest of a key, or of the queue under the empty key, let one more job start, zero
// for now.
func (r *room) nextOf(key string) time.Time {
	p := r.pace
	if key != "" {
		p = r.keyPace
	}
	next := p.Next(r.tats[key], r.now)
	if rests := driver.Rests(r.rests[key], r.now); rests.After(next) {
		return rests
	}
	return next
}

// earlier returns the earlier of two times, where zero stands for never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// batcher is a transaction.
type batcher interface {
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}
