package postgres

import (
	"cmp"
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
	// Schema is the schema of the database that has the tables of the queue. Each app has its own.
	// The default is "pawl". A name has at most 48 lower-case letters, digits, and underscores. It
	// begins with a letter, but not with pg_.
	Schema string

	// Owner names this process. A process that opens the queue under the name of an ended process
	// takes back the leases of that process immediately. Otherwise other processes take them back
	// when they expire. Two running processes must not share a name: the later one ends the
	// leases of the earlier one. The default is a new name for each process.
	Owner string

	// Lease is how long a lease lasts unless it is extended. The default is 30 s, the minimum
	// 1 s, and the maximum a year.
	Lease time.Duration

	// MaxCrashes is how many consecutive leases may end in a crash or an expiry before the job
	// becomes dead as poison. The default is 5. NoMaxCrashes removes the limit.
	MaxCrashes int

	// Limits has the limits of queues, by name. Open stores them in the database. They hold for all processes, from
	// their next fetch on, until a process declares others. The zero Limits remove the limits of a queue. A queue
	// without an entry keeps its limits. Limits that an operator has set stay in force: see [Queue.SetLimits].
	Limits map[string]pawl.Limits

	// MaxPayload is the maximum size of one payload in bytes. The default is 1 MiB, the maximum 64
	// MiB.
	MaxPayload int

	// Poll is how often the queue looks for changes by other processes for which it got no notification: jobs for
	// waiting fetches, due jobs, and leases of ended processes. The default is 1 s. NoPoll is for a queue with a single
	// process: it looks only for leases of earlier processes, and does not listen.
	Poll time.Duration

	// NoListen turns off notifications to and from other processes, and saves a connection. The
	// queue then notices changes when it polls. Set it where LISTEN does not work, such as behind a
	// pooler that gives each transaction another session.
	NoListen bool

	// Existing makes Open return ErrNotQueue for a schema without a queue, and create nothing.
	Existing bool

	// Timeout is how long a call waits for a server that cannot be reached, and how long a read-only statement may
	// take. The default is 30 s, the minimum 100 ms. After the timeout, the call returns ErrUnavailable, or
	// pawl.ErrUnknownOutcome if the connection broke during the commit. The next call tries again.
	Timeout time.Duration

	// Logger gets one error-level line for each job that becomes dead, and one warning for each
	// crash and each lost connection. The default is hclog.Default().
	Logger pawl.Logger

	// OnEvent receives the transitions that this process makes, once they are durable. It must
	// neither block nor call the queue.
	OnEvent func(pawl.Event)

	// Collector gets the counters of those events. The rules of OnEvent apply to it.
	Collector metrics.Collector

	// Now is the wall clock for delays, deadlines, and retention. The default is the clock of the
	// server, which all processes share. Set another clock only in tests. Leases expire on
	// monotonic time.
	Now func() time.Time
}

const (
	NoMaxCrashes = -1 // value of Options.MaxCrashes: no limit
	NoPoll       = -1 // value of Options.Poll: no polling
)

// session returns the settings of the scheduler's session. A process that stops during a transaction
// loses its locks before its lease and within idleLimit, and a group does not wait long for the locks of another transaction.
// Plans assume many jobs, even if the server's statistics say that the table was empty a minute ago.
func (o *Options) session() string {
	return keepAlive + fmt.Sprintf(`; SET idle_in_transaction_session_timeout = %d; SET lock_timeout = %d;
SET plan_cache_mode = force_generic_plan; SET jit = off; SET enable_seqscan = off; SET enable_hashjoin = off`,
		min(o.Lease/2, idleLimit).Milliseconds(), lockWait(o.Lease).Milliseconds())
}

// keepAlive makes the server notice that a client is gone.
const keepAlive = `SET tcp_keepalives_idle = 60; SET tcp_keepalives_interval = 10; SET tcp_keepalives_count = 6`

// The minimum and maximum values of Options.
const (
	leastLease   = time.Second
	mostLease    = 365 * 24 * time.Hour
	leastPoll    = 10 * time.Millisecond
	leastTimeout = 100 * time.Millisecond
)

// idleLimit is how long a transaction may be idle, even if leases are long. The server refuses more than 24 days.
const idleLimit = time.Hour

var schemas = regexp.MustCompile(`^[a-z][a-z0-9_]{0,47}$`)

// withDefaults fills in a copy and checks it.
func (o *Options) withDefaults() (Options, error) {
	var c Options
	if o != nil {
		c = *o
	}
	c.Schema = cmp.Or(c.Schema, "pawl")
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
