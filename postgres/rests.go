package postgres

import (
	"context"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// The end of a rest is in the row of the limits of a queue, or in the row of the pace of a key. A queue without limits
// gets a row for its rest. A fetch reads both with the limits of its queues. If a fetch of another process has read
// them before the rest begins, it may still start jobs.

const (
	sqlRestQueue = `INSERT INTO pawl.limits AS l (queue, running, running_per_key, starts, per, burst, max_cost, key_starts, key_per, key_burst,
	key_max_cost, in_order, turns, rests)
VALUES ($1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, false, $2) ON CONFLICT (queue) DO UPDATE SET rests = greatest(l.rests, excluded.rests)`
	sqlRestKey = `INSERT INTO pawl.pace AS p (queue, key, tat, rests) VALUES ($1, $2, 0, $3)
ON CONFLICT (queue, key) DO UPDATE SET rests = greatest(p.rests, excluded.rests)`

	// sqlForgetRest removes the row of a queue without limits whose rest is over. The fetch has locked it.
	sqlForgetRest = `DELETE FROM pawl.limits WHERE queue = $1 AND rests <= $2 AND running = 0 AND running_per_key = 0 AND starts = 0
	AND key_starts = 0 AND in_order = 0 AND waiting_per_key = 0 AND pool_running = 0 AND NOT fair AND NOT turns`

	sqlEndQueueRest = `UPDATE pawl.limits SET rests = 0 WHERE queue = $1`
	sqlEndKeyRest   = `UPDATE pawl.pace SET rests = 0 WHERE queue = $1 AND key = $2`
)

// beginRest lets the key or the queue of a leased job rest, if its settlement says so.
func (t *txn) beginRest(j *job, s *pawl.Settlement) error {
	if s.Outcome != pawl.OutcomeThrottle {
		return nil
	}
	if s.Rest == pawl.ThisKey {
		if err := driver.CheckRest(s, j.Key, j.Queue, t.Limits(j.Queue)); err != nil {
			return err
		}
	}
	switch until := nanos(t.Now.Add(max(s.Delay, 0))); {
	case s.Delay <= 0:
	case s.Rest == pawl.ThisQueue:
		t.write(sqlRestQueue, []byte(j.Queue), until)
	default:
		t.write(sqlRestKey, []byte(j.Queue), []byte(j.Key), until)
	}
	return nil
}

// EndRest ends the rest of a key that [pawl.Throttle] began. It does nothing if the key does not rest. [Queue.Resume]
// ends the rest of a queue.
func (q *Queue) EndRest(ctx context.Context, queue, key string) error {
	if err := driver.CheckRested(queue, key); err != nil {
		return err
	}
	return q.submit(ctx, &endRest{queue, key})
}

// endRest is a call of EndRest.
type endRest struct{ queue, key string }

func (op *endRest) needs(*needs) {}

func (op *endRest) apply(t *txn) error {
	t.write(sqlEndKeyRest, []byte(op.queue), []byte(op.key))
	t.news.ready(op.queue)
	t.stir()
	return nil
}
