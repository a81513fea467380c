package memory

import "github.com/gopawl/pawl/internal/core"

// isRunning reports whether another job with the same effect is leased.
func (q *Queue) isRunning(j *job) bool { return q.running[core.EffectName(&j.Envelope)] }

// isDone reports whether the effect of a job is already done.
func (q *Queue) isDone(j *job) bool {
	return q.effects[core.EffectName(&j.Envelope)].After(q.moves.Now)
}

// run notes that a job with an idempotency key is leased.
func (q *Queue) run(j *job) {
	if j.IdempotencyKey != "" {
		q.running[core.EffectName(&j.Envelope)] = true
	}
}

// skip ends a ready job without an attempt, since its effect is done.
func (q *Queue) skip(j *job) {
	q.moves.Skip(j)
	q.nextTurn = q.nextTurn || j.line.inOrder(j)
}
