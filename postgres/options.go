package postgres

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/metrics"
)

// Options are the settings of a queue. A nil *Options, and every zero field, means the default.
type Options struct {
	// Schema is the schema of the database that has the tables of the queue. Each app has its
	// own. The default is "pawl". At most 48 lower-case letters, digits and underscores, the
	// first a letter, and not pg_ in front.
	Schema string

	// Owner names this process. When a process opens the queue under the name of one that has
	// ended, it takes back that one's leases at once. Otherwise a process that is there takes them
	// back when they expire. No two processes use one name at the same time: the later one ends
	// the leases of the earlier one. The default is a name of its own, which has no predecessor.
	Owner string

	// Lease is how long a lease lasts unless it is extended. The default is 30 s, the minimum
	// 1 s, and the maximum a year.
	Lease time.Duration

	// MaxCrashes is how many leases in a row may end in a crash or an expiry before the job
	// becomes dead as poison. The default is 5; NoMaxCrashes turns it off.
	MaxCrashes int

	// Limits bound the jobs of queues that run and that wait, and how often they start, by name. Open stores them in the database,
	// so they hold for all processes, from their next fetch on, until one declares others. The zero Limits remove
	// those of a queue. A queue that is not named keeps its limits. Limits that an operator has set stay in force: see
	// [Queue.SetLimits].
	Limits map[string]pawl.Limits

	// MaxPayload is the most bytes of one job's payload. The default is 1 MiB, the
	// maximum 64 MiB.
	MaxPayload int

	// Poll is how often the queue looks for what other processes changed and did not notify it of:
	// jobs for the fetches that wait, what falls due, and leases of processes that ended. The default
	// is 1 s. NoPoll is for a queue with a single process, which looks only for leases of earlier
	// processes, and does not listen.
	Poll time.Duration

	// NoListen has the queue neither notify other processes nor listen to them, which takes a
	// connection of its own. It learns of what they change by its polls alone. Set it where LISTEN
	// does not work, such as behind a pooler that gives each transaction another session.
	NoListen bool

	// Existing has Open refuse a schema without a queue, with ErrNotQueue, and create nothing.
	Existing bool

	// Timeout is how long a call waits for a server that cannot be reached, and how long a statement that only
	// reads may take. The default is 30 s, the minimum 100 ms. After it, a call returns ErrUnavailable, or
	// pawl.ErrUnknownOutcome if the connection broke during the commit. The next call tries again.
	Timeout time.Duration

	// Logger gets one error-level line for each job that becomes dead, and one warning for each
	// crash and each lost connection. The default is hclog.Default().
	Logger pawl.Logger

	// OnEvent receives the transitions that this process makes, once they are durable. It must
	// neither block nor call the queue.
	OnEvent func(pawl.Event)

	// Collector gets the counters of those events, on the same terms.
	Collector metrics.Collector

	// Now is the wall clock, by which delayed jobs become due, deadlines pass and records are
	// kept. The default is the clock of the server, which all processes share; another clock is
	// for tests. Leases expire on monotonic time.
	Now func() time.Time
}

const (
	NoMaxCrashes = -1 // as Options.MaxCrashes lets a job crash forever
	NoPoll       = -1 // as Options.Poll turns polling off
)

// session returns the settings of the scheduler's session. A process that stops amid a transaction
// loses its locks before its lease, and a group does not wait for the locks of another for long.
// The plans are those for many jobs, whatever the server believes of a table that was empty a
// minute ago.
func (o *Options) session() string {
	return keepAlive + fmt.Sprintf(`; SET idle_in_transaction_session_timeout = %d; SET lock_timeout = %d;
SET plan_cache_mode = force_generic_plan; SET jit = off; SET enable_seqscan = off; SET enable_hashjoin = off`,
		(o.Lease/2).Milliseconds(), lockWait(o.Lease).Milliseconds())
}

// keepAlive has the server notice that a client is gone.
const keepAlive = `SET tcp_keepalives_idle = 60; SET tcp_keepalives_interval = 10; SET tcp_keepalives_count = 6`

// The least and the most that Options take.
const (
	leastLease   = time.Second
	mostLease    = 365 * 24 * time.Hour
	leastPoll    = 10 * time.Millisecond
	leastTimeout = 100 * time.Millisecond
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
	case strings.HasPrefix(c.Schema, "pg_"):
		return refuse("Schema", "%s begins with pg_, which belongs to the server", c.Schema)
	case c.Lease < leastLease || c.Lease > mostLease:
		return refuse("Lease", "%v is not between %v and %v", c.Lease, leastLease, mostLease)
	case c.MaxCrashes < NoMaxCrashes:
		return refuse("MaxCrashes", "%d is negative", c.MaxCrashes)
	case c.MaxPayload < 0 || c.MaxPayload > pawl.MaxBatchBytes:
		return refuse("MaxPayload", "%d is not between 1 and %d bytes", c.MaxPayload, pawl.MaxBatchBytes)
	case c.Poll != NoPoll && c.Poll < leastPoll:
		return refuse("Poll", "%v is less than %v", c.Poll, leastPoll)
	case checkLimits(c.Limits) != nil:
		return c, checkLimits(c.Limits)
	case c.Timeout < leastTimeout:
		return refuse("Timeout", "%v is less than %v", c.Timeout, leastTimeout)
	}
	return c, nil
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
