package redis

import (
	"cmp"
	"fmt"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/redis/go-redis/v9"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/metrics"
)

// Options are the settings of a queue. A nil *Options, and every zero field, means the default.
type Options struct {
	// Name is the name of the queue on the server. Each app has its own. The default is the parameter "name" of the
	// URL, or else "pawl". A name has at most 48 letters, digits, dots, dashes, and underscores. All keys begin with
	// "{pawl:NAME}:", so they are in one slot of a cluster.
	Name string

	// Synced says that the server syncs each write to the disk before it answers. Use it for a server that forbids the
	// command CONFIG, so that Open cannot find this out.
	Synced bool

	// Lease is how long a lease lasts unless it is extended. The default is 30 s, the minimum
	// 1 s, and the maximum a year.
	Lease time.Duration

	// MaxCrashes is how many consecutive leases may expire before the job becomes dead as poison. The default is 5.
	// NoMaxCrashes removes the limit. All processes of a queue use the same number.
	MaxCrashes int

	// MaxPayload is the maximum size of one payload in bytes. The default is 1 MiB, the maximum
	// 64 MiB.
	MaxPayload int

	// Poll is how often a queue with waiting fetches looks for changes for which it got no notification. The
	// default is 1 s, the minimum 10 ms. NoPoll is for a queue with a single process: it also turns off listening.
	Poll time.Duration

	// NoListen turns off notifications to and from other processes, and saves a connection. The queue then
	// notices changes when it polls.
	NoListen bool

	// Existing makes Open return [ErrNotQueue] for a server without the queue, and create nothing.
	Existing bool

	// Timeout is how long a call waits for a server that does not answer. After the timeout, the call returns
	// [pawl.ErrUnknownOutcome], or ErrUnavailable if it has changed nothing. The default is 30 s, the minimum 100 ms.
	Timeout time.Duration

	// Logger gets one error-level line for each job that becomes dead, and one warning for each
	// crash. The default is hclog.Default().
	Logger pawl.Logger

	// OnEvent receives the transitions that calls of this process make, once they are durable. It must
	// neither block nor call the queue.
	OnEvent func(pawl.Event)

	// Collector gets the counters of those events. The rules of OnEvent apply to it.
	Collector metrics.Collector

	// Configure changes the settings of the client before it connects, such as those for TLS. Nil
	// changes nothing.
	Configure func(*redis.Options)

	// Now is the wall clock for delays, deadlines, and retention. The default is the clock of the server, so
	// that the clocks of several machines do not have to agree. Leases always use that clock, unless Now is set.
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
	mostName     = 48
)

// withDefaults fills in a copy and checks it. Named is the name in the URL, or "".
func (o *Options) withDefaults(named string) (Options, error) {
	var c Options
	if o != nil {
		c = *o
	}
	if c.Name != "" && named != "" && c.Name != named {
		return c, &pawl.InvalidError{Field: "Name", Reason: fmt.Sprintf("%.64q is not %.64q, the name in the URL; give one of them", c.Name, named)}
	}
	c.Name = cmp.Or(c.Name, named)
	c.Name = cmp.Or(c.Name, "pawl")
	c.Lease = cmp.Or(c.Lease, 30*time.Second)
	c.MaxCrashes = cmp.Or(c.MaxCrashes, 5)
	c.MaxPayload = cmp.Or(c.MaxPayload, pawl.DefaultMaxPayload)
	c.Poll = cmp.Or(c.Poll, time.Second)
	c.Timeout = cmp.Or(c.Timeout, 30*time.Second)
	if c.Logger == nil {
		c.Logger = hclog.Default()
	}
	refuse := func(field, format string, args ...any) (Options, error) {
		return c, &pawl.InvalidError{Field: field, Reason: fmt.Sprintf(format, args...)}
	}
	switch {
	case !isName(c.Name):
		return refuse("Name", "%.64q has other characters than letters, digits, dots, dashes and underscores, or more than %d", c.Name, mostName)
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

func isName(name string) bool {
	for _, r := range name {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '-' || r == '_') {
			return false
		}
	}
	return len(name) <= mostName
}
