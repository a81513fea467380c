package memory

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/gopawl/pawl"
)

// Enqueue implements [pawl.Queue].
func (q *Queue) Enqueue(ctx context.Context, envelopes ...*pawl.Envelope) error {
	if len(envelopes) == 0 {
		return nil
	}
	if err := q.check(envelopes); err != nil {
		return err
	}
	return q.do(ctx, func() error {
		if err := q.conflict(envelopes); err != nil {
			return err
		}
		accepted := make([]pawl.Envelope, len(envelopes))
		for i, e := range envelopes {
			accepted[i] = q.accept(*e)
			j := &job{Envelope: clone(accepted[i]), line: q.line(accepted[i].Queue)}
			q.jobs[j.ID] = j
			q.place(j)
		}
		for i := range accepted {
			*envelopes[i] = accepted[i]
		}
		return nil
	})
}

// check refuses what can never be accepted.
func (q *Queue) check(envelopes []*pawl.Envelope) error {
	if q.err != nil {
		return q.err
	}
	bytes := 0
	for _, e := range envelopes {
		if err := e.Validate(); err != nil {
			return err
		}
		if len(e.Payload) > q.opts.MaxPayload {
			return fmt.Errorf("%w: %d bytes, this queue takes %d; enqueue a reference to the data, or raise Options.MaxPayload",
				pawl.ErrPayloadTooLarge, len(e.Payload), q.opts.MaxPayload)
		}
		bytes += len(e.Payload)
	}
	if len(envelopes) > pawl.MaxBatchJobs || bytes > pawl.MaxBatchBytes {
		return fmt.Errorf("%w: %d jobs of %d bytes, at most %d jobs of %d bytes are allowed; split it",
			pawl.ErrBatchTooLarge, len(envelopes), bytes, pawl.MaxBatchJobs, pawl.MaxBatchBytes)
	}
	return nil
}

// conflict refuses an ID that is taken, and what is twice in one batch.
func (q *Queue) conflict(envelopes []*pawl.Envelope) error {
	ids, pointers := make(map[pawl.ID]bool), make(map[*pawl.Envelope]bool)
	for _, e := range envelopes {
		switch {
		case pointers[e] || ids[e.ID]:
			return fmt.Errorf("job %s: %w: it is twice in one batch", e.ID, pawl.ErrConflict)
		case q.jobs[e.ID] != nil:
			return fmt.Errorf("job %s: %w: the queue holds a job of this ID already", e.ID, pawl.ErrConflict)
		}
		pointers[e] = true
		ids[e.ID] = !e.ID.IsZero() // an ID that is to be given is no conflict
	}
	return nil
}

// accept fills in what is the queue's to fill in. What a job brings from another
// queue stays; what this queue counts begins anew.
func (q *Queue) accept(e pawl.Envelope) pawl.Envelope {
	if e.ID.IsZero() {
		e.ID = pawl.NewID(q.now)
	}
	if e.Queue == "" {
		e.Queue = pawl.DefaultQueue
	}
	if e.Origin == "" {
		e.Origin = e.Queue
	}
	if e.Created.IsZero() {
		e.Created = q.now
	}
	switch e.NotBefore = e.NotBefore.Round(0); {
	case e.Delay > 0:
		e.NotBefore = q.now.Add(e.Delay)
	case e.NotBefore.Before(q.now):
		e.NotBefore = q.now
	}
	e.Delay = 0
	q.seq++
	e.Seq = q.seq
	e.Attempts, e.Crashes, e.Failures, e.Death, e.History = 0, 0, 0, nil, nil
	e.State, e.LeasedSince = "", time.Time{}
	return e
}

// line finds the queue of that name, or makes it.
func (q *Queue) line(name string) *line {
	if l := q.find(name); l != nil {
		return l
	}
	l := &line{name: name, ready: list{compare: byRank}, dead: list{compare: byDeath}}
	q.lines = append(q.lines, l)
	return l
}

// find is line for a name that may be that of no queue: nil then.
func (q *Queue) find(name string) *line {
	if i := slices.IndexFunc(q.lines, func(l *line) bool { return l.name == name }); i >= 0 {
		return q.lines[i]
	}
	return nil
}
