package bolt

import (
	"cmp"
	"fmt"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/metrics"
)

// Options are the settings of a queue. A nil *Options and every zero field mean the default.
type Options struct {
	// Lease is how long a lease lasts unless it is extended. The default is 30 s, the minimum 1
	// s.
	Lease time.Duration

	// MaxCrashes is how many consecutive leases may end in a crash or an expiry before the job
	// becomes dead as poison. The default is 5. NoMaxCrashes removes the limit.
	MaxCrashes int

	// MaxPayload is the largest payload of a job in bytes. The default is 1 MiB, the maximum 64
	// MiB.
	MaxPayload int

	// MaxBytes bounds the bytes of the file that are in use, including those of the app's own
	// buckets. An Enqueue, an EnqueueTx, or a Restore that would exceed it returns ErrFull and
	// stores nothing. Stored jobs still run and end. Workflow runs, jobs of schedules, and callbacks
	// of groups may exceed the bound, and so may one commit, by a few percent. The file itself is
	// longer: it never shrinks, it keeps free pages for reuse, and it keeps old pages during a long
	// read. Leave room for that on the disk. The minimum is 1 MiB. The default is 0, which means no
	// bound.
	MaxBytes int64

	// Limits has the limits of queues, by name. Open stores them in the file. They hold for every later opener until
	// one declares others. The zero Limits remove those of a queue. A queue without an entry keeps its limits. When
	// limits per key change, Open reads every job of the queue that has a key. Limits that an operator has set stay in
	// force: see [Queue.SetLimits]. The default is no entry.
	Limits map[string]pawl.Limits

	// LockTimeout is how long Open waits for another process to release the file before it
	// fails with ErrLocked. The default is 1 s.
	LockTimeout time.Duration

	// Insecure lets Open accept a file that belongs to another user, is writable by everybody,
	// lies in such a folder, or is a symbolic link. Others may then store jobs, which handlers
	// run with the rights of this process. By default Open refuses the file with ErrInsecure.
	Insecure bool

	// Logger gets one error-level line for each job that becomes dead, and a few other lines. The
	// default is hclog.Default().
	Logger pawl.Logger

	// OnEvent receives every transition once it is durable. Most calls come between two commits, in
	// order. The goroutine that fetched jobs reports the fetch, and the goroutine that committed an
	// app's transaction reports its events. So OnEvent is called from several goroutines. It must
	// be short, and must not call the queue. The default is nil.
	OnEvent func(pawl.Event)

	// Collector gets the counters derived from events; see driver.CountEvent. The rules of OnEvent
	// apply to it. The default is nil.
	Collector metrics.Collector

	// Now is the wall clock that decides when delayed jobs become due. The default is time.Now. Several
	// goroutines call it at the same time. Leases do not use it: they expire on monotonic time.
	Now func() time.Time
}

// NoMaxCrashes is the value of Options.MaxCrashes for no limit.
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
	c.LockTimeout = cmp.Or(c.LockTimeout, time.Second)
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
	case checkBound(c.MaxBytes) != nil:
		return c, checkBound(c.MaxBytes)
	case c.Limits != nil && checkLimits(c.Limits) != nil:
		return c, checkLimits(c.Limits)
	case c.LockTimeout < 0:
		return c, &pawl.InvalidError{Field: "LockTimeout", Reason: fmt.Sprintf("%v is negative", c.LockTimeout)}
	}
	if c.MaxCrashes == NoMaxCrashes {
		c.MaxCrashes = 0
	}
	return c, nil
}
