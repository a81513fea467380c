package memory

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/metrics"
)

// Options are the settings of a queue. A nil *Options, and every zero field, means
// the default.
type Options struct {
	// Lease is how long a lease lasts unless extended. The default is 30 s, the minimum 1 s.
	Lease time.Duration

	// MaxCrashes is how many leases in a row may expire before the job becomes dead as poison.
	// The default is 5. NoMaxCrashes removes the limit.
	MaxCrashes int

	// MaxPayload is the most bytes of one payload. The default is 1 MiB, the maximum 64 MiB.
	MaxPayload int

	// Limits has the limits of queues, by name. The default is no limit.
	Limits map[string]pawl.Limits

	// Logger gets an error-level line for each job that dies. It must not call the queue. The
	// default is hclog.Default().
	Logger pawl.Logger

	// OnEvent receives every transition of every job, in their order, one at a time.
	// It runs within the transition, so it must neither block nor call the queue.
	OnEvent func(pawl.Event)

	// Collector gets the counters derived from events; see driver.CountEvent. The rules of
	// OnEvent apply to it. The default is nil.
	Collector metrics.Collector

	// Now is the wall clock that decides when delayed jobs become due, deadlines
	// pass, and records are removed. The default is time.Now. Leases do not use it:
	// they expire on monotonic time. If the clock is set, the next call notices it,
	// or the queue itself within a minute. Now must not call the queue.
	Now func() time.Time
}

// NoMaxCrashes as Options.MaxCrashes lets a job crash without limit.
const NoMaxCrashes = -1

// withDefaults returns a checked copy with the defaults filled in.
func (o *Options) withDefaults() (Options, error) {
	var c Options
	if o != nil {
		c = *o
	}
	c.Lease = cmp.Or(c.Lease, 30*time.Second)
	c.MaxCrashes = cmp.Or(c.MaxCrashes, 5)
	c.MaxPayload = cmp.Or(c.MaxPayload, pawl.DefaultMaxPayload)
	if c.Logger == nil {
		c.Logger = hclog.Default()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	switch {
	case c.Lease < time.Second:
		return c, &pawl.InvalidError{Field: "Lease", Reason: fmt.Sprintf("%v is less than 1s", c.Lease)}
	case c.MaxCrashes < NoMaxCrashes:
		return c, &pawl.InvalidError{Field: "MaxCrashes", Reason: fmt.Sprintf("%d is negative", c.MaxCrashes)}
	case c.MaxPayload < 0 || c.MaxPayload > pawl.MaxBatchBytes:
		return c, &pawl.InvalidError{Field: "MaxPayload", Reason: fmt.Sprintf("%d is not between 1 and %d bytes", c.MaxPayload, pawl.MaxBatchBytes)}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Limits)) {
		if err := cmp.Or(driver.CheckQueue(name), c.Limits[name].Validate()); err != nil {
			return c, fmt.Errorf("limits of queue %q: %w", name, err)
		}
	}
	c.Limits = maps.Clone(c.Limits)
	return c, nil
}
