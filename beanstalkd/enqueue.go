package beanstalkd

import (
	"context"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/transport"
)

// Enqueue implements [pawl.Enqueuer], for one job.
func (q *Queue) Enqueue(ctx context.Context, jobs ...*pawl.Envelope) ([]pawl.Enqueued, error) {
	return q.leases.Enqueue(ctx, transport.Storing{
		Name: "beanstalkd", Abilities: q.Abilities(), MaxPayload: q.opts.MaxPayload, TooLarge: "start the server with a larger -z",
		Fits: q.fits, Store: q.store,
	}, jobs...)
}

// fits returns an error for a job whose tube has too long a name.
func (q *Queue) fits(e *pawl.Envelope) error {
	if tube := q.tube(e.Queue, e.Kind); len(tube) > maxTube {
		return invalid("kind", "queue and kind make the name of a tube of %d bytes, at most %d are possible; shorten them", len(tube), maxTube)
	}
	return nil
}

// store stores a job, and returns its number at the server.
func (q *Queue) store(ctx context.Context, e *pawl.Envelope, body []byte, now time.Time) (uint64, error) {
	c, err := q.putter(ctx)
	if err != nil {
		return 0, err
	}
	var p placed
	sent, err := c.exchange(0, c.put(&p, q.tube(e.Queue, e.Kind), serverPriority(e.Priority), seconds(e.NotBefore.Sub(now)),
		seconds(q.opts.Lease+margin), body))
	switch {
	case p.refused != nil:
		return 0, p.refused
	case err != nil:
		return 0, q.unknown(sent, err)
	}
	return p.number, nil
}
