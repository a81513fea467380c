package transport

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Storing is how an engine stores a job. Name, TooLarge, Fits, and Store are required.
type Storing struct {
	Name       string // of the engine, as errors name it
	Abilities  pawl.Ability
	MaxPayload int    // bytes
	TooLarge   string // what to do about a job that does not fit into a message

	// Fits returns an error for a job whose queue and kind do not make a name that the broker takes.
	Fits func(e *pawl.Envelope) error

	// Store stores a job that was accepted at a time, and returns its number at the broker, or 0. After
	// [pawl.ErrUnknownOutcome], Enqueue returns the ID.
	Store func(ctx context.Context, e *pawl.Envelope, body []byte, now time.Time) (seq uint64, err error)
}

// Enqueue implements [pawl.Enqueuer], for one job.
func (q *Leases[M]) Enqueue(ctx context.Context, s Storing, jobs ...*pawl.Envelope) ([]pawl.Enqueued, error) {
	if err := driver.SupportsJobs(s.Abilities, jobs...); err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	if _, err := driver.CheckBatch(jobs, s.MaxPayload); err != nil {
		return nil, err
	}
	if len(jobs) > 1 {
		return nil, fmt.Errorf("%w: %s stores one job a call, not %d; enqueue them one by one", pawl.ErrBatchTooLarge, s.Name, len(jobs))
	}
	if err := q.Begin(ctx); err != nil {
		return nil, err
	}
	defer q.End()
	if len(jobs) == 0 {
		return nil, nil
	}
	e, now := *jobs[0], time.Now()
	e.Seq = 0
	if driver.Accept(&e, now) {
		e.State = pawl.Ready
	} else {
		e.State = pawl.Delayed
	}
	if err := s.Fits(&e); err != nil {
		return nil, err
	}
	body := AppendBody(&e, nil, q.MaxBody)
	if most := q.MaxBody - HistoryRoom; len(body) > most {
		return nil, fmt.Errorf("%w: the job has %d bytes with its envelope, at most %d fit; %s", pawl.ErrPayloadTooLarge, len(body), most, s.TooLarge)
	}
	done := []pawl.Enqueued{{ID: e.ID}}
	seq, err := s.Store(ctx, &e, body, now)
	switch {
	case errors.Is(err, pawl.ErrUnknownOutcome):
		return done, err
	case err != nil:
		return nil, err
	}
	e.Seq, e.Payload = seq, nil
	q.Emit(pawl.Event{Type: pawl.EventEnqueued, At: now, Job: &e})
	return done, nil
}
