package pawl

import (
	"fmt"
	"strings"
	"time"
)

// Obstacle is one thing that keeps a job from running now. A job without an obstacle waits for its
// turn.
type Obstacle struct {
	What ObstacleKind

	Queue string // of the job
	Kind  string // of the job
	Key   string // of the job, for ByKey, ByTurn, ByHeldKey, ByKeyRate, and ByKeyRest

	Until   time.Time // when it ends by itself, or since when the job is running, dead, or completed; zero if unknown
	Running int       // jobs that count for the limit, for ByQueue, ByPool, and ByKey
	Limit   int       // how many of them may run
	Holders []ID      // some of the jobs that it waits for, at most MaxHolders; for ByKey, ByTurn, ByHeldKey, ByEffect, and prerequisites
	Reason  Reason    // of a dead job
	Need    string    // of the kind, for ByNeed
	Pool    string    // of the queue, for ByPool
}

// ObstacleKind says what keeps a job from running.
type ObstacleKind string

// The kinds of obstacles.
const (
	IsRunning   ObstacleKind = "running"    // it runs already
	IsDead      ObstacleKind = "dead"       // it does not run again unless somebody retries it
	IsCompleted ObstacleKind = "completed"  // it has succeeded
	ByDelay     ObstacleKind = "delay"      // it is delayed, or waits for its retry
	ByStop      ObstacleKind = "stopped"    // no process has the queue open
	ByPause     ObstacleKind = "paused"     // its queue is paused
	ByNoWorker  ObstacleKind = "no_worker"  // nobody fetches its kind from its queue
	ByNeed      ObstacleKind = "need"       // the workers of its kind have a closed gate, see [Needs]
	ByQueue     ObstacleKind = "queue"      // its queue is at Limits.Running
	ByPool      ObstacleKind = "pool"       // the pool of its queue is full, see Limits.Pool
	ByQueueRate ObstacleKind = "queue_rate" // its queue is at Limits.Rate
	ByKey       ObstacleKind = "key"        // its key is at Limits.RunningPerKey
	ByTurn      ObstacleKind = "turn"       // another job of its key goes first, see Limits.InOrder
	ByHeldKey   ObstacleKind = "held_key"   // a dead job holds its key, see OrderHold
	ByKeyRate   ObstacleKind = "key_rate"   // its key is at Limits.RatePerKey
	ByQueueRest ObstacleKind = "queue_rest" // its queue rests, see [Throttle]
	ByKeyRest   ObstacleKind = "key_rest"   // its key rests
	ByEffect    ObstacleKind = "effect"     // a job with the same idempotency key runs
	ByJobs      ObstacleKind = "jobs"       // jobs that it waits for have not ended, see [After]
	ByDeadJobs  ObstacleKind = "dead_jobs"  // jobs that it waits for are dead
	ByGoneJobs  ObstacleKind = "gone_jobs"  // jobs that it waits for are gone without a success
)

// MaxHolders is the most jobs that an [Obstacle] or a [KeyStats] names.
const MaxHolders = 10

// String describes the obstacle in one line.
func (o Obstacle) String() string {
	switch until := o.Until.UTC().Format(time.RFC3339); o.What {
	case IsRunning:
		return "it runs since " + until
	case IsDead:
		return fmt.Sprintf("it is dead since %s (%s), until somebody retries it", until, o.Reason)
	case IsCompleted:
		return "it completed at " + until
	case ByDelay:
		return "it is delayed until " + until
	case ByStop:
		return "no process has the queue open"
	case ByPause:
		return fmt.Sprintf("queue %q is paused, until somebody resumes it", o.Queue)
	case ByNoWorker:
		return fmt.Sprintf("nobody fetches jobs of kind %q from queue %q", o.Kind, o.Queue)
	case ByNeed:
		return fmt.Sprintf("jobs of kind %q need %q, whose gate is closed", o.Kind, o.Need)
	case ByQueue:
		return fmt.Sprintf("queue %q has %d of %d jobs running", o.Queue, o.Running, o.Limit)
	case ByPool:
		return fmt.Sprintf("pool %q is full: %d of %d jobs of its queues run", o.Pool, o.Running, o.Limit)
	case ByQueueRate:
		return fmt.Sprintf("the rate of queue %q lets its next job start at %s", o.Queue, until)
	case ByKey:
		return fmt.Sprintf("key %q has %d of %d jobs running%s", o.Key, o.Running, o.Limit, holders(o.Holders))
	case ByTurn:
		return fmt.Sprintf("another job of key %q goes first%s", o.Key, holders(o.Holders))
	case ByHeldKey:
		return fmt.Sprintf("a dead job holds key %q, until somebody retries it, deletes it, or releases the key%s", o.Key, holders(o.Holders))
	case ByKeyRate:
		return fmt.Sprintf("the rate of key %q lets its next job start at %s", o.Key, until)
	case ByQueueRest:
		return fmt.Sprintf("queue %q rests until %s, or until somebody resumes it", o.Queue, until)
	case ByKeyRest:
		return fmt.Sprintf("key %q rests until %s, or until somebody releases it", o.Key, until)
	case ByEffect:
		return "a job with the same idempotency key is running" + holders(o.Holders)
	case ByJobs:
		return "it waits for jobs that have not ended" + holders(o.Holders)
	case ByDeadJobs:
		return "it waits for jobs that are dead, until somebody retries them" + holders(o.Holders)
	case ByGoneJobs:
		return "it waits for jobs that are gone without a success, until somebody cancels it" + holders(o.Holders)
	}
	return string(o.What)
}

func holders(ids []ID) string {
	if len(ids) == 0 {
		return ""
	}
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = id.String()
	}
	return ": " + strings.Join(texts, ", ")
}

// KeyStats is one [Key] of a queue at one moment.
type KeyStats struct {
	Key     string
	Running int       // its leased jobs
	Ready   int       // its ready jobs, blocked ones included
	Blocked int       // its jobs that limits keep from running, as in [Counts].Blocked
	Backlog int       // its ready and delayed jobs, which Limits.MaxWaitingPerKey bounds; 0 if that is not set
	Next    time.Time // when its rate, or the end of its rest, lets the next job start; zero if it may now
	Rests   time.Time // until when no job of it starts, see [Throttle]; zero if it does not rest
	Holders []ID      // some of its leased jobs, at most MaxHolders; a list of keys has none
	Waiting []ID      // some of its blocked jobs, at most MaxHolders; a list of keys has none
	Held    bool      // its Head is dead and holds it, so that no job of the key runs: see [OrderHold]
	Head    ID        // the job whose turn it is, with Limits.InOrder: it runs next, runs, or holds the key; zero if none
}
