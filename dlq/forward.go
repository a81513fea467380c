package dlq

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/metrics"
)

// Sink receives forwarded dead jobs.
type Sink interface {
	// Store stores a dead job with its payload, death and history. If it returns nil, the job
	// is durable there and Forward removes it from its queue. The sink may keep the envelope.
	//
	// The same job comes again if its removal failed, so Store must be idempotent by ID.
	Store(ctx context.Context, job *pawl.Envelope) error
}

// SinkFunc adapts a function to a [Sink].
type SinkFunc func(ctx context.Context, job *pawl.Envelope) error

// Store implements [Sink].
func (fn SinkFunc) Store(ctx context.Context, job *pawl.Envelope) error { return fn(ctx, job) }

// ForwardOptions configures [Forward]. Nil and zero fields mean the defaults.
type ForwardOptions struct {
	// Parallel is the number of jobs to forward at a time. The default is 1: one after the
	// other, in the order of their death within each queue. With more, the sink is called from
	// several goroutines. The jobs then share commits, so 64 is many times as fast as 1.
	Parallel int

	// Collector counts each job that the sink did not store as metrics.JobsDLQFailed.
	Collector metrics.Collector

	// Logger receives an error with severity=critical for each such job. The default is
	// hclog.Default().
	Logger pawl.Logger
}

func (o *ForwardOptions) withDefaults() (c ForwardOptions, err error) {
	if o != nil {
		c = *o
	}
	if c.Collector == nil {
		c.Collector = metrics.Discard{}
	}
	if c.Logger == nil {
		c.Logger = hclog.Default()
	}
	if c.Parallel < 0 {
		err = &pawl.InvalidError{Field: "Parallel", Reason: fmt.Sprintf("%d is negative", c.Parallel)}
	}
	return c, err
}

// Forward moves the dead jobs that match f to a sink and returns how many it moved. A crash never
// loses a job:
//
//  1. Forward stores the job in the sink. On error the job stays in its queue, and the failure is
//     counted and logged as critical.
//  2. Forward removes the job from its queue. After an error or a crash the job is in both places,
//     and the next Forward stores it again and removes it.
//
// Forward continues after a job that fails and returns the first error. It skips damaged jobs, and
// jobs that others retried, forwarded, or removed since they were listed.
func Forward(ctx context.Context, s Store, to Sink, opts *ForwardOptions, f pawl.Filter) (forwarded int, err error) {
	o, err := opts.withDefaults()
	if err != nil {
		return 0, err
	}
	f.State = pawl.Dead
	ids, _, err := choose(ctx, s, f)
	if err == nil {
		forwarded, err = each(ctx, ids, o.Parallel, func(id pawl.ID) (bool, error) {
			return forward(ctx, s, to, &o, f, id)
		})
	}
	if err != nil {
		err = fmt.Errorf("forward dead jobs: %w", err)
	}
	return forwarded, err
}

func forward(ctx context.Context, s Store, to Sink, o *ForwardOptions, f pawl.Filter, id pawl.ID) (done bool, err error) {
	job, err := Inspect(ctx, s, id)
	switch {
	case moved(err), errors.Is(err, pawl.ErrCorrupt):
		return false, nil
	case err != nil:
		return false, err
	case !f.Matches(job): // it died again since it was listed
		return false, nil
	}
	from, death := *job, pawl.Death{} // the sink may modify its envelope
	if job.Death != nil {
		death = *job.Death
	}
	if err := to.Store(ctx, job); err != nil {
		o.Collector.Increment(metrics.JobsDLQFailed, metrics.Labels{Queue: from.Queue, Kind: from.Kind})
		o.Logger.Error("could not forward dead job; it stays in its queue", "severity", "critical",
			"id", id, "kind", from.Kind, "queue", from.Queue, "attempts", from.Attempts,
			"reason", string(death.Reason), "died", death.At.Format(time.RFC3339), "error", err)
		return false, fmt.Errorf("job %s: store: %w", id, err)
	}
	switch err := removeDead(ctx, s, id, deaths{id: death}); { // the sink has not stored a later death
	case err == nil:
		return true, nil
	case errors.Is(err, pawl.ErrConflict) && movedWithin(ctx, s, id, &death):
		return true, nil
	case errors.Is(err, pawl.ErrNotFound):
		return false, nil // forwarded or removed by others since it was listed
	default:
		return false, fmt.Errorf("job %s: stored in the sink, but not removed from its queue: %w", id, err)
	}
}

// movedWithin reports whether a job is no longer dead because the sink moved it to another queue
// of the same store.
func movedWithin(ctx context.Context, s Store, id pawl.ID, death *pawl.Death) bool {
	job, err := s.Job(ctx, id)
	if err != nil {
		return false
	}
	from, ok := SourceOf(job)
	return ok && sameDeath(&from.Death, death)
}
