package sqlite

import (
	"cmp"
	"fmt"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/metrics"
)

// Options are the settings of a queue. A nil *Options, and every zero field, means the default.
type Options struct {
	// Lease is how long a lease lasts unless it is extended. The default is 30 s, the minimum
	// 1 s, and the maximum a year.
	Lease time.Duration

	// MaxCrashes is how many consecutive leases may end in a crash or an expiry before the job
	// becomes dead as poison. The default is 5. NoMaxCrashes removes the limit.
	MaxCrashes int

	// MaxPayload is the maximum size of one payload in bytes. The default is 1 MiB, the maximum
	// 64 MiB.
	MaxPayload int

	// Poll is how often the queue looks for transactions of the app that were committed without a
	// call of Queue.Wake. The default is 1 s, the minimum 10 ms. NoPoll turns polling off, for an app
	// that always calls Wake, or that has no such transactions.
	Poll time.Duration

	// Existing makes Open return ErrNotQueue for a file without a queue, and create nothing.
	Existing bool

	// Timeout is how long a call waits while another connection holds the write lock. After the
	// timeout, the call returns ErrBusy. The default is 30 s, the minimum 100 ms.
	Timeout time.Duration

	// Logger gets one error-level line for each job that becomes dead, and one warning for each
	// crash. The default is hclog.Default().
	Logger pawl.Logger

	// OnEvent receives the transitions, once they are durable. It must neither block nor call the
	// queue.
	OnEvent func(pawl.Event)

	// Collector gets the counters of those events. The rules of OnEvent apply to it.
	Collector metrics.Collector

	// Now is the wall clock for delays, deadlines, and retention. The default is time.Now. Leases
	// expire on monotonic time.
	Now func() time.Time
}

const (
	NoMaxCrashes = -1 // value of Options.MaxCrashes: no limit
	NoPoll       = -1 // value of Options.Poll: no polling
)

// The minimum and maximum values of Options.
const (
	leastLease   = time.Second
	mostLease    = 365 * 24 * time.Hour
	leastPoll    = 10 * time.Millisecond
	leastTimeout = 100 * time.Millisecond
)

// withDefaults fills in a copy and checks it.
func (o *Options) withDefaults() (Options, error) {
	var c Options
	if o != nil {
		c = *o
	}
	c.Lease = cmp.Or(c.Lease, 30*time.Second)
	c.MaxCrashes = cmp.Or(c.MaxCrashes, 5)
	c.MaxPayload = cmp.Or(c.MaxPayload, pawl.DefaultMaxPayload)
	c.Poll = cmp.Or(c.Poll, time.Second)
	c.Timeout = cmp.Or(c.Timeout, 30*time.Second)
	if c.Logger == nil {
		c.Logger = hclog.Default()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	refuse := func(field, format string, args ...any) (Options, error) {
		return c, &pawl.InvalidError{Field: field, Reason: fmt.Sprintf(format, args...)}
	}
	switch {
	case c.Lease < leastLease || c.Lease > mostLease:
		return refuse("Lease", "%v is not between %v and %v", c.Lease, leastLease, mostLease)
	case c.MaxCrashes < NoMaxCrashes:
		return refuse("MaxCrashes", "%d is negative", c.MaxCrashes)
	case c.MaxPayload < 0 || c.MaxPayload > pawl.MaxBatchBytes:
		return refuse("MaxPayload", "%d is not between 1 and %d bytes", c.MaxPayload, pawl.MaxBatchBytes)
	case c.Poll != NoPoll && c.Poll < leastPoll:
		return refuse("Poll", "%v is less than %v", c.Poll, leastPoll)
	case c.Timeout < leastTimeout:
		return refuse("Timeout", "%v is less than %v", c.Timeout, leastTimeout)
	}
	return c, nil
}
