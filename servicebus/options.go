package servicebus

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/metrics"
)

// Options are the settings of a queue. A nil *Options, and every zero field, means the default.
type Options struct {
	// Prefix begins the names of the Service Bus queues, so that several apps can share a namespace. It has at most 32
	// bytes: lower-case letters, digits, "-", and ".". The default is "pawl".
	Prefix string

	// Credential authorizes the connection if the place is only the name of a namespace, such as
	// "app.servicebus.windows.net". Package azidentity has credentials.
	Credential azcore.TokenCredential

	// Lock is the lock duration of the Service Bus queues, which the protocol does not report. The default is 1 minute,
	// as in Service Bus. The minimum is 500 ms, and Service Bus takes from 5 s to 5 minutes. A lease is shorter than
	// the lock by a fifth, but by at most 2 s. If the queues lock for less than Lock, the log has a warning, and leases
	// may be lost.
	Lock time.Duration

	// MaxCrashes is how many leases of a job may end without a settlement before it is dead as poison. The default is
	// 5. NoMaxCrashes removes the limit. The maximum delivery count of the Service Bus queues has to be larger.
	MaxCrashes int

	// MaxMessage is the maximum size of a message in bytes, as the tier of the namespace sets it. The default is
	// 256 KiB, the maximum of the standard tier.
	MaxMessage int

	// MaxPayload is the maximum size of one payload in bytes. The default is what fits into MaxMessage, but at
	// most 1 MiB.
	MaxPayload int

	// Timeout is how long to wait for a connection or an answer. The default is 10 s.
	Timeout time.Duration

	// Logger gets one error-level line for each job that this process makes dead. The default is hclog.Default().
	Logger pawl.Logger

	// OnEvent receives the transitions that this process makes, after the service has answered. It
	// must not block, and may be called from several goroutines.
	OnEvent func(pawl.Event)

	// Collector gets the counters of those events. The rules of OnEvent apply to it.
	Collector metrics.Collector
}

// NoMaxCrashes value of Options.MaxCrashes: no limit.
const NoMaxCrashes = -1

const (
	maxPrefix  = 32
	minLock    = 500 * time.Millisecond
	maxMargin  = 2 * time.Second
	headerRoom = 4 << 10 // what the parts of a message beside its body take at most, with a margin
	minMessage = 16 << 10
)

// withDefaults fills in a copy and checks it.
func (o *Options) withDefaults() (Options, error) {
	var c Options
	if o != nil {
		c = *o
	}
	c.Prefix = cmp.Or(c.Prefix, "pawl")
	c.Lock = cmp.Or(c.Lock, time.Minute)
	c.MaxCrashes = cmp.Or(c.MaxCrashes, 5)
	c.MaxMessage = cmp.Or(c.MaxMessage, 256<<10)
	c.Timeout = cmp.Or(c.Timeout, 10*time.Second)
	if c.Logger == nil {
		c.Logger = hclog.Default()
	}
	switch {
	case len(c.Prefix) > maxPrefix || strings.Trim(c.Prefix, "abcdefghijklmnopqrstuvwxyz0123456789.-") != "":
		return c, invalid("Prefix", "%.64q has more than %d bytes, or one that is no lower-case letter, digit, - or .", c.Prefix, maxPrefix)
	case c.Lock < minLock:
		return c, invalid("Lock", "%v is less than %v", c.Lock, minLock)
	case c.MaxCrashes < NoMaxCrashes:
		return c, invalid("MaxCrashes", "%d is negative", c.MaxCrashes)
	case c.MaxMessage < minMessage:
		return c, invalid("MaxMessage", "%d is less than %d", c.MaxMessage, minMessage)
	case c.MaxPayload < 0:
		return c, invalid("MaxPayload", "%d is negative", c.MaxPayload)
	case c.Timeout < 0:
		return c, invalid("Timeout", "%v is negative", c.Timeout)
	}
	return c, nil
}

func invalid(field, format string, args ...any) error {
	return &pawl.InvalidError{Field: field, Reason: fmt.Sprintf(format, args...)}
}
