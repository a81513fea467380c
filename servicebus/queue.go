package servicebus

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/engine"
	"github.com/gopawl/pawl/internal/transport"
)

// ErrUnavailable says that the service cannot be reached, did not answer in time, refuses the credentials, or lacks
// the Service Bus queue of a kind. The next call may succeed.
var ErrUnavailable = driver.NewSentinel("servicebus_unavailable", "the service is not available")

func init() {
	engine.RegisterPath("servicebus", func(ctx context.Context, where string) (engine.Queue, error) {
		q, err := Open(ctx, where, nil)
		if err != nil {
			return nil, err // not a nil *Queue in an interface
		}
		return q, nil
	})
}

// Queue is a queue in a Service Bus namespace. Its methods are safe for concurrent use.
type Queue struct {
	opts    Options
	address string                               // of the namespace
	secret  string                               // which no error may contain
	dial    func() (*azservicebus.Client, error) // does not connect yet
	lease   time.Duration
	leases  transport.Leases[received]
	turns   transport.Turns
	pulls   atomic.Int64 // says which line is first
	warned  atomic.Bool  // of another lock duration
	ending  sync.WaitGroup

	mu     sync.Mutex // guards what follows
	closed bool
	conn   *conn // nil if there is none
	lines  map[string]lineName
}

// lineName names a line that this process has used.
type lineName struct{ queue, kind string }

var _ pawl.Queue = (*Queue)(nil)

// Open opens the queue in a namespace. The place is a connection string, such as
// "Endpoint=sb://app.servicebus.windows.net/;SharedAccessKeyName=app;SharedAccessKey=...", or with Options.Credential only
// the name of the namespace. Open does not connect; the first call does.
//
// Errors: pawl.ErrInvalid for a bad place or option. No error contains an access key.
func Open(_ context.Context, where string, opts *Options) (*Queue, error) {
	o, err := opts.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("open queue: %w", err)
	}
	q := &Queue{opts: o, lines: make(map[string]lineName)}
	q.lease = o.Lock - min(maxMargin, o.Lock/5)
	q.opts.MaxPayload = cmp.Or(q.opts.MaxPayload, min(pawl.DefaultMaxPayload, o.MaxMessage-headerRoom-transport.BodyHeader-transport.HistoryRoom))
	q.leases.MaxCrashes, q.leases.CountsCrashes, q.leases.MaxBody = o.MaxCrashes, true, o.MaxMessage-headerRoom
	q.leases.Reporter = driver.Reporter{Logger: o.Logger, Collector: o.Collector, OnEvent: o.OnEvent}
	q.leases.Finish, q.leases.Renew, q.leases.Discard, q.leases.Expired = q.finish, q.renew, q.discard, q.expired
	if err := q.parsePlace(where); err != nil {
		return nil, fmt.Errorf("open queue: %w", err)
	}
	return q, nil
}

// parsePlace reads a place, and decides how to dial.
func (q *Queue) parsePlace(where string) error {
	// The queue decides itself what to try again: the client would store a message twice if the answer is lost.
	options := &azservicebus.ClientOptions{ApplicationID: "pawl", RetryOptions: azservicebus.RetryOptions{MaxRetries: -1}}
	where = strings.TrimSpace(where)
	if q.opts.Credential != nil {
		if where == "" || strings.ContainsAny(where, "=;/:@ ") {
			return invalid("place", "with a Credential it is the name of a namespace, such as app.servicebus.windows.net")
		}
		q.address = where
		q.dial = func() (*azservicebus.Client, error) {
			return azservicebus.NewClient(where, q.opts.Credential, options)
		}
		return nil
	}
	parts := connectionString(where)
	u, err := url.Parse(parts["endpoint"])
	switch {
	case parts["sharedaccesskeyname"] == "" || parts["sharedaccesskey"] == "" && parts["sharedaccesssignature"] == "":
		return invalid("place", "it is no connection string such as Endpoint=sb://app.servicebus.windows.net/;SharedAccessKeyName=app;SharedAccessKey=...")
	case err != nil || u.Scheme != "sb" || u.Hostname() == "" || u.User != nil:
		return invalid("place", "its Endpoint is no address such as sb://app.servicebus.windows.net/")
	case parts["entitypath"] != "":
		return invalid("place", "it has an EntityPath, and each kind has a Service Bus queue of its own; use a connection string of the namespace")
	}
	q.address, q.secret = u.Host, cmp.Or(parts["sharedaccesskey"], parts["sharedaccesssignature"])
	q.dial = func() (*azservicebus.Client, error) {
		return azservicebus.NewClientFromConnectionString(where, options)
	}
	if _, err := q.dial(); err != nil { // it reads the text, and does not connect
		return invalid("place", "the client refuses the connection string: %s", q.text(err))
	}
	return nil
}

// connectionString returns the parts of a connection string by their names in lower case.
func connectionString(text string) map[string]string {
	parts := make(map[string]string)
	for part := range strings.SplitSeq(text, ";") {
		name, value, _ := strings.Cut(part, "=")
		parts[strings.ToLower(name)] = value
	}
	return parts
}

// abilities are those of every queue. The service answers when a message is on its storage.
const abilities = pawl.Shared | pawl.Synced

// Abilities implements [driver.Able].
func (q *Queue) Abilities() pawl.Ability { return abilities }

// MaxPayload returns the maximum size of one payload in bytes. A job with large headers or keys has
// less room.
func (q *Queue) MaxPayload() int { return q.opts.MaxPayload }

// Close waits at most Options.Timeout for the answers to calls that change something. Then it ends the connection.
// Waiting fetches and all later calls return [pawl.ErrClosed]. Leases continue at the service until they expire, which
// counts as a crash. Stop workers first.
func (q *Queue) Close() error {
	q.leases.Gate.Close()
	q.leases.Grants.Close()
	q.mu.Lock()
	c := q.conn
	q.closed = true
	q.mu.Unlock()
	q.leave(c)
	q.ending.Wait()
	return nil
}

// Settle implements [pawl.Queue].
func (q *Queue) Settle(ctx context.Context, settlements ...pawl.Settlement) error {
	if err := driver.SupportsSettle(abilities, settlements); err != nil {
		return fmt.Errorf("servicebus: %w", err)
	}
	return q.leases.Settle(ctx, settlements...)
}

// Extend implements [pawl.Queue].
func (q *Queue) Extend(ctx context.Context, leases ...*pawl.Lease) (lost []*pawl.Lease, err error) {
	return q.leases.Extend(ctx, leases...)
}

// Reap implements [pawl.Queue]. The service takes expired leases back by itself, so it returns 0.
func (q *Queue) Reap(ctx context.Context) (int, error) { return q.leases.Reap(ctx) }

// names makes parts of the names of Service Bus queues, which ignore the case of letters.
var names = transport.Escaping{Mark: '_', Plain: "abcdefghijklmnopqrstuvwxyz0123456789.-"}

// maxEntity is the longest name of a Service Bus queue.
const maxEntity = 260

// EntityName returns the name of the Service Bus queue that has the jobs of a kind in a queue, such as
// "pawl/default/mail.welcome". Prefix is that of the options. Create a Service Bus queue for each kind before a
// worker or an Enqueue uses it.
func EntityName(prefix, queue, kind string) string {
	return prefix + "/" + names.Escape(queue) + "/" + names.Escape(kind)
}

// line returns the name of the line of a kind, and notes it for Stats.
func (q *Queue) line(queue, kind string) string {
	name := EntityName(q.opts.Prefix, queue, kind)
	if len(name) > maxEntity {
		return ""
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lines[name] = lineName{queue, kind}
	return name
}
