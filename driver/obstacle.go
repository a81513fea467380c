package driver

import (
	"fmt"
	"time"

	"github.com/gopawl/pawl"
)

// Facts are what a queue knows about a job and about what limits it, at one moment.
type Facts struct {
	Job       *pawl.Envelope  // with its state
	Queue     pawl.QueueStats // of the job; its counts, pause, and limits
	QueueNext time.Time       // when the rate of the queue lets the next job start; zero for now
	Pooled    int             // running jobs of the pool of the queue; counted only if it has one
	Key       pawl.KeyStats   // of the job
	Holder    pawl.ID         // the leased job with its idempotency key; zero if there is none
	Unserved  bool            // nobody fetches its kind from its queue
	Need      string          // of the kind, for which each worker has a closed gate; "" for none

	Prerequisites []Prerequisite // that are not met
}

// Obstacles returns what keeps a job from running.
func (f *Facts) Obstacles() (all []pawl.Obstacle) {
	e := f.Job
	add := func(o pawl.Obstacle) {
		o.Queue, o.Kind = e.Queue, e.Kind
		all = append(all, o)
	}
	switch e.State {
	case pawl.Leased:
		add(pawl.Obstacle{What: pawl.IsRunning, Until: e.LeasedSince})
		return all
	case pawl.Completed:
		add(pawl.Obstacle{What: pawl.IsCompleted, Until: e.Completed})
		return all
	case pawl.Dead:
		o := pawl.Obstacle{What: pawl.IsDead}
		if e.Death != nil {
			o.Until, o.Reason = e.Death.At, e.Death.Reason
		}
		add(o)
		return all
	case pawl.Delayed:
		add(pawl.Obstacle{What: pawl.ByDelay, Until: e.NotBefore})
	}
	for _, o := range prerequisites(f.Prerequisites) {
		add(o)
	}
	if f.Queue.Paused {
		add(pawl.Obstacle{What: pawl.ByPause})
	}
	switch {
	case f.Need != "":
		add(pawl.Obstacle{What: pawl.ByNeed, Need: f.Need})
	case f.Unserved:
		add(pawl.Obstacle{What: pawl.ByNoWorker})
	}
	if e.State != pawl.Ready { // limits count only once it is due
		return all
	}
	limits := f.Queue.Limits
	if n := limits.Running; n > 0 && f.Queue.Leased >= n {
		add(pawl.Obstacle{What: pawl.ByQueue, Running: f.Queue.Leased, Limit: n})
	}
	if p := limits.Pool; p.Running > 0 && f.Pooled >= p.Running {
		add(pawl.Obstacle{What: pawl.ByPool, Pool: p.Name, Running: f.Pooled, Limit: p.Running})
	}
	if !f.Queue.Rests.IsZero() {
		add(pawl.Obstacle{What: pawl.ByQueueRest, Until: f.Queue.Rests})
	}
	if !f.QueueNext.IsZero() {
		add(pawl.Obstacle{What: pawl.ByQueueRate, Until: f.QueueNext})
	}
	if n := limits.RunningPerKey; n > 0 && f.Key.Running >= n {
		add(pawl.Obstacle{What: pawl.ByKey, Key: e.Key, Running: f.Key.Running, Limit: n, Holders: f.Key.Holders})
	}
	if head := f.Key.Head; !head.IsZero() && head != e.ID {
		o := pawl.Obstacle{What: pawl.ByTurn, Key: e.Key, Holders: []pawl.ID{head}}
		if f.Key.Held {
			o.What = pawl.ByHeldKey
		}
		add(o)
	}
	if !f.Key.Rests.IsZero() {
		add(pawl.Obstacle{What: pawl.ByKeyRest, Key: e.Key, Until: f.Key.Rests})
	}
	if f.Key.Next.After(f.Key.Rests) {
		add(pawl.Obstacle{What: pawl.ByKeyRate, Key: e.Key, Until: f.Key.Next})
	}
	if !f.Holder.IsZero() {
		add(pawl.Obstacle{What: pawl.ByEffect, Holders: []pawl.ID{f.Holder}})
	}
	return all
}

// prerequisites returns one obstacle for each kind of unmet prerequisite.
func prerequisites(all []Prerequisite) (obstacles []pawl.Obstacle) {
	holders := make(map[pawl.ObstacleKind][]pawl.ID)
	for _, p := range all {
		what := pawl.ByJobs
		switch p.State {
		case "":
			what = pawl.ByGoneJobs
		case pawl.Dead:
			what = pawl.ByDeadJobs
		}
		holders[what] = append(holders[what], p.ID)
	}
	for _, what := range []pawl.ObstacleKind{pawl.ByJobs, pawl.ByDeadJobs, pawl.ByGoneJobs} {
		if ids := holders[what]; ids != nil {
			obstacles = append(obstacles, pawl.Obstacle{What: what, Holders: ids[:min(len(ids), pawl.MaxHolders)]})
		}
	}
	return obstacles
}

// Next returns when the next job may start, or zero if one may start now.
func (p Pace) Next(tat, now time.Time) time.Time {
	if !p.Limits() {
		return time.Time{}
	}
	if last := p.Last(now); tat.After(last) {
		tat = last
	}
	if p.Left(tat, now) > 0 {
		return time.Time{}
	}
	return p.When(tat, 1)
}

// Rests returns until when something rests, or zero if that is over.
func Rests(until, now time.Time) time.Time {
	if !until.After(now) {
		return time.Time{}
	}
	return until
}

// NoKey returns the error for a key that a queue does not know.
func NoKey(queue, key string) error {
	return fmt.Errorf("key %q of queue %q: %w: none of its jobs is ready or leased, or the queue has no limits per key", key, queue, absent("key"))
}

// NoGroup returns the error for a group that nobody made, or that is no longer kept.
func NoGroup(name string) error { return fmt.Errorf("group %q: %w", name, absent("group")) }

// absent is the [pawl.ErrNotFound] of something other than a job.
type absent string

func (a absent) Error() string { return "no such " + string(a) }

func (absent) Unwrap() error { return pawl.ErrNotFound }
