package soak

import (
	"context"
	"fmt"
	"time"

	"github.com/gopawl/pawl"
)

// operate looks after dead deadJobs: some are taken back, the others are deleted.
func (l *life) operate(ctx context.Context) {
	for {
		for n := range l.deadJobs.take() {
			switch err := l.handleDead(ctx, n); {
			case err == nil:
			case ctx.Err() != nil:
				l.deadJobs.add(n)
			default:
				l.wrong(fmt.Errorf("dead letter %d, of class %d: %w", n, classOf(n), err))
			}
		}
		select {
		case <-l.deadJobs.bell:
		case <-ctx.Done():
			return
		}
	}
}

// reasons are for what the jobs die that die.
var reasons = map[class]pawl.Reason{
	permanent: pawl.ReasonPermanent,
	exhausted: pawl.ReasonExhausted,
	overdue:   pawl.ReasonDeadline,
	cancelled: pawl.ReasonCancelled,
	stopped:   pawl.ReasonCancelled,
}

// handleDead takes a dead letter back or deletes it, and requires that it died for what it was
// to die for, with all of its history.
func (l *life) handleDead(ctx context.Context, n int) error {
	id := idOf(l.round, n)
	e, err := l.q.Job(ctx, id)
	switch {
	case err != nil:
		return err
	case e.Death == nil || e.Death.Reason != reasons[classOf(n)]:
		return fmt.Errorf("it is not to die so: %+v", e)
	case len(e.History) != e.Failures || classOf(n) == exhausted && e.Failures != failures(n):
		return fmt.Errorf("it has a history of %d failures: %+v", len(e.History), e)
	case classOf(n) == permanent:
		return l.q.Retry(ctx, id, false)
	}
	return l.q.Delete(ctx, id)
}

// findDeadJobs has the operator look after the deadJobs of a process that died. Some of them
// were told already, since the queue was opened.
func (l *life) findDeadJobs(ctx context.Context) error {
	for e, err := range l.q.Jobs(ctx, pawl.Filter{State: pawl.Dead}) {
		if err != nil {
			return err
		}
		_, n := numberOf(e.ID)
		l.deadJobs.add(n)
	}
	return nil
}

// readEvery is how often the reader reads, and readJobs how many jobs: some pages of them.
const (
	readEvery = 20 * time.Millisecond
	readJobs  = 200
)

// read opens snapshots beside the writers.
func (l *life) read(ctx context.Context) {
	tick := time.NewTicker(readEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		if err := l.readOnce(ctx); err != nil && ctx.Err() == nil {
			l.wrong(fmt.Errorf("the reader: %w", err))
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// readOnce reads the first jobs, and requires that each is one of the round, or of the next
// one where that begins meanwhile.
func (l *life) readOnce(ctx context.Context) error {
	seen, first := 0, l.current()
	for e, err := range l.q.Jobs(ctx, pawl.Filter{}) {
		if err != nil {
			return err
		}
		if round, n := numberOf(e.ID); n >= len(l.cells) || round < first || round > l.current() {
			return fmt.Errorf("job %s is none of round %d", e.ID, first)
		}
		if seen++; seen == readJobs {
			break
		}
	}
	return nil
}
