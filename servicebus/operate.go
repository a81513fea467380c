package servicebus

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/transport"
)

// Stats returns how many jobs each queue has in each state, of the kinds that this process has enqueued or fetched. It
// reads every message, so it is slow for long queues, and the counts are not a snapshot. The service does not show
// which messages are leased. A job counts as leased if this process has it, and as ready if another process has it.
func (q *Queue) Stats(ctx context.Context) (stats pawl.Stats, err error) {
	if err := q.leases.Ready(ctx); err != nil {
		return stats, err
	}
	q.mu.Lock()
	lines := make(map[string]lineName, len(q.lines))
	for line, name := range q.lines {
		lines[line] = name
	}
	q.mu.Unlock()
	held := make(map[string]map[int64]bool) // by line
	for _, m := range q.leases.Messages() {
		if held[m.line] == nil {
			held[m.line] = make(map[int64]bool)
		}
		held[m.line][m.seq] = true
	}
	by := make(map[string]*pawl.Counts)
	for line, name := range lines {
		c := by[name.queue]
		if c == nil {
			c = new(pawl.Counts)
			by[name.queue] = c
		}
		err := cmp.Or(q.look(ctx, line, func(m *azservicebus.ReceivedMessage) bool {
			switch {
			case m.State == azservicebus.MessageStateScheduled:
				c.Delayed++
			case m.SequenceNumber != nil && held[line][*m.SequenceNumber]:
				c.Leased++
			default:
				c.Ready++
			}
			return true
		}), q.look(ctx, line+deadQueue, func(*azservicebus.ReceivedMessage) bool {
			c.Dead++
			return true
		}))
		if err != nil {
			return pawl.Stats{}, err
		}
	}
	for name, c := range by {
		stats.Queues = append(stats.Queues, pawl.QueueStats{Name: name, Counts: *c})
	}
	slices.SortFunc(stats.Queues, func(a, b pawl.QueueStats) int { return cmp.Compare(a.Name, b.Name) })
	return stats, nil
}

// Dead returns the job of a queue and a kind that has been dead the longest, with its history. It
// returns [pawl.ErrNotFound] if there is none.
func (q *Queue) Dead(ctx context.Context, queue, kind string) (e *pawl.Envelope, err error) {
	if err := cmp.Or(driver.CheckQueue(queue), driver.CheckKind(kind), q.leases.Ready(ctx)); err != nil {
		return nil, err
	}
	err = q.look(ctx, EntityName(q.opts.Prefix, queue, kind)+deadQueue, func(m *azservicebus.ReceivedMessage) bool {
		e, _, _ = parseDead(m)
		return e == nil
	})
	switch {
	case err != nil:
		return nil, err
	case e == nil:
		return nil, fmt.Errorf("dead job of kind %q in queue %q: %w", kind, queue, pawl.ErrNotFound)
	}
	return e, nil
}

// parseDead reads a message of a dead-letter queue.
func parseDead(m *azservicebus.ReceivedMessage) (*pawl.Envelope, []pawl.Failure, error) {
	e, history, err := transport.ParseBody(m.Body)
	if err != nil {
		return nil, nil, err
	}
	payload := e.Payload
	if b, ok := m.ApplicationProperties[deadJob].([]byte); ok {
		if e, history, err = transport.ParseBody(b); err != nil {
			return nil, nil, err
		}
		e.Payload = payload
	}
	if e.Death == nil { // the service moved it, or the job had no room in a property
		e.Death = &pawl.Death{Reason: pawl.ReasonPoison}
		if m.DeadLetterReason != nil && *m.DeadLetterReason != deliveredTooOften {
			e.Death.Reason = pawl.Reason(*m.DeadLetterReason)
		}
		if m.EnqueuedTime != nil {
			e.Death.At = *m.EnqueuedTime
		}
		if m.DeadLetterErrorDescription != nil {
			history = append(history, pawl.Failure{Attempt: e.Attempts, At: e.Death.At, Error: *m.DeadLetterErrorDescription})
		}
	}
	e.State, e.History = pawl.Dead, history
	if m.SequenceNumber != nil {
		e.Seq = uint64(*m.SequenceNumber)
	}
	return e, history, nil
}

// deliveredTooOften is the reason of the service for a message that reached the maximum delivery count of its queue.
const deliveredTooOften = "MaxDeliveryCountExceeded"

// RetryDead makes up to most dead jobs of a queue and a kind ready, and returns how many. It starts with the job that
// has been dead the longest. Attempts start again from 0. If the service or the process fails meanwhile, a job may be
// both ready and dead. The next RetryDead then makes it ready once more.
func (q *Queue) RetryDead(ctx context.Context, queue, kind string, most int) (retried int, err error) {
	if err := cmp.Or(driver.CheckQueue(queue), driver.CheckKind(kind), q.leases.Begin(ctx)); err != nil {
		return 0, err
	}
	defer q.leases.End()
	var passed []received // which are no jobs; they stay leased until the end, so the others come
	defer func() {
		each(passed, func(_ int, m received) {
			_ = q.settleOn(m, func(ctx context.Context, r *receiver, msg *azservicebus.ReceivedMessage) error {
				return r.AbandonMessage(ctx, msg, nil)
			})
		})
	}()
	line := EntityName(q.opts.Prefix, queue, kind) + deadQueue
	for retried < most && ctx.Err() == nil {
		got, _, err := q.receiveMessages(ctx, line, 1, probe)
		if err == nil && len(got) == 0 {
			var left int
			err = q.look(ctx, line, func(*azservicebus.ReceivedMessage) bool { left++; return left <= len(passed) })
			if err == nil && left > len(passed) {
				got, _, err = q.receiveMessages(ctx, line, 1, proof)
			}
		}
		if err != nil || len(got) == 0 {
			return retried, err
		}
		m := got[0]
		e, history, unreadable := parseDead(m.msg)
		if unreadable != nil {
			passed = append(passed, m)
			continue
		}
		e.State, e.Death, e.Attempts, e.BackoffSince, e.History = pawl.Ready, nil, 0, time.Time{}, nil
		body := transport.AppendBody(e, history, q.leases.MaxBody)
		err = q.send(e, body, e.ID.String()+"-dead-"+strconv.FormatInt(m.seq, 10))
		if err == nil {
			err = q.complete(m)
		}
		if err != nil {
			return retried, fmt.Errorf("job %s: %w", e.ID, err)
		}
		retried++
	}
	return retried, nil
}
