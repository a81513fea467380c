package jetstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/transport"
)

// Stats returns how many jobs each queue has in each state. It asks the server several times, so the counts are not a
// snapshot. A job whose lease expired counts as leased until somebody fetches it.
func (q *Queue) Stats(ctx context.Context) (stats pawl.Stats, err error) {
	if err := q.leases.Ready(ctx); err != nil {
		return stats, err
	}
	count := func(s jetstream.Stream, part string, add func(c *pawl.Counts, n int)) error {
		counts, err := q.subjects(ctx, s, q.opts.Prefix+part+">")
		for subject, n := range counts {
			token, _, _ := strings.Cut(strings.TrimPrefix(subject, q.opts.Prefix+part), ".")
			add(countsOf(&stats, names.Unescape(token)), int(n))
		}
		return err
	}
	err = cmp.Or(
		count(q.stream, ".job.", func(c *pawl.Counts, n int) { c.Ready += n }),
		count(q.stream, ".delayed.", func(c *pawl.Counts, n int) { c.Delayed += n }),
		count(q.dead, ".dead.", func(c *pawl.Counts, n int) { c.Dead += n }),
	)
	if err != nil {
		return pawl.Stats{}, err
	}
	consumers := q.stream.ListConsumers(ctx)
	for info := range consumers.Info() {
		if line, ok := strings.CutPrefix(info.Config.FilterSubject, q.opts.Prefix+".job."); ok {
			token, _, _ := strings.Cut(line, ".")
			c := countsOf(&stats, names.Unescape(token))
			leased := min(info.NumAckPending, c.Ready)
			c.Leased, c.Ready = c.Leased+leased, c.Ready-leased
		}
	}
	if err := consumers.Err(); err != nil {
		return pawl.Stats{}, q.unavailable(err)
	}
	slices.SortFunc(stats.Queues, func(a, b pawl.QueueStats) int { return cmp.Compare(a.Name, b.Name) })
	return stats, nil
}

// countsOf returns the counts of a queue.
func countsOf(stats *pawl.Stats, name string) *pawl.Counts {
	at := slices.IndexFunc(stats.Queues, func(row pawl.QueueStats) bool { return row.Name == name })
	if at < 0 {
		at = len(stats.Queues)
		stats.Queues = append(stats.Queues, pawl.QueueStats{Name: name})
	}
	return &stats.Queues[at].Counts
}

// Dead returns the job of a queue and a kind that has been dead the longest, with its history. It
// returns [pawl.ErrNotFound] if there is none.
func (q *Queue) Dead(ctx context.Context, queue, kind string) (*pawl.Envelope, error) {
	e, _, _, err := q.firstDead(ctx, queue, kind)
	return e, err
}

// firstDead is Dead with the message and the history.
func (q *Queue) firstDead(ctx context.Context, queue, kind string) (*pawl.Envelope, []pawl.Failure, *jetstream.RawStreamMsg, error) {
	if err := cmp.Or(driver.CheckQueue(queue), driver.CheckKind(kind), q.leases.Ready(ctx)); err != nil {
		return nil, nil, nil, err
	}
	m, err := q.dead.GetMsg(ctx, 1, jetstream.WithGetMsgSubject(q.opts.Prefix+".dead."+q.line(queue, kind)+".*"))
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return nil, nil, nil, fmt.Errorf("dead job of kind %q in queue %q: %w", kind, queue, pawl.ErrNotFound)
	case err != nil:
		return nil, nil, nil, q.unavailable(err)
	}
	e, history, err := transport.ParseBody(m.Data)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("message %d of the dead jobs: %w", m.Sequence, err)
	}
	e.State, e.History, e.Seq = pawl.Dead, history, m.Sequence
	return e, history, m, nil
}

// RetryDead makes up to most dead jobs of a queue and a kind ready, and returns how many. It starts with the job that
// has been dead the longest. Attempts start again from 0. If the server fails meanwhile, a job may be both ready and
// dead. The next RetryDead then makes it ready once more, unless it comes within the stream's duplicate window.
func (q *Queue) RetryDead(ctx context.Context, queue, kind string, most int) (retried int, err error) {
	for retried < most {
		e, history, m, err := q.firstDead(ctx, queue, kind)
		switch {
		case errors.Is(err, pawl.ErrNotFound):
			return retried, nil
		case err != nil:
			return retried, err
		}
		if err := q.leases.Begin(ctx); err != nil {
			return retried, err
		}
		e.State, e.Death, e.Attempts, e.BackoffSince = pawl.Ready, nil, 0, time.Time{}
		body := transport.AppendBody(e, history, q.leases.MaxBody)
		_, _, err = q.stored(q.exchange(q.message(e, body, "-dead-"+strconv.FormatUint(m.Sequence, 10)))[0])
		if err == nil {
			err = q.dead.DeleteMsg(context.WithoutCancel(ctx), m.Sequence)
			if errors.Is(err, jetstream.ErrMsgNotFound) {
				err = nil // somebody else retried it too, and the server has stored one of the two
			} else if err != nil {
				err = fmt.Errorf("%w: job %s: %w", pawl.ErrUnknownOutcome, e.ID, err)
			}
		}
		q.leases.End()
		if err != nil {
			return retried, err
		}
		retried++
	}
	return retried, nil
}
