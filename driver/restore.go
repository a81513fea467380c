package driver

import (
	"fmt"
	"math"
	"time"

	"github.com/gopawl/pawl"
)

// Effect is an idempotency key that counts as done until a time. Until then, a job of that kind and key is
// removed without an attempt.
type Effect struct {
	Kind, Key string
	Until     time.Time
}

// The input of a restore comes from another process, or from anybody, so nothing in it is trusted.

// MaxCount is the largest value of a counter of a restored job. No real job reaches it,
// and further counting does not overflow an int.
const MaxCount = 1 << 30

// CheckRestore refuses what no queue would have stored, and more than one call accepts. A
// queue's Restore calls it before its transaction. MaxPayload is the queue's limit in bytes. Its
// errors match those of [CheckRestoredJob] and of [Effect.Validate], [pawl.ErrBatchTooLarge] for
// more than [pawl.MaxBatchJobs] jobs or effects or more than [pawl.MaxBatchBytes] by [JobSize],
// and [pawl.ErrConflict] for an ID or an envelope that occurs twice.
func CheckRestore(jobs []*pawl.Envelope, effects []Effect, maxPayload int) error {
	if n := max(len(jobs), len(effects)); n > pawl.MaxBatchJobs {
		return fmt.Errorf("%w: %d, at most %d jobs and as many effects fit in one commit; split it", pawl.ErrBatchTooLarge, n, pawl.MaxBatchJobs)
	}
	bytes := 0
	ids := make(map[pawl.ID]int, len(jobs))
	given := make(map[*pawl.Envelope]int, len(jobs))
	for i, e := range jobs {
		if err := CheckRestoredJob(e); err != nil {
			return fmt.Errorf("job %d: %w", i, err)
		}
		if len(e.Payload) > maxPayload {
			return fmt.Errorf("job %d: %w: %d bytes, this queue takes %d; raise Options.MaxPayload", i, pawl.ErrPayloadTooLarge, len(e.Payload), maxPayload)
		}
		bytes += JobSize(e)
		if other, twice := given[e]; twice {
			return fmt.Errorf("job %d: %w: it is the envelope of job %d", i, pawl.ErrConflict, other)
		}
		if other, twice := ids[e.ID]; twice && !e.ID.IsZero() {
			return fmt.Errorf("job %d: %w: job %d has its ID %s", i, pawl.ErrConflict, other, e.ID)
		}
		ids[e.ID], given[e] = i, i
	}
	if len(jobs) > 1 && bytes > pawl.MaxBatchBytes {
		return fmt.Errorf("%w: %d bytes of payloads, headers and histories, at most %d fit in one commit; split it", pawl.ErrBatchTooLarge, bytes, pawl.MaxBatchBytes)
	}
	for i, e := range effects {
		if err := e.Validate(); err != nil {
			return fmt.Errorf("effect %d: %w", i, err)
		}
	}
	return nil
}

// CheckRestoredJob checks one job against the requirements of a restore that hold for any
// queue. A program can check all jobs before it restores the first. It does not check the
// queue's payload limit or whether IDs and keys are taken. Its errors match [pawl.ErrInvalid],
// [pawl.ErrPayloadTooLarge] and those of [CheckEnvelope].
func CheckRestoredJob(e *pawl.Envelope) error {
	if e == nil {
		return CheckEnvelope(nil)
	}
	like := *e // as an enqueue would see it
	like.Delay, like.OnConflict = 0, pawl.UseExisting
	like.NotBefore = like.Deadline // the NotBefore of a retry may be after the deadline
	if err := CheckEnvelope(&like); err != nil {
		return err
	}
	if len(e.Payload) > pawl.MaxBatchBytes {
		return fmt.Errorf("%w: %d bytes, no queue takes more than %d", pawl.ErrPayloadTooLarge, len(e.Payload), pawl.MaxBatchBytes)
	}
	for _, count := range [...]struct {
		field string
		n     int
	}{{"attempts", e.Attempts}, {"crashes", e.Crashes}, {"failures", e.Failures}} {
		if count.n < 0 || count.n > MaxCount {
			return invalid(count.field, "%d is not between 0 and %d", count.n, MaxCount)
		}
	}
	if err := checkHistory(e); err != nil {
		return err
	}
	return checkState(e)
}

// checkHistory requires the entries that a history keeps.
func checkHistory(e *pawl.Envelope) error {
	if kept := min(e.Failures, pawl.HistoryKeepHead+pawl.HistoryKeepTail); len(e.History) != kept {
		return invalid("history", "%d entries, of %d failures %d are kept", len(e.History), e.Failures, kept)
	}
	for i, f := range e.History {
		switch {
		case f.Attempt < 0 || f.Attempt > math.MaxInt32:
			return invalid("history", "entry %d is of attempt %d", i, f.Attempt)
		case len(f.Error) > pawl.MaxErrorText:
			return invalid("history", "entry %d has an error of %d bytes, at most %d are kept", i, len(f.Error), pawl.MaxErrorText)
		case len(f.Stack) > pawl.MaxErrorText:
			return invalid("history", "entry %d has a stack of %d bytes, at most %d are kept", i, len(f.Stack), pawl.MaxErrorText)
		}
	}
	return nil
}

// checkState requires the fields about a job's end that its state implies.
func checkState(e *pawl.Envelope) error {
	if CountOf(new(pawl.Counts), e.State) == nil {
		return invalid("state", "%q is none of %v", e.State, pawl.States())
	}
	switch dead := e.State == pawl.Dead; {
	case dead != (e.Death != nil):
		return invalid("death", "a job has one if and only if it is dead, this one is %s", e.State)
	case dead && (e.Death.Reason == "" || len(e.Death.Reason) > pawl.MaxNameBytes):
		return invalid("death", "a reason of %d bytes is not between 1 and %d", len(e.Death.Reason), pawl.MaxNameBytes)
	case dead && e.Death.At.IsZero():
		return invalid("death", "it has no time")
	}
	switch completed := e.State == pawl.Completed; {
	case completed == e.Completed.IsZero():
		return invalid("completed", "a job has that time if and only if it is completed, this one is %s", e.State)
	case completed && e.Retain <= 0:
		return invalid("retention", "a completed record is kept for a time, and this one for %v", e.Retain)
	case e.Result != nil && !completed:
		return invalid("result", "only a completed record has one, this one is %s", e.State)
	case Waits(e) && completed:
		return invalid("prerequisites", "a completed record waits for none")
	case e.Cursor != nil && completed:
		return invalid("cursor", "a completed record has none")
	case len(e.Result) > pawl.MaxResult:
		return invalid("result", "it has %d bytes, at most %d are stored", len(e.Result), pawl.MaxResult)
	}
	return nil
}

// Arrive prepares a restored job for a queue that stores it at the time now. The job has passed
// [CheckRestoredJob]. Arrive keeps the sequence and the history. A job that must end because it was
// cancelled is leased until the queue ends it.
func Arrive(e *pawl.Envelope, now time.Time) {
	now = now.Round(0) // without its monotonic part, like all times of a stored job
	e.Delay, e.OnConflict, e.LeasedSince, e.FairTag = 0, pawl.UseExisting, time.Time{}, 0
	if e.ID.IsZero() {
		e.ID = pawl.NewID(now)
	}
	if e.Queue == "" {
		e.Queue = pawl.DefaultQueue
	}
	if e.Origin == "" {
		e.Origin = e.Queue
	}
	for _, t := range []*time.Time{&e.Created, &e.NotBefore} {
		if t.IsZero() {
			*t = now
		}
	}
	for _, t := range []*time.Time{&e.Created, &e.NotBefore, &e.Deadline, &e.BackoffSince, &e.Completed} {
		*t = t.Round(0)
	}
	if e.Death != nil {
		e.Death = &pawl.Death{Reason: e.Death.Reason, At: e.Death.At.Round(0)}
	}
	switch e.State {
	case pawl.Dead, pawl.Completed:
		e.Cancelled, e.BackoffSince = false, time.Time{}
		return
	case pawl.Leased:
		e.BackoffSince = time.Time{}
	}
	if e.Cancelled {
		e.State = pawl.Leased
		return
	}
	if e.State == pawl.Leased {
		e.State = pawl.Ready
	}
	if e.State == pawl.Ready && e.NotBefore.After(now) {
		e.NotBefore = now
	}
}

// Arrival returns the state of a job that [Arrive] has prepared.
func Arrival(e *pawl.Envelope, now time.Time) pawl.State {
	switch {
	case e.State == pawl.Dead || e.State == pawl.Completed:
		return e.State
	case e.State == pawl.Leased || !e.Deadline.IsZero() && !e.Deadline.After(now):
		return pawl.Dead
	case e.State == pawl.Delayed && !e.NotBefore.After(now):
		return pawl.Ready
	}
	return e.State
}

// Validate reports whether a queue would accept the kind and key of the effect. Its errors
// match [pawl.ErrInvalid].
func (e Effect) Validate() error {
	if err := CheckKind(e.Kind); err != nil {
		return err
	}
	if e.Key == "" || len(e.Key) > pawl.MaxKeyBytes {
		return invalid("idempotency key", "%d bytes are not between 1 and %d", len(e.Key), pawl.MaxKeyBytes)
	}
	return nil
}

// JobSize returns the size in bytes of the parts of a job that can be large: its payload, its
// result, its cursor, its headers, and its history with an overhead for each entry. It bounds pages and batches.
func JobSize(e *pawl.Envelope) (bytes int) {
	bytes = len(e.Payload) + len(e.Result) + len(e.Cursor)
	for _, f := range e.History {
		bytes += failureOverhead + len(f.Error) + len(f.Stack)
	}
	for key, value := range e.Headers {
		bytes += len(key) + len(value)
	}
	return bytes
}

// failureOverhead is roughly the size of a history entry without its text, in any store.
const failureOverhead = 40
