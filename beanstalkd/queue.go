package beanstalkd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/engine"
	"github.com/gopawl/pawl/internal/transport"
)

// ErrUnavailable says that the server cannot be reached or did not answer in time. The next call may
// succeed.
var ErrUnavailable = driver.NewSentinel("beanstalkd_unavailable", "the server is not available")

func init() {
	engine.Register("beanstalkd", func(ctx context.Context, where string) (engine.Queue, error) {
		q, err := Open(ctx, where, nil)
		if err != nil {
			return nil, err // not a nil *Queue in an interface
		}
		return q, nil
	})
}

// Queue is a queue on a server. Its methods are safe for concurrent use.
type Queue struct {
	opts             Options
	network, address string
	leases           transport.Leases[*reservation]
	turns            transport.Turns

	mu    sync.Mutex // guards what follows
	conns map[*conn]struct{}
	puts  *conn   // for what needs no lease
	idle  []*conn // for fetches
}

// margin is how much longer the server reserves a job than its lease lasts. So the process that has
// the job ends the lease first: if both did at the same moment, the end by the process could hit the next
// reservation of the job on its connection.
const margin = 2 * time.Second

var _ pawl.Queue = (*Queue)(nil)

// Open connects to the server at a URL such as "beanstalkd://localhost:11300", or with the path of
// a socket, "beanstalkd:///run/beanstalkd.sock". The default port is 11300.
//
// Errors: [pawl.ErrInvalid] for a bad URL or option, [ErrUnavailable], and [pawl.ErrUnsupported]
// for a server before version 1.12, or without a log if Options.Synced is set.
func Open(ctx context.Context, where string, opts *Options) (*Queue, error) {
	o, err := opts.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("open queue: %w", err)
	}
	q := &Queue{opts: o, conns: make(map[*conn]struct{})}
	q.leases.MaxCrashes, q.leases.Reporter = o.MaxCrashes, driver.Reporter{Logger: o.Logger, Collector: o.Collector, OnEvent: o.OnEvent}
	q.leases.Finish, q.leases.Renew, q.leases.Discard, q.leases.Expired = q.finish, q.renew, q.discard, q.expired
	q.leases.Early, q.leases.Over = q.early, q.over
	if q.network, q.address, err = parsePlace(where); err == nil {
		err = q.check(ctx)
	}
	if err != nil {
		_ = q.Close()
		return nil, fmt.Errorf("open queue: %w", err)
	}
	return q, nil
}

// parsePlace returns where to connect to.
func parsePlace(where string) (network, address string, err error) {
	u, err := url.Parse(where)
	switch {
	case err != nil || u.Scheme != "beanstalkd" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return "", "", invalid("place", "it is no URL such as beanstalkd://localhost:11300; beanstalkd has no passwords and no parameters")
	case u.Host == "" && len(u.Path) > 1:
		return "unix", u.Path, nil
	case u.Hostname() == "" || strings.Trim(u.Path, "/") != "":
		return "", "", invalid("place", "it is no URL such as beanstalkd://localhost:11300")
	}
	return "tcp", net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "11300")), nil
}

// check asks the server what it is.
func (q *Queue) check(ctx context.Context) error {
	c, err := q.putter(ctx)
	if err != nil {
		return err
	}
	var f found
	if _, err := c.exchange(0, lookUp(&f, "stats")); err != nil {
		return q.unavailable(err)
	}
	server := figures(f.body)
	var major, minor int
	if _, err := fmt.Sscanf(server["version"], "%d.%d", &major, &minor); err != nil || major == 1 && minor < 12 {
		return fmt.Errorf("%w: beanstalkd %.32q; version 1.12 or later is needed", pawl.ErrUnsupported, server["version"])
	}
	q.leases.MaxBody = figure(server, "max-job-size")
	room := q.leases.MaxBody - transport.BodyHeader - transport.HistoryRoom
	if room < 1<<10 {
		return fmt.Errorf("%w: the server takes jobs of %d bytes; start it with -z and more", pawl.ErrUnsupported, q.leases.MaxBody)
	}
	q.opts.MaxPayload = cmp.Or(q.opts.MaxPayload, min(pawl.DefaultMaxPayload, room))
	switch logged := figure(server, "binlog-current-index") > 0; {
	case logged:
	case q.opts.Synced:
		return fmt.Errorf("beanstalkd: %w", &pawl.InvalidError{Field: "Synced", Lacks: pawl.Synced,
			Reason: "the server has no log, so it loses its jobs when it stops; start it with -b and -f0"})
	default:
		q.opts.Logger.Warn("the server has no log; it loses its jobs when it stops", "server", q.address)
	}
	return nil
}

// abilities are what every server has.
const abilities = pawl.Priorities | pawl.Shared

// Abilities implements [driver.Able].
func (q *Queue) Abilities() pawl.Ability {
	if q.opts.Synced {
		return abilities | pawl.Synced
	}
	return abilities
}

// MaxPayload returns the maximum size of one payload in bytes. A job with large headers or keys has
// less room.
func (q *Queue) MaxPayload() int { return q.opts.MaxPayload }

// Close waits at most Options.Timeout for the answers to calls that change something. Then it ends
// the connections. Waiting fetches and all later calls return [pawl.ErrClosed]. The server makes
// leased jobs ready again, which counts as a crash. Stop workers first.
func (q *Queue) Close() error {
	q.leases.Gate.Close()
	q.leases.Grants.Close()
	q.mu.Lock()
	defer q.mu.Unlock()
	for c := range q.conns {
		c.fail(pawl.ErrClosed)
	}
	q.idle, q.puts = nil, nil
	return nil
}

// Reap implements [pawl.Queue]. The server takes expired leases back by itself, so it returns 0.
func (q *Queue) Reap(ctx context.Context) (int, error) { return 0, q.leases.Ready(ctx) }

// connect opens a connection, and waits for a first answer: what is in front of a server that is away, such as a proxy,
// may accept connections, and what is sent over them has no known outcome.
func (q *Queue) connect(ctx context.Context) (*conn, error) {
	c, err := dial(ctx, q.network, q.address, q.opts.Timeout)
	if err == nil {
		_, err = c.exchange(0, command(new(string), "list-tube-used"))
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, driver.NotAccepted(ctx)
	case err != nil:
		return nil, q.unavailable(err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.leases.Closed() {
		c.fail(pawl.ErrClosed)
		return nil, pawl.ErrClosed
	}
	q.conns[c] = struct{}{}
	return c, nil
}

// putter returns the connection for what needs no lease.
func (q *Queue) putter(ctx context.Context) (*conn, error) {
	q.mu.Lock()
	c := q.puts
	q.mu.Unlock()
	if c != nil && c.broken() == nil {
		return c, nil
	}
	fresh, err := q.connect(ctx)
	if err != nil {
		return nil, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.puts != nil && q.puts != c && q.puts.broken() == nil { // somebody else was faster
		delete(q.conns, fresh)
		fresh.fail(net.ErrClosed)
		return q.puts, nil
	}
	if c != nil {
		delete(q.conns, c)
	}
	q.puts = fresh
	return fresh, nil
}

// errEnded says that a fetch ended its connection because its context ended.
var errEnded = errors.New("the fetch has ended")

// borrow returns a connection for a fetch. A fetch that waits needs one without leases and without
// calls under way, since the server reads nothing from a connection while it waits.
func (q *Queue) borrow(ctx context.Context, waits bool) (*conn, error) {
	q.mu.Lock()
	for _, c := range q.idle {
		if c.broken() != nil {
			delete(q.conns, c)
		}
	}
	q.idle = slices.DeleteFunc(q.idle, func(c *conn) bool { return c.broken() != nil })
	i := slices.IndexFunc(q.idle, func(c *conn) bool { return !waits || c.unused() })
	if i >= 0 {
		c := q.idle[i]
		q.idle = slices.Delete(q.idle, i, i+1)
		q.mu.Unlock()
		return c, nil
	}
	q.mu.Unlock()
	return q.connect(ctx)
}

// unused reports whether a connection has no lease and no call under way. The caller holds the mutex
// of the queue.
func (c *conn) unused() bool { return len(c.reserved) == 0 && c.busy == 0 }

// giveBack ends a borrow. If the connection failed, the server may have been restarted, so giveBack
// also ends the connections that nobody uses.
func (q *Queue) giveBack(c *conn) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.leases.Closed():
	case c.broken() != nil:
		delete(q.conns, c)
		for _, other := range q.idle {
			if c.broken() != errEnded && other.unused() {
				other.fail(c.broken())
			}
		}
	default:
		q.idle = append(q.idle, c)
	}
}

// unavailable returns the error for one of the network.
func (q *Queue) unavailable(err error) error {
	if errors.Is(err, pawl.ErrClosed) {
		return pawl.ErrClosed
	}
	return fmt.Errorf("%w: %s: %w", ErrUnavailable, q.address, err)
}

// unknown returns the error of a call whose answer did not come.
func (q *Queue) unknown(sent bool, err error) error {
	if !sent {
		return q.unavailable(err)
	}
	return fmt.Errorf("%w: the connection to %s broke: %w", pawl.ErrUnknownOutcome, q.address, err)
}
