package driver

import (
	"fmt"
	"slices"
	"time"

	"github.com/gopawl/pawl"
)

// CheckTransfer is [CheckBatch] for a job that takes the place of a dead job. Such a job has no unique key.
func CheckTransfer(e *pawl.Envelope, maxPayload int) error {
	if _, err := CheckBatch([]*pawl.Envelope{e}, maxPayload); err != nil {
		return err
	}
	if e.UniqueKey != "" {
		return invalid("unique key", "a job that takes the place of a dead job has none")
	}
	return nil
}

// CheckBatch refuses a batch that a queue can never accept, whatever the queue holds. No payload
// may have more than maxPayload bytes. The errors are [pawl.ErrInvalid],
// [pawl.ErrPayloadTooLarge], [pawl.ErrBatchTooLarge], and [pawl.ErrConflict] for an envelope or an
// ID that is in the batch twice. It returns the size of all payloads in bytes.
func CheckBatch(jobs []*pawl.Envelope, maxPayload int) (bytes int, err error) {
	for _, e := range jobs {
		if err := CheckEnvelope(e); err != nil {
			return 0, err
		}
		if len(e.Payload) > maxPayload {
			return 0, fmt.Errorf("%w: %d bytes, this queue takes %d; enqueue a reference to the data, or raise Options.MaxPayload",
				pawl.ErrPayloadTooLarge, len(e.Payload), maxPayload)
		}
		bytes += len(e.Payload)
	}
	if len(jobs) > pawl.MaxBatchJobs || len(jobs) > 1 && bytes > pawl.MaxBatchBytes {
		return 0, fmt.Errorf("%w: %d jobs of %d bytes, at most %d jobs of %d bytes fit in one commit; split it",
			pawl.ErrBatchTooLarge, len(jobs), bytes, pawl.MaxBatchJobs, pawl.MaxBatchBytes)
	}
	if len(jobs) == 1 {
		return bytes, nil
	}
	pointers, ids := make(map[*pawl.Envelope]struct{}, len(jobs)), make(map[pawl.ID]struct{})
	for _, e := range jobs {
		pointers[e] = struct{}{}
		if !e.ID.IsZero() {
			if _, twice := ids[e.ID]; twice {
				return 0, fmt.Errorf("job %s: %w: it is twice in one batch", e.ID, pawl.ErrConflict)
			}
			ids[e.ID] = struct{}{}
		}
	}
	if len(pointers) < len(jobs) {
		return 0, fmt.Errorf("%w: an envelope is twice in one batch", pawl.ErrConflict)
	}
	return bytes, nil
}

// CheckEnvelope checks everything about a job that does not depend on the settings of a queue.
// Its error is a [*pawl.InvalidError].
func CheckEnvelope(e *pawl.Envelope) error { return root.CheckEnvelope(e) }

// CheckQueue checks the name of a queue. Its error is a [*pawl.InvalidError].
func CheckQueue(name string) error { return root.CheckName("queue", name) }

// CheckKind checks the name of a kind. Its error is a [*pawl.InvalidError].
func CheckKind(name string) error { return root.CheckName("kind", name) }

// BlockedBy reports whether a job that has the unique key of e and is in the given state keeps e out.
func BlockedBy(e *pawl.Envelope, state pawl.State) bool {
	if len(e.UniqueIn) == 0 {
		return state != pawl.Dead && state != pawl.Completed
	}
	return slices.Contains(e.UniqueIn, state)
}

// Accept fills in the fields that a queue sets when it accepts a job at the time now. A queue calls it
// for its own copy of the envelope. What the job has from another queue stays; what this queue counts
// begins at zero. Accept does not set the sequence. It reports whether the job is ready at once.
func Accept(e *pawl.Envelope, now time.Time) (ready bool) {
	now = now.Round(0) // without its monotonic part
	if e.ID.IsZero() {
		e.ID = pawl.NewID(now)
	}
	if e.Queue == "" {
		e.Queue = pawl.DefaultQueue
	}
	if e.Origin == "" {
		e.Origin = e.Queue
	}
	if e.Created.IsZero() {
		e.Created = now
	}
	switch e.NotBefore = e.NotBefore.Round(0); {
	case e.Delay > 0:
		e.NotBefore = now.Add(e.Delay)
	case !e.NotBefore.After(now):
		e.NotBefore, ready = now, true
	}
	if e.Cost == 1 { // the form of a record
		e.Cost = 0
	}
	if e.Weight == 1 {
		e.Weight = 0
	}
	e.Deadline = e.Deadline.Round(0)
	e.Delay = 0
	e.Attempts, e.Crashes, e.Failures, e.Death, e.History = 0, 0, 0, nil, nil
	e.Cancelled, e.HoldsKey, e.FairTag, e.BackoffSince, e.Completed, e.Result = false, false, 0, time.Time{}, time.Time{}, nil
	e.State, e.LeasedSince = "", time.Time{}
	return ready
}

// WithIDs returns copies of jobs, each with an ID, so that a client can look them up after
// [pawl.ErrUnknownOutcome].
func WithIDs(jobs []*pawl.Envelope) []*pawl.Envelope {
	sent := make([]*pawl.Envelope, len(jobs))
	now := time.Now()
	for i, e := range jobs {
		own := *e
		if own.ID.IsZero() {
			own.ID = pawl.NewID(now)
		}
		sent[i] = &own
	}
	return sent
}
