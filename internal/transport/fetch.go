package transport

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

const (
	maxWait   = 10 * time.Second // of one Await
	lookAgain = time.Second      // between looks at what the broker does not report
)

// Fetching is what a fetch needs of an engine.
type Fetching struct {
	Name      string // of the package
	Abilities pawl.Ability

	// Ready returns the error of a call that must not begin.
	Ready func(ctx context.Context) error

	// Sources returns the lines that a request asks for.
	Sources func(ctx context.Context, r *pawl.Request) ([]Source, error)

	// Take leases up to most jobs that are ready, at once.
	Take func(ctx context.Context, most int, sources []Source) ([]*pawl.Lease, error)

	// Await waits for jobs of any source, and leases up to most. It returns none and no error when
	// the time has passed, or ctx or the queue has ended.
	Await func(ctx context.Context, wait time.Duration, most int, sources []Source) ([]*pawl.Lease, error)

	// Busy reports whether the sources have a ready or leased job, or a delayed one if those count.
	Busy func(ctx context.Context, sources []Source, delayed bool) (bool, error)
}

// Fetch is Fetch of [pawl.Queue].
func (f *Fetching) Fetch(ctx context.Context, r pawl.Request) ([]*pawl.Lease, error) {
	if err := driver.SupportsRequest(f.Abilities, r); err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	r, err := driver.CheckRequest(r)
	if err != nil {
		return nil, err
	}
	for {
		if err := f.Ready(ctx); err != nil {
			return nil, err
		}
		sources, err := f.Sources(ctx, &r)
		if err != nil {
			return nil, err
		}
		leases, err := f.Take(ctx, r.Max, sources)
		if len(leases) > 0 || err != nil {
			return leases, err
		}
		wait := maxWait
		if r.Kinds == nil {
			wait = lookAgain // for new lines
		}
		switch r.Wait {
		case pawl.WaitNot:
			return nil, pawl.ErrEmpty
		case pawl.WaitDrained, pawl.WaitFinished:
			busy, err := f.Busy(ctx, sources, r.Wait == pawl.WaitFinished)
			if err != nil {
				return nil, err
			}
			if !busy {
				return nil, pawl.ErrEmpty
			}
			wait = lookAgain
		}
		if leases, err = f.Await(ctx, wait, r.Max, sources); len(leases) > 0 || err != nil {
			return leases, err
		}
	}
}

// Source is a queue of a request, and its lines, which are what the engine calls the jobs of one kind
// in one queue.
type Source struct {
	Queue  string
	Weight float64
	Lines  []string
}

// Sources returns the sources of a request. Line names a line, and returns "" for one that cannot have
// jobs. All returns the lines of a queue, for a request of every kind.
func Sources(r *pawl.Request, line func(queue, kind string) string, all func(queue string) ([]string, error)) (sources []Source, err error) {
	for _, name := range r.Queues {
		if slices.ContainsFunc(sources, func(s Source) bool { return s.Queue == name }) {
			continue
		}
		s := Source{Queue: name, Weight: float64(driver.Weight(r, name))}
		if r.Kinds == nil {
			if s.Lines, err = all(name); err != nil {
				return nil, err
			}
		}
		for _, kind := range r.Kinds {
			if line := line(name, kind); line != "" {
				s.Lines = append(s.Lines, line)
			}
		}
		sources = append(sources, s)
	}
	return sources, nil
}

// AllLines returns the lines of all sources.
func AllLines(sources []Source) (lines []string) {
	for _, s := range sources {
		lines = append(lines, s.Lines...)
	}
	return lines
}
