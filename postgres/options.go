package postgres

import (
	"fmt"
	"regexp"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl"
)

// Options are the settings of a queue. A nil *Options, and every zero field, means the default.
type Options struct {
	// Schema is the schema of the database that has the tables of the queue. Each app has its
	// own. The default is "pawl". It has lower-case letters, digits and underscores, at most 48
	// of them, and begins with a letter.
	Schema string

	// Owner names this process. When a process opens the queue under the name of one that has
	// ended, it takes back that one's leases at once. Otherwise they are taken back when they
	// expire. No two processes use one name at the same time: the later one ends the leases of
	// the earlier one. The default is a name of its own, which has no predecessor.
	Owner string

	// Lease is how long a lease lasts unless it is extended. The default is 30 s, the least
	// 1 s.
	Lease time.Duration

	// MaxCrashes is how many leases in a row may end in a crash or an expiry before the job
	// becomes dead as poison. The default is 5; NoMaxCrashes turns it off.
	MaxCrashes int

	// MaxPayload is the most bytes of one job's payload. The default is 1 MiB, the most 64 MiB.
	MaxPayload int

	// Poll is how often the queue looks for what other processes changed: jobs for the fetches
	// that wait, and leases of processes that ended. The default is 1 s; NoPoll turns it off,
	// for a queue with a single process.
	Poll time.Duration

	// Timeout is how long a call waits for a server that is away. The default is 30 s. Then it
	// returns ErrUnavailable, or pawl.ErrUnknownOutcome if the connection broke during the
	// commit. The next call tries again.
	Timeout time.Duration

	// Logger gets one error-level line for each job that becomes dead, and one warning for each
	// crash and each lost connection. The default is hclog.Default().
	Logger pawl.Logger

	// OnEvent receives the transitions that this process makes, once they are durable. It must
	// neither block nor call the queue.
	OnEvent func(pawl.Event)

	// Collector gets the counters of those events, on the same terms.
	Collector pawl.Collector

	// Now is the wall clock, by which delayed jobs become due, deadlines pass and records are
	// kept. The default is the clock of the server, which all processes share; another clock is
	// for tests. Leases expire on monotonic time.
	Now func() time.Time
}

const (
	NoMaxCrashes = -1 // as Options.MaxCrashes lets a job crash forever
	NoPoll       = -1 // as Options.Poll turns polling off
)

// The least that Options take.
const (
	leastLease = time.Second
	leastPoll  = 10 * time.Millisecond
)

var schemas = regexp.MustCompile(`^[a-z][a-z0-9_]{0,47}$`)

// withDefaults fills in a copy and checks it.
func (o *Options) withDefaults() (Options, error) {
	var c Options
	if o != nil {
		c = *o
	}
	setDefault(&c.Schema, "pawl")
	setDefault(&c.Lease, 30*time.Second)
	setDefault(&c.MaxCrashes, 5)
	setDefault(&c.MaxPayload, pawl.DefaultMaxPayload)
	setDefault(&c.Poll, time.Second)
	setDefault(&c.Timeout, 30*time.Second)
	if c.Logger == nil {
		c.Logger = hclog.Default()
	}
	refuse := func(field, format string, args ...any) (Options, error) {
		return c, &pawl.InvalidError{Field: field, Reason: fmt.Sprintf(format, args...)}
	}
	switch {
	case !schemas.MatchString(c.Schema):
		return refuse("Schema", "%.64q does not match %s", c.Schema, schemas)
	case c.Lease < leastLease:
		return refuse("Lease", "%v is less than %v", c.Lease, leastLease)
	case c.MaxCrashes < NoMaxCrashes:
		return refuse("MaxCrashes", "%d is negative", c.MaxCrashes)
	case c.MaxPayload < 0 || c.MaxPayload > pawl.MaxBatchBytes:
		return refuse("MaxPayload", "%d is not between 1 and %d bytes", c.MaxPayload, pawl.MaxBatchBytes)
	case c.Poll != NoPoll && c.Poll < leastPoll:
		return refuse("Poll", "%v is less than %v", c.Poll, leastPoll)
	case c.Timeout < 0:
		return refuse("Timeout", "%v is negative", c.Timeout)
	}
	return c, nil
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
