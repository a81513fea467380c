package jetstream

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/nats-io/nats.go"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/metrics"
)

// Options are the settings of a queue. A nil *Options, and every zero field, means the default.
type Options struct {
	// Prefix begins the names of the subjects and, in upper case, of the streams, so that several apps can share a
	// server. It has at most 32 bytes: lower-case letters, digits, and "_". The default is "pawl".
	Prefix string

	// Lease is how long a lease lasts unless it is extended. The default is 30 s, the minimum 100 ms. The consumer on
	// the server has the length, so the first process that fetches a kind from a queue decides for all. A process with
	// another length logs a warning and uses that of the consumer.
	Lease time.Duration

	// MaxCrashes is how many leases of a job may end without a settlement before it is dead as
	// poison. The default is 5. NoMaxCrashes removes the limit.
	MaxCrashes int

	// MaxPayload is the maximum size of one payload in bytes. The default is 1 MiB, or what the server
	// takes if that is less.
	MaxPayload int

	// Replicas is the number of servers in the cluster that keep each job. It counts only if Open creates the streams.
	// The default is 1.
	Replicas int

	// Synced declares that every server runs with "sync_interval: always", which the servers do not report.
	Synced bool

	// Timeout is how long to wait for a connection or an answer. The default is 10 s.
	Timeout time.Duration

	// NATS are options of the connection, such as nats.UserCredentials and nats.RootCAs.
	NATS []nats.Option

	// Logger gets one error-level line for each job that this process makes dead. The default is hclog.Default().
	Logger pawl.Logger

	// OnEvent receives the transitions that this process makes, after the server has answered. It
	// must not block, and may be called from several goroutines.
	OnEvent func(pawl.Event)

	// Collector gets the counters of those events. The rules of OnEvent apply to it.
	Collector metrics.Collector
}

// NoMaxCrashes value of Options.MaxCrashes: no limit.
const NoMaxCrashes = -1

const (
	maxPrefix = 32
	minLease  = 100 * time.Millisecond
)

// withDefaults fills in a copy and checks it.
func (o *Options) withDefaults() (Options, error) {
	var c Options
	if o != nil {
		c = *o
	}
	c.Prefix = cmp.Or(c.Prefix, "pawl")
	c.Lease = cmp.Or(c.Lease, 30*time.Second)
	c.MaxCrashes = cmp.Or(c.MaxCrashes, 5)
	c.Replicas = cmp.Or(c.Replicas, 1)
	c.Timeout = cmp.Or(c.Timeout, 10*time.Second)
	if c.Logger == nil {
		c.Logger = hclog.Default()
	}
	switch {
	case len(c.Prefix) > maxPrefix || strings.Trim(c.Prefix, "abcdefghijklmnopqrstuvwxyz0123456789_") != "":
		return c, invalid("Prefix", "%.64q has more than %d bytes, or one that is no lower-case letter, digit, or _", c.Prefix, maxPrefix)
	case c.Lease < minLease:
		return c, invalid("Lease", "%v is less than %v", c.Lease, minLease)
	case c.MaxCrashes < NoMaxCrashes:
		return c, invalid("MaxCrashes", "%d is negative", c.MaxCrashes)
	case c.MaxPayload < 0:
		return c, invalid("MaxPayload", "%d is negative", c.MaxPayload)
	case c.Replicas < 0:
		return c, invalid("Replicas", "%d is negative", c.Replicas)
	case c.Timeout < 0:
		return c, invalid("Timeout", "%v is negative", c.Timeout)
	}
	return c, nil
}

func invalid(field, format string, args ...any) error {
	return &pawl.InvalidError{Field: field, Reason: fmt.Sprintf(format, args...)}
}
