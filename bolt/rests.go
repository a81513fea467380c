package bolt

import (
	"context"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// A handler can let its key, or its queue, rest for a time. During a rest, no job of the key or queue is leased. The
// row of the key or queue has the end of the rest, so a restart does not end it.
//
// A key that rests has no room, so its jobs are blocked as by a rate. The wake of the key unblocks them. The jobs of a
// queue that rests are not blocked: fetches skip the queue.

// checkRest refuses a throttle if the key or the queue of the lease cannot rest.
func (op *settle) checkRest(t *txn, row leaseRow) error {
	queue, err := t.rowOf(row.line.queue)
	if err != nil {
		return err
	}
	return driver.CheckRest(op.given, t.keyOfLease(op.id, row), queue.name, queue.limits)
}

// keyOfLease returns the key of a leased job, or "" if it has none.
func (t *txn) keyOfLease(id pawl.ID, row leaseRow) string {
	if row.flags&hasKey == 0 || row.key != "" {
		return row.key
	}
	return t.keyNameOf(id)
}

// beginRest lets the key or the queue of a leased job rest as its settlement says. Call it before the end of the lease,
// which would unblock the next job of the key.
func (op *settle) beginRest(t *txn, row leaseRow) {
	until := after(t.now, op.given.Delay).Round(0)
	if op.given.Rest == pawl.ThisQueue {
		queue := t.row(row.line.queue)
		if until.After(later(t.now, queue.rests)) {
			queue.rests, queue.touched, t.changed = until, true, true
		}
		return
	}
	if r, _ := t.keyOf(row.line.queue, t.keyOfLease(op.id, row)); r != nil {
		r.rests = later(r.rests, until)
	}
}

// throttle returns a job to its place in the order.
func (op *settle) throttle(t *txn, j stored) {
	t.rewrite(&j)
	event := op.event(pawl.EventReleased, j.Envelope)
	event.Delay = max(op.given.Delay, 0)
	t.emit(event)
	t.placeReady(j)
}

// EndRest ends the rest of a key that [pawl.Throttle] began. It does nothing if the key does not rest. [Queue.Resume]
// ends the rest of a queue.
func (q *Queue) EndRest(ctx context.Context, queue, key string) error {
	if err := driver.CheckRested(queue, key); err != nil {
		return err
	}
	return q.do(ctx, &endRest{queue, key})
}

// endRest ends the rest of a key.
type endRest struct{ queue, key string }

func (op *endRest) check(*txn) error { return nil }

func (op *endRest) apply(t *txn) {
	n, known, err := t.number(op.queue)
	if !known || err != nil {
		t.fail(err)
		return
	}
	if r, _ := t.keyOf(n, op.key); r != nil && !r.rests.IsZero() {
		r.rests, t.changed = time.Time{}, true
		t.refill(r)
	}
}

// rest is the time in which the rate or the rest of a queue keeps fetches waiting.
type rest struct{ since, until time.Time }

// restingQueue is a queue whose rate or rest keeps a fetch waiting.
type restingQueue struct {
	number queueNumber
	row    *queueRow
	own    *keyRow // nil if its rate does not
}

// until returns when the queue may have a job for a fetch.
func (q *restingQueue) until() (at time.Time) {
	if q.own != nil {
		at = q.own.pace.When(q.own.tat, 1)
	}
	return later(at, q.row.rests)
}

// beginRests records which queues kept fetches waiting because of a rate or a rest. It returns the earlier of due and
// the first end of such a wait.
func (s *scheduler) beginRests(t *txn, due time.Time) time.Time {
	for _, q := range t.resting {
		if s.resting == nil {
			s.resting = make(map[queueNumber]rest)
		}
		s.resting[q.number] = rest{t.now, q.until()}
	}
	t.resting = nil
	for _, r := range s.resting {
		if due.IsZero() || r.until.Before(due) {
			due = r.until
		}
	}
	return due
}

// endRests lets fetches look again at the queues whose rate has room, or whose rest is over. After the clock was set
// back, it lets them look again immediately.
func (s *scheduler) endRests(t *txn) {
	for n, r := range s.resting {
		if !r.until.After(t.now) || t.now.Before(r.since) {
			delete(s.resting, n)
			if _, err := t.rowOf(n); err == nil {
				t.resume(n)
			}
		}
	}
}
