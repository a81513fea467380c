package jetstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/engine"
	"github.com/gopawl/pawl/internal/transport"
)

// ErrUnavailable says that the server cannot be reached or did not answer in time. The next call may
// succeed.
var ErrUnavailable = driver.NewSentinel("jetstream_unavailable", "the server is not available")

func init() {
	engine.Register("nats", func(ctx context.Context, where string) (engine.Queue, error) {
		q, err := Open(ctx, where, nil)
		if err != nil {
			return nil, err // not a nil *Queue in an interface
		}
		return q, nil
	})
}

// Queue is a queue in a stream. Its methods are safe for concurrent use.
type Queue struct {
	opts     Options
	address  string // without a password
	leases   transport.Leases[delivered]
	turns    transport.Turns
	pulls    atomic.Int64 // says which line is first
	nc       *nats.Conn
	replies  replies
	js       jetstream.JetStream
	stream   jetstream.Stream
	dead     jetstream.Stream
	mu       sync.Mutex // guards what follows
	lost     chan struct{}
	consumer map[string]*consumer // by line
}

// margin is how much longer the server leases a job than this process does. So the process that has the job ends
// the lease first, and an answer that is under way then does not reach the lease of another process.
const margin = 2 * time.Second

var _ pawl.Queue = (*Queue)(nil)

// Open connects to the server at a URL such as "nats://localhost:4222", or to one of several servers,
// "nats://a:4222,nats://b:4222", and creates the two streams of the queue if they do not exist.
//
// Errors: [pawl.ErrInvalid] for a bad URL or option, and for a stream that does not keep jobs as this package needs it;
// [ErrUnavailable]; and [pawl.ErrUnsupported] for a server before version 2.12, or without JetStream.
func Open(ctx context.Context, where string, opts *Options) (*Queue, error) {
	o, err := opts.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("open queue: %w", err)
	}
	q := &Queue{opts: o, lost: make(chan struct{}), consumer: make(map[string]*consumer)}
	q.leases.MaxCrashes, q.leases.CountsCrashes = o.MaxCrashes, true
	q.leases.Reporter = driver.Reporter{Logger: o.Logger, Collector: o.Collector, OnEvent: o.OnEvent}
	q.leases.Finish, q.leases.Renew, q.leases.Discard, q.leases.Expired = q.finish, q.renew, q.discard, q.expired
	if q.address, err = parsePlace(where); err == nil {
		err = q.connect(ctx, where)
	}
	if err != nil {
		_ = q.Close()
		return nil, fmt.Errorf("open queue: %w", err)
	}
	return q, nil
}

// parsePlace returns a place without passwords.
func parsePlace(where string) (string, error) {
	var hosts []string
	for place := range strings.SplitSeq(where, ",") {
		u, err := url.Parse(strings.TrimSpace(place))
		if err != nil || u.Scheme != "nats" || u.Hostname() == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
			return "", invalid("place", "it is no URL such as nats://localhost:4222, and no list of those with commas")
		}
		hosts = append(hosts, u.Host)
	}
	return strings.Join(hosts, ","), nil
}

// connect opens the connection and the streams.
func (q *Queue) connect(ctx context.Context, where string) (err error) {
	options := append([]nats.Option{
		nats.Name("pawl"), nats.Timeout(q.opts.Timeout), nats.MaxReconnects(-1), nats.ReconnectWait(100 * time.Millisecond),
		nats.ReconnectJitter(100*time.Millisecond, 100*time.Millisecond), nats.ReconnectBufSize(-1),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), // each call returns its own
	}, q.opts.NATS...)
	options = append(options, nats.DisconnectErrHandler(func(*nats.Conn, error) { q.disconnected() }))
	if q.nc, err = nats.Connect(where, options...); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrUnavailable, q.address, err)
	}
	var major, minor int
	if _, err := fmt.Sscanf(q.nc.ConnectedServerVersion(), "%d.%d", &major, &minor); err != nil || major < 2 || major == 2 && minor < 12 {
		return fmt.Errorf("%w: NATS server %.32q; version 2.12 or later is needed", pawl.ErrUnsupported, q.nc.ConnectedServerVersion())
	}
	if q.js, err = jetstream.New(q.nc, jetstream.WithDefaultTimeout(q.opts.Timeout)); err != nil {
		return err
	}
	if err = q.replies.open(q.nc); err != nil {
		return q.unavailable(err)
	}
	q.leases.MaxBody = int(q.nc.MaxPayload()) - headerRoom
	room := q.leases.MaxBody - transport.BodyHeader - transport.HistoryRoom
	if room < 1<<10 {
		return fmt.Errorf("%w: the server takes messages of %d bytes; raise its max_payload", pawl.ErrUnsupported, q.nc.MaxPayload())
	}
	q.opts.MaxPayload = cmp.Or(q.opts.MaxPayload, min(pawl.DefaultMaxPayload, room))
	return q.openStreams(ctx)
}

// headerRoom is what the headers of a message take at most, with a margin.
const headerRoom = 4 << 10

// openStreams opens the stream of jobs and the stream of dead jobs.
func (q *Queue) openStreams(ctx context.Context) (err error) {
	name := strings.ToUpper(q.opts.Prefix)
	jobs := jetstream.StreamConfig{
		Name: name, Subjects: []string{q.opts.Prefix + ".job.>", q.opts.Prefix + ".delayed.>"}, Description: "jobs of pawl",
		Retention: jetstream.WorkQueuePolicy, Storage: jetstream.FileStorage, // the server takes no Discard with schedules
		Replicas: q.opts.Replicas, AllowMsgSchedules: true,
	}
	if q.stream, err = q.openStream(ctx, jobs); err != nil {
		return err
	}
	q.dead, err = q.openStream(ctx, jetstream.StreamConfig{
		Name: name + "_DEAD", Subjects: []string{q.opts.Prefix + ".dead.>"}, Description: "dead jobs of pawl",
		Retention: jetstream.LimitsPolicy, Storage: jetstream.FileStorage, Discard: jetstream.DiscardNew, Replicas: q.opts.Replicas,
	})
	return err
}

// openStream opens a stream, or creates it. A stream that drops jobs is refused.
func (q *Queue) openStream(ctx context.Context, want jetstream.StreamConfig) (jetstream.Stream, error) {
	s, err := q.js.Stream(ctx, want.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		if s, err = q.js.CreateStream(ctx, want); errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			s, err = q.js.Stream(ctx, want.Name) // somebody else was faster
		}
	}
	switch {
	case errors.Is(err, jetstream.ErrJetStreamNotEnabled) || errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
		return nil, fmt.Errorf("%w: the server at %s has no JetStream; start it with -js", pawl.ErrUnsupported, q.address)
	case err != nil:
		return nil, q.unavailable(fmt.Errorf("stream %s: %w", want.Name, err))
	}
	c := s.CachedInfo().Config
	limited := c.MaxMsgs > 0 || c.MaxBytes > 0 || c.MaxMsgsPerSubject > 0
	switch {
	case c.Retention != want.Retention || c.AllowMsgSchedules != want.AllowMsgSchedules:
		return nil, invalid("stream", "%s exists with another retention, or without schedules; use another Prefix, or delete the stream", want.Name)
	case c.Storage != jetstream.FileStorage:
		return nil, invalid("stream", "%s keeps messages in memory; use another Prefix, or delete the stream", want.Name)
	case c.MaxAge > 0 || limited && c.Discard != jetstream.DiscardNew:
		return nil, invalid("stream", "%s drops messages by its limits; remove them", want.Name)
	}
	return s, nil
}

// disconnected ends the waits for answers that cannot come any more.
func (q *Queue) disconnected() {
	q.mu.Lock()
	defer q.mu.Unlock()
	close(q.lost)
	q.lost = make(chan struct{})
}

// connection returns a channel that is closed when the present connection ends.
func (q *Queue) connection() <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.lost
}

// Abilities implements [driver.Able].
func (q *Queue) Abilities() pawl.Ability {
	if q.opts.Synced {
		return pawl.Shared | pawl.Synced
	}
	return pawl.Shared
}

// MaxPayload returns the maximum size of one payload in bytes. A job with large headers or keys has
// less room.
func (q *Queue) MaxPayload() int { return q.opts.MaxPayload }

// Close waits at most Options.Timeout for the answers to calls that change something. Then it ends the connection.
// Waiting fetches and all later calls return [pawl.ErrClosed]. Leases continue on the server until they expire, which
// counts as a crash. Stop workers first.
func (q *Queue) Close() error {
	q.leases.Gate.Close()
	q.leases.Grants.Close()
	if q.nc != nil {
		q.nc.Close()
	}
	return nil
}

// Settle implements [pawl.Queue].
func (q *Queue) Settle(ctx context.Context, settlements ...pawl.Settlement) error {
	if err := driver.SupportsSettle(q.Abilities(), settlements); err != nil {
		return err
	}
	return q.leases.Settle(ctx, settlements...)
}

// Extend implements [pawl.Queue].
func (q *Queue) Extend(ctx context.Context, leases ...*pawl.Lease) (lost []*pawl.Lease, err error) {
	return q.leases.Extend(ctx, leases...)
}

// Reap implements [pawl.Queue]. The server takes expired leases back by itself, so it returns 0.
func (q *Queue) Reap(ctx context.Context) (int, error) { return q.leases.Reap(ctx) }

// unavailable returns the error for one of the network or the server.
func (q *Queue) unavailable(err error) error {
	if q.leases.Ready(context.Background()) != nil {
		return pawl.ErrClosed
	}
	return fmt.Errorf("%w: %s: %w", ErrUnavailable, q.address, err)
}
