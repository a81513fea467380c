package bolt

import (
	"fmt"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl"
)

// Options are the settings of a queue. A nil *Options, and every zero field, means
// the default.
type Options struct {
	// Lease is how long a lease lasts unless it is extended. The default is 30 s,
	// the least 1 s.
	Lease time.Duration

	// MaxCrashes is how many leases in a row may end in a crash or an expiry before
	// the job goes to the dead letters as poison. The default is 5; NoMaxCrashes
	// turns it off.
	MaxCrashes int

	// MaxPayload is the most bytes of one job's payload. The default is 1 MiB, the
	// most 64 MiB.
	MaxPayload int

	// LockTimeout is how long Open waits for another process to let go of the file
	// before it fails with ErrLocked. The default is 1 s.
	LockTimeout time.Duration

	// Insecure lets Open take a file that belongs to somebody else, that everybody may
	// write to, that lies in such a folder, or that is a symbolic link. Others may then
	// store jobs, and handlers run them with the rights of this process. The default is to
	// refuse it with ErrInsecure.
	Insecure bool

	// Logger gets one error-level line for each job that dies, and a few others.
	// The default is hclog.Default().
	Logger pawl.Logger

	// OnEvent is told of every transition once it is durable. Most are told between two
	// commits, in their order; that jobs were fetched is told by whoever fetched them, and
	// the events of a transaction of the app's by whoever committed it. So it is called
	// from several goroutines, must be short, and must not call the queue. The default is
	// nobody.
	OnEvent func(pawl.Event)

	// Collector gets the counters that events stand for; see pawl.Count. The same holds
	// for it. The default is none.
	Collector pawl.Collector

	// Now is the wall clock, by which delayed jobs become due. The default is
	// time.Now. It is called from several goroutines at once. Leases do not use it:
	// they expire on monotonic time.
	Now func() time.Time
}

// NoMaxCrashes as Options.MaxCrashes lets a job crash for ever.
const NoMaxCrashes = -1

// withDefaults fills in a copy and checks it.
func (o *Options) withDefaults() (Options, error) {
	var c Options
	if o != nil {
		c = *o
	}
	setDefault(&c.Lease, 30*time.Second)
	setDefault(&c.MaxCrashes, 5)
	setDefault(&c.MaxPayload, pawl.DefaultMaxPayload)
	setDefault(&c.LockTimeout, time.Second)
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
	case c.LockTimeout < 0:
		return c, &pawl.InvalidError{Field: "LockTimeout", Reason: fmt.Sprintf("%v is negative", c.LockTimeout)}
	}
	if c.MaxCrashes == NoMaxCrashes {
		c.MaxCrashes = 0
	}
	return c, nil
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
