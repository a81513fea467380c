package dlq

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl"
)

// Sink is a place that dead letters are forwarded to.
type Sink interface {
	// Store takes a dead letter over: when it returns nil the letter is safe there, and
	// is removed from where it was. The envelope has the payload, the death and the
	// whole history; it is the sink's to keep.
	//
	// A letter may come again, under the same ID, when its removal did not come
	// through, so storing it twice must do no harm.
	Store(ctx context.Context, letter *pawl.Envelope) error
}

// SinkFunc makes a function a [Sink].
type SinkFunc func(ctx context.Context, letter *pawl.Envelope) error

// Store implements [Sink].
func (fn SinkFunc) Store(ctx context.Context, letter *pawl.Envelope) error { return fn(ctx, letter) }

// ForwardOptions are the settings of a forward; nil, and every zero field, means the
// default.
type ForwardOptions struct {
	// Parallel is how many letters are on their way at a time. The default is 1: one
	// after the other, in the order in which they died within each queue. With more
	// the sink is called from several goroutines, and queues in files share their
	// commits: 64 is many times as fast from file to file.
	Parallel int

	// Collector gets pawl.JobsDLQFailed for each letter that could not be stored.
	Collector pawl.Collector

	// Logger gets an error-level line with severity=critical for each of those. The
	// default is hclog.Default().
	Logger pawl.Logger
}

func (o *ForwardOptions) withDefaults() (c ForwardOptions, err error) {
	if o != nil {
		c = *o
	}
	if c.Collector == nil {
		c.Collector = pawl.NoCollector{}
	}
	if c.Logger == nil {
		c.Logger = hclog.Default()
	}
	if c.Parallel < 0 {
		err = &pawl.InvalidError{Field: "Parallel", Reason: fmt.Sprintf("%d letters cannot be on their way", c.Parallel)}
	}
	return c, err
}

// Forward moves the dead letters that f chooses to another place, and returns how
// many. Each goes through two steps, and a crash leaves it in one place at least:
//
//  1. It is stored there. If that fails the letter stays here, is counted, and is
//     logged as critical.
//  2. It is removed here. If that fails, or the process dies before it, the letter is
//     in both places, and the next Forward stores it again and removes it.
//
// A letter that fails does not keep the others back; the error is that of the first
// one. It passes over damaged letters, which stay, and over those that somebody else
// retried, forwarded or removed first.
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
		err = fmt.Errorf("forward dead letters: %w", err)
	}
	return forwarded, err
}

func forward(ctx context.Context, s Store, to Sink, o *ForwardOptions, f pawl.Filter, id pawl.ID) (done bool, err error) {
	letter, err := Inspect(ctx, s, id)
	switch {
	case moved(err), errors.Is(err, pawl.ErrCorrupt):
		return false, nil
	case err != nil:
		return false, err
	case !f.Matches(letter): // it died again since it was listed
		return false, nil
	}
	from, death := *letter, pawl.Death{} // what the sink does to its envelope is not what is logged
	if letter.Death != nil {
		death = *letter.Death
	}
	if err := to.Store(ctx, letter); err != nil {
		o.Collector.Increment(pawl.JobsDLQFailed, pawl.Labels{Queue: from.Queue, Kind: from.Kind})
		o.Logger.Error("dead letter could not be forwarded and stays where it is", "severity", "critical",
			"id", id, "kind", from.Kind, "queue", from.Queue, "attempts", from.Attempts,
			"reason", string(death.Reason), "died", death.At.Format(time.RFC3339), "error", err)
		return false, fmt.Errorf("job %s: store it: %w", id, err)
	}
	switch err := removeDead(ctx, s, id, deaths{id: death}); { // of another death the sink knows nothing
	case err == nil:
		return true, nil
	case errors.Is(err, pawl.ErrConflict) && movedWithin(ctx, s, id, &death):
		return true, nil
	case errors.Is(err, pawl.ErrNotFound):
		return false, nil // somebody else forwarded it at the same time, or removed it
	default:
		return false, fmt.Errorf("job %s: it is stored there, and is still here: %w", id, err)
	}
}

// movedWithin reports whether a letter is not dead any more because the sink moved it to
// another queue of the very place that it was in.
func movedWithin(ctx context.Context, s Store, id pawl.ID, death *pawl.Death) bool {
	job, err := s.Job(ctx, id)
	if err != nil {
		return false
	}
	l, ok := LetterOf(job)
	return ok && sameDeath(&l.Death, death)
}
