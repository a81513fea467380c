package connect

import (
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
)

// Options are the settings of a [Client]. A nil *Options and every zero field mean the default.
type Options struct {
	// Queue configures the queue while this process owns the file. Its LockTimeout is ignored. Give
	// every process the same options: those of the owner apply.
	Queue *bolt.Options

	// Name is the name of the program that operators see. The default is the name of its file.
	Name string

	// Timeout is how long a call looks for the file, or for its owner, before it fails. A new owner
	// needs time to open a large file. The default is 5 s. See admin.DialOptions for how long a call
	// waits for an answer.
	Timeout time.Duration

	// Logger gets a line when this process becomes the owner, and when it gives the file up. The
	// default is hclog.Default().
	Logger pawl.Logger
}

// complete returns a checked copy with the defaults filled in.
func (o *Options) complete() (Options, error) {
	var c Options
	if o != nil {
		c = *o
	}
	if c.Timeout < 0 {
		return c, &pawl.InvalidError{Field: "Timeout", Reason: c.Timeout.String() + " is negative"}
	}
	if c.Timeout == 0 {
		c.Timeout = 5 * time.Second
	}
	if c.Logger == nil {
		c.Logger = hclog.Default()
	}
	var queue bolt.Options
	if c.Queue != nil {
		queue = *c.Queue
	}
	queue.LockTimeout = 1 // the client itself waits
	if queue.Logger == nil {
		queue.Logger = c.Logger
	}
	c.Queue = &queue
	return c, nil
}
