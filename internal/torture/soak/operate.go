package soak

import (
	"context"
	"fmt"
	"time"

	"github.com/gopawl/pawl"
)

// operate handles dead jobs: it retries some and deletes the others.
func (l *life) operate(ctx context.Context) {
	for {
		for n := range l.deadJobs.take() {
			switch err := l.handleDead(ctx, n); {
			case err == nil:
			case ctx.Err() != nil:
				l.deadJobs.add(n)
			default:
				l.wrong(fmt.Errorf("dead job %d, of class %d: %w", n, classOf(n), err))
			}
		}
		select {
		case <-l.deadJobs.bell:
		case <-ctx.Done():
			return
		}
	}
}

// reasons are the reasons of dead jobs by class.
var reasons = map[class]pawl.Reason{
	permanent: pawl.ReasonPermanent,
	exhausted: pawl.ReasonExhausted,
	overdue:   pawl.ReasonDeadline,
	cancelled: pawl.ReasonCancelled,
	stopped:   pawl.ReasonCancelled,
}

// handleDead retries or deletes a dead job, and requires the right reason and a complete
// history.
func (l *life) handleDead(ctx context.Context, n int) error {
	id := idOf(l.round, n)
	e, err := l.q.Job(ctx, id)
	switch {
	case err != nil:
		return err
	case e.Death == nil || e.Death.Reason != reasons[classOf(n)]:
		return fmt.Errorf("it is dead for another reason: %+v", e)
	case len(e.History) != e.Failures || classOf(n) == exhausted && e.Failures != failures(n):
		return fmt.Errorf("it has a history of %d failures: %+v", len(e.History), e)
	case classOf(n) == permanent:
		return l.q.Retry(ctx, id, false)
	}
	return l.q.Delete(ctx, id)
}

// findDeadJobs passes the dead jobs of a killed process to the operator. Events have reported
// some of them since the open.
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

// readEvery is the interval of the reader, and readJobs the number of jobs that it reads.
const (
	readEvery = 20 * time.Millisecond
	readJobs  = 200
)

// read reads snapshots while others write.
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

// readOnce reads the first jobs, and requires that each belongs to the round, or to the next
// round if that has started in the meantime.
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
