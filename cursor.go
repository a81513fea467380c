package pawl

import (
	"context"
	"errors"
	"fmt"
)

// MaxCursor is the most bytes of an encoded cursor.
const MaxCursor = 64 << 10

// ErrCursorTooLarge says that an encoded cursor exceeds [MaxCursor]. Nothing was saved. Store the
// data elsewhere and save a reference to it.
var ErrCursorTooLarge = errors.New("cursor too large")

// CursorSaver is a queue with the ability [Cursors]. Handlers call [Job.SaveCursor] instead.
type CursorSaver interface {
	// SaveCursor stores how far a job is, in place of what was stored before. It is durable when
	// SaveCursor returns nil. It renews the lease, and it resets the count of crashes in a row,
	// because the job makes progress. The cursor stays with the job through failed attempts, crashes,
	// releases, snoozes, its death, and a retry. A success removes it.
	//
	// Errors: [ErrLeaseLost] for a stale lease; [ErrInvalid] for a cursor of more than [MaxCursor]
	// bytes; and those of any method of a [Queue]. After [ErrUnknownOutcome] the next attempt
	// finds this cursor or the one before.
	SaveCursor(ctx context.Context, l *Lease, cursor []byte) error
}

// SaveCursor stores how far this attempt is. It returns nil once that is durable, and shares the group
// commit. A later attempt of the job finds the last value that was saved, whatever ended this one: an
// error, a crash, a power failure. The value is encoded as arguments are.
//
// A cursor never goes back: once the job has another holder, SaveCursor returns [ErrLeaseLost] and
// saves nothing. The other errors are [ErrCursorTooLarge], [ErrPayloadEncoding], an error that
// matches [ErrUnsupported] on a queue without [Cursors], and those of [CursorSaver].
func (j *Job[T]) SaveCursor(ctx context.Context, at any) error {
	if j.Lease == nil || j.Lease.queue == nil {
		return invalid("job", "no worker runs it, so it has no cursor to save")
	}
	b, err := encodePayload(at)
	if errors.Is(err, ErrPayloadTooLarge) || len(b) > MaxCursor {
		return fmt.Errorf("cursor of %s: %w: at most %d bytes are stored; save a reference to the data", j.Kind, ErrCursorTooLarge, MaxCursor)
	}
	if err != nil {
		return fmt.Errorf("cursor of %s: %w", j.Kind, err)
	}
	q, ok := j.Lease.queue.(CursorSaver)
	if !ok {
		return &InvalidError{Field: "queue", Reason: "it has no cursors; see pawl.Require", Lacks: Cursors}
	}
	if err := q.SaveCursor(ctx, j.Lease, b); err != nil {
		return fmt.Errorf("save the cursor of %s: %w", j.Kind, err)
	}
	j.Envelope.Cursor = b
	return nil
}

// LoadCursor reads the last saved cursor of the job into the value that at points to. Found is
// false if there is none, as on the first attempt; at then keeps its value. [ErrPayloadEncoding] means
// that the cursor does not fit the type.
func (j *Job[T]) LoadCursor(at any) (found bool, err error) {
	if j.Envelope.Cursor == nil {
		return false, nil
	}
	if err := decodePayload(j.Envelope.Cursor, at, false); err != nil {
		return false, fmt.Errorf("cursor of %s: job %s: %w", j.Kind, j.ID, err)
	}
	return true, nil
}
