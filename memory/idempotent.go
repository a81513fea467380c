package memory

import (
	"cmp"
	"maps"
	"time"

	"github.com/gopawl/pawl"
)

// effect is what an idempotency key names, over all queues. While a job of it is
// leased no other is, and for some time after a success no other runs at all.
type effect struct{ kind, key string }

func effectOf(j *job) effect { return effect{j.Kind, j.IdempotencyKey} }

// isRunning reports whether another job of the same effect is leased.
func (q *Queue) isRunning(j *job) bool { return q.running[effectOf(j)] }

// isDone reports whether the effect of a job is there already.
func (q *Queue) isDone(j *job) bool { return q.effects[effectOf(j)].After(q.now) }

// run notes that a job with an idempotency key is leased.
func (q *Queue) run(j *job) {
	if j.IdempotencyKey != "" {
		q.running[effectOf(j)] = true
	}
}

// succeed notes that the effect of a job is done.
func (q *Queue) succeed(j *job) {
	if j.IdempotencyKey == "" {
		return
	}
	q.effects[effectOf(j)] = q.now.Add(cmp.Or(j.IdempotencyTTL, pawl.DefaultIdempotencyTTL))
	if len(q.effects) >= q.sweepAt {
		maps.DeleteFunc(q.effects, func(_ effect, until time.Time) bool { return !until.After(q.now) })
		q.sweepAt = max(1000, 2*len(q.effects))
	}
}

// skip ends a ready job without a run, since its effect is done.
func (q *Queue) skip(j *job) {
	q.take(j)
	q.complete(j)
	q.nextTurn = q.nextTurn || j.line.inOrder(j)
	q.emit(j, pawl.Event{Type: pawl.EventSkipped})
}
