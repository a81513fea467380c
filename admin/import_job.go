package admin

import (
	"fmt"
	"math"
	"slices"

	"github.com/gopawl/pawl"
)

// What is checked here is what [bolt.Queue.Restore] checks of a job and of an effect, so
// that it is known of all before any is stored. What the target alone knows is missing: its
// largest payload, and which IDs and keys are taken.

// envelopeToRestore is the job of a line.
func envelopeToRestore(j *Job) (*pawl.Envelope, error) {
	if j.Delay != 0 || j.OnConflict != "" || j.Existing {
		return nil, invalid("job", "delay, on_conflict and existing are for jobs that are enqueued; an export has not_before")
	}
	e, err := j.Envelope()
	if err != nil {
		return nil, err
	}
	like := *e                     // as an enqueue would see it
	like.NotBefore = like.Deadline // that of a retry may lie behind it
	if err := like.Validate(); err != nil {
		return nil, err
	}
	if len(e.Payload) > pawl.MaxBatchBytes {
		return nil, fmt.Errorf("%w: %d bytes, no queue takes more than %d", pawl.ErrPayloadTooLarge, len(e.Payload), pawl.MaxBatchBytes)
	}
	if err := checkCounts(e); err != nil {
		return nil, err
	}
	return e, checkEnding(e)
}

// maxCount is the most that a job may have counted of anything.
const maxCount = 1 << 30

func checkCounts(e *pawl.Envelope) error {
	for _, count := range [...]struct {
		field string
		n     int
	}{{"attempts", e.Attempts}, {"crashes", e.Crashes}, {"failures", e.Failures}} {
		if count.n < 0 || count.n > maxCount {
			return invalid(count.field, "%d is not between 0 and %d", count.n, maxCount)
		}
	}
	if kept := min(e.Failures, pawl.HistoryKeepHead+pawl.HistoryKeepTail); len(e.History) != kept {
		return invalid("history", "%d entries, of %d failures %d are kept", len(e.History), e.Failures, kept)
	}
	for i, f := range e.History {
		switch {
		case f.Attempt < 0 || f.Attempt > math.MaxInt32:
			return invalid("history", "entry %d is of attempt %d", i, f.Attempt)
		case len(f.Error) > pawl.MaxErrorText:
			return invalid("history", "entry %d has an error of %d bytes, at most %d are kept", i, len(f.Error), pawl.MaxErrorText)
		}
	}
	return nil
}

// checkEnding requires that a job says of its end what its state asks for.
func checkEnding(e *pawl.Envelope) error {
	dead, completed := e.State == pawl.Dead, e.State == pawl.Completed
	switch {
	case !slices.Contains(pawl.States(), e.State):
		return invalid("state", "%q is none of %v", e.State, pawl.States())
	case dead != (e.Death != nil):
		return invalid("reason", "a job has one, and died_at, if and only if it is dead; this one is %s", e.State)
	case dead && (e.Death.Reason == "" || len(e.Death.Reason) > pawl.MaxNameBytes):
		return invalid("reason", "%d bytes, a death has one of 1 to %d", len(e.Death.Reason), pawl.MaxNameBytes)
	case dead && e.Death.At.IsZero():
		return invalid("died_at", "a dead job has that time")
	case completed == e.Completed.IsZero():
		return invalid("completed_at", "a job has that time if and only if it is completed; this one is %s", e.State)
	case completed && e.Retain <= 0:
		return invalid("retain", "a completed record is kept for a time, and this one for %v", e.Retain)
	}
	return nil
}

func checkEffect(x exportEffect) error {
	if err := pawl.ValidKind(string(x.Kind)); err != nil {
		return err
	}
	if len(x.Key) == 0 || len(x.Key) > pawl.MaxKeyBytes {
		return invalid("key", "%d bytes, an idempotency key has 1 to %d", len(x.Key), pawl.MaxKeyBytes)
	}
	return nil
}
