package jetstream

import (
	"context"
	"fmt"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/transport"
)

// Enqueue implements [pawl.Enqueuer], for one job. It returns [pawl.ErrConflict] for a job with an ID that
// the stream received within its duplicate window, which is 2 minutes by default.
func (q *Queue) Enqueue(ctx context.Context, jobs ...*pawl.Envelope) ([]pawl.Enqueued, error) {
	return q.leases.Enqueue(ctx, transport.Storing{
		Name: "jetstream", Abilities: q.Abilities(), MaxPayload: q.opts.MaxPayload, TooLarge: "raise max_payload of the server",
		Fits: q.fits, Store: q.store,
	}, jobs...)
}

// fits returns an error for a job whose line is too long.
func (q *Queue) fits(e *pawl.Envelope) error {
	if line := q.line(e.Queue, e.Kind); len(line) > maxLine {
		return invalid("kind", "queue and kind make the name of a consumer of %d bytes, at most %d are possible; shorten them", len(line), maxLine)
	}
	return nil
}

// store stores a job, and returns its sequence in the stream.
func (q *Queue) store(_ context.Context, e *pawl.Envelope, body []byte, _ time.Time) (uint64, error) {
	seq, duplicate, err := q.stored(q.exchange(q.message(e, body, ""))[0])
	if err == nil && duplicate {
		err = fmt.Errorf("%w: the stream has received job %s already", pawl.ErrConflict, e.ID)
	}
	return seq, err
}
