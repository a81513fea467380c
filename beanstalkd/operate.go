package beanstalkd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/transport"
)

// Stats returns how many jobs each queue has in each state. It counts one tube after another, so the
// counts are not a snapshot.
func (q *Queue) Stats(ctx context.Context) (stats pawl.Stats, err error) {
	if err := q.leases.Ready(ctx); err != nil {
		return stats, err
	}
	tubes, err := q.tubes(ctx, "")
	if err != nil {
		return stats, err
	}
	counts, err := q.count(ctx, tubes)
	if err != nil {
		return stats, err
	}
	for i, tube := range tubes {
		name, _, _ := q.parseTube(tube)
		at := slices.IndexFunc(stats.Queues, func(row pawl.QueueStats) bool { return row.Name == name })
		if at < 0 {
			at = len(stats.Queues)
			stats.Queues = append(stats.Queues, pawl.QueueStats{Name: name})
		}
		driver.AddCounts(&stats.Queues[at].Counts, counts[i])
	}
	return stats, nil
}

// tubes returns the tubes of a queue, or of all with "", as the server lists them.
func (q *Queue) tubes(ctx context.Context, queue string) (tubes []string, err error) {
	c, err := q.putter(ctx)
	if err != nil {
		return nil, err
	}
	var f found
	if _, err := c.exchange(0, lookUp(&f, "list-tubes")); err != nil {
		return nil, q.unavailable(err)
	}
	for line := range strings.Lines(string(f.body)) {
		tube := strings.TrimSpace(strings.TrimPrefix(line, "- "))
		if name, _, ok := q.parseTube(tube); ok && (queue == "" || name == queue) {
			tubes = append(tubes, tube)
		}
	}
	return tubes, nil
}

// count returns the counts of tubes. One that the server does not have is empty.
func (q *Queue) count(ctx context.Context, tubes []string) ([]pawl.Counts, error) {
	c, err := q.putter(ctx)
	if err != nil {
		return nil, err
	}
	answers, requests := make([]found, len(tubes)), make([]request, len(tubes))
	for i, tube := range tubes {
		requests[i] = lookUp(&answers[i], "stats-tube %s", tube)
	}
	if _, err := c.exchange(0, requests...); err != nil {
		return nil, q.unavailable(err)
	}
	counts := make([]pawl.Counts, len(tubes))
	for i := range answers {
		of := figures(answers[i].body)
		counts[i] = pawl.Counts{Ready: figure(of, "current-jobs-ready"), Delayed: figure(of, "current-jobs-delayed"),
			Leased: figure(of, "current-jobs-reserved"), Dead: figure(of, "current-jobs-buried")}
	}
	return counts, nil
}

// Dead returns the job of a queue and a kind that has been dead the longest, with its history. It
// returns [pawl.ErrNotFound] if there is none.
func (q *Queue) Dead(ctx context.Context, queue, kind string) (*pawl.Envelope, error) {
	f, err := q.firstDead(ctx, queue, kind)
	if err != nil {
		return nil, err
	}
	e, history, err := transport.ParseBody(f.body)
	if err != nil {
		return nil, err
	}
	e.State, e.History, e.Seq = pawl.Dead, history, f.number
	return e, nil
}

func (q *Queue) firstDead(ctx context.Context, queue, kind string) (f found, err error) {
	if err := cmp.Or(driver.CheckQueue(queue), driver.CheckKind(kind), q.leases.Ready(ctx)); err != nil {
		return f, err
	}
	tube := q.tube(queue, kind)
	if len(tube) > maxTube { // the server would go on using another one
		return f, noDead(queue, kind)
	}
	c, err := q.putter(ctx)
	if err != nil {
		return f, err
	}
	var used string
	use := command(&used, "use %s", tube)
	send := use.send
	use.send = func(b []byte) []byte {
		c.using = tube
		return send(b)
	}
	switch _, err := c.exchange(0, use, lookUp(&f, "peek-buried")); {
	case err != nil:
		return f, q.unavailable(err)
	case f.answer != "FOUND":
		return f, noDead(queue, kind)
	}
	return f, nil
}

func noDead(queue, kind string) error {
	return fmt.Errorf("dead job of kind %q in queue %q: %w", kind, queue, pawl.ErrNotFound)
}

// RetryDead makes up to most dead jobs of a queue and a kind ready, and returns how many. It starts
// with the job that has been dead the longest. Attempts start again from 0.
func (q *Queue) RetryDead(ctx context.Context, queue, kind string, most int) (retried int, err error) {
	for retried < most {
		f, err := q.firstDead(ctx, queue, kind)
		switch {
		case errors.Is(err, pawl.ErrNotFound):
			return retried, nil
		case err != nil:
			return retried, err
		}
		c, err := q.putter(ctx)
		if err != nil {
			return retried, err
		}
		var answer string
		if sent, err := c.exchange(0, command(&answer, "kick-job %s", strconv.FormatUint(f.number, 10))); err != nil {
			return retried, q.unknown(sent, err)
		}
		if answer == "KICKED" { // or somebody else was first
			retried++
		}
	}
	return retried, nil
}
