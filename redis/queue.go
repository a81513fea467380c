package redis

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/core"
)

// Queue is a job queue on a Redis server. It implements [pawl.Queue]. Its methods are safe for concurrent use.
type Queue struct {
	opts    Options
	rdb     *redis.Client
	prefix  string // prefix of all keys
	process string // names this process in the answers that the server keeps
	synced  bool
	clock   clock
	intake  *core.Intake[*call, news]
	bell    *bell // nil for a queue that does not listen
	done    chan struct{}

	reporter driver.Reporter

	scheduler // only for the goroutine of the scheduler
}

var _ pawl.Queue = (*Queue)(nil)

//go:embed script/*.lua
var scripts embed.FS

// source is the script that carries out a group of calls. The files together are one program.
var source = func() (all string) {
	names, err := fs.Glob(scripts, "script/*.lua")
	if err != nil {
		panic(err) // the pattern is valid
	}
	for _, name := range names {
		part, err := scripts.ReadFile(name)
		if err != nil {
			panic(err) // the file is embedded
		}
		all += string(part)
	}
	return all
}()

var script = redis.NewScript(source)

// format is the format of the keys that this build reads and writes.
const format = 2

// Open opens the queue of an app on a server. The place is a URL such as "redis://localhost:6379/0",
// "rediss://user:password@host:6379/0" with TLS, or "unix:///run/redis.sock?db=0". The parameter "name"
// names the queue, as in "redis://localhost:6379/0?name=shop". Any number of processes can have the queue
// open. The caller closes it. An error never contains the password.
//
// Errors: [pawl.ErrInvalid] for a bad option or URL, [ErrUnavailable], [ErrVersion], [ErrEvicts],
// [ErrNotQueue], [ErrOlderFormat], [pawl.ErrNewerFormat].
func Open(ctx context.Context, place string, opts *Options) (*Queue, error) {
	q, err := openQueue(ctx, place, opts)
	if err != nil {
		return nil, fmt.Errorf("open queue: %w", err)
	}
	return q, nil
}

func openQueue(ctx context.Context, place string, opts *Options) (*Queue, error) {
	place, name := cutName(place)
	o, err := opts.withDefaults(name)
	if err != nil {
		return nil, err
	}
	settings, err := redis.ParseURL(place)
	switch {
	case err != nil:
		return nil, &pawl.InvalidError{Field: "place", Reason: "it is no URL such as redis://localhost:6379/0"} // err may have the password
	case ctx.Err() != nil:
		return nil, driver.NotAccepted(ctx)
	}
	settings.MaxRetries, settings.DialerRetries, settings.Protocol, settings.DisableIdentity = -1, 1, 2, true // the queue tries again by itself
	settings.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled, EndpointType: maintnotifications.EndpointTypeNone}
	settings.ReadTimeout, settings.WriteTimeout = max(o.Timeout/3, leastTimeout), max(o.Timeout/3, leastTimeout)
	if o.Configure != nil {
		o.Configure(settings)
	}
	q := &Queue{opts: o, rdb: redis.NewClient(settings), prefix: "{pawl:" + o.Name + "}:", done: make(chan struct{}),
		process:  fmt.Sprintf("%016x", rand.Uint64()),
		reporter: driver.Reporter{Logger: o.Logger, OnEvent: o.OnEvent, Collector: o.Collector, MaxCrashes: o.MaxCrashes},
	}
	q.intake = core.NewIntake[*call, news](groupJobs, groupBytes)
	if err := q.check(ctx); err != nil {
		_ = q.rdb.Close()
		return nil, err
	}
	if o.Poll != NoPoll && !o.NoListen {
		q.bell = openBell(q)
	}
	q.due = q.now() // so that the first group finds out when something falls due
	go q.schedule()
	return q, nil
}

// cutName removes the parameter "name", which the client does not know, from a URL.
func cutName(place string) (rest, name string) {
	u, err := url.Parse(place)
	if err != nil {
		return place, ""
	}
	parameters := u.Query()
	if !parameters.Has("name") {
		return place, ""
	}
	name = parameters.Get("name")
	parameters.Del("name")
	u.RawQuery = parameters.Encode()
	return u.String(), name
}

// check refuses a server that cannot hold the queue, and finds out whether the server syncs.
func (q *Queue) check(ctx context.Context) error {
	text, err := q.rdb.Info(ctx, "server", "persistence", "memory").Result()
	if err != nil {
		return explain(err)
	}
	info := make(map[string]string)
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[key] = value
		}
	}
	major, _, _ := strings.Cut(info["redis_version"], ".") // Valkey also has this field
	if version, err := strconv.Atoi(major); err != nil || version < 7 {
		return fmt.Errorf("%w: it is %q", ErrVersion, info["redis_version"])
	}
	if policy := info["maxmemory_policy"]; policy != "noeviction" {
		return fmt.Errorf("%w: it is %q", ErrEvicts, policy)
	}
	q.synced = q.opts.Synced
	if found, err := q.rdb.ConfigGet(ctx, "appendfsync").Result(); err == nil {
		q.synced = info["aof_enabled"] == "1" && found["appendfsync"] == "always"
	}
	if !q.synced {
		q.opts.Logger.Warn("the server does not sync each write; a crash of its machine loses acknowledged jobs",
			"appendonly", info["aof_enabled"] == "1", "set", "appendonly yes, appendfsync always")
	}
	if err := q.checkFormat(ctx); err != nil {
		return err
	}
	return q.clock.set(ctx, q)
}

// checkFormat stores the format of new keys, or refuses another format. It reads first, since a server whose
// memory is full refuses each HSETNX.
func (q *Queue) checkFormat(ctx context.Context) error {
	key := q.prefix + "v"
	found, err := q.rdb.HGet(ctx, key, "format").Int()
	if errors.Is(err, redis.Nil) && !q.opts.Existing {
		if err := q.rdb.HSetNX(ctx, key, "format", format).Err(); err != nil {
			return explain(err)
		}
		found, err = q.rdb.HGet(ctx, key, "format").Int() // another process may have been faster
	}
	switch {
	case errors.Is(err, redis.Nil):
		return fmt.Errorf("%w: %q", ErrNotQueue, q.opts.Name)
	case errors.As(err, new(*strconv.NumError)):
		return fmt.Errorf("%w: format of the queue: %w", pawl.ErrCorrupt, err)
	case err != nil:
		return fmt.Errorf("format of the queue: %w", explain(err))
	case found > format:
		return fmt.Errorf("%w: it has format %d, this build reads %d", pawl.ErrNewerFormat, found, format)
	case found < format:
		return fmt.Errorf("%w: it has format %d, this build writes %d", ErrOlderFormat, found, format)
	}
	return nil
}

// abilities are the abilities on any server.
const abilities = driver.Settings&^pawl.LimitKeys | pawl.Shared

// Abilities implements [driver.Able]. The queue has [pawl.Synced] if the server synced each write to the
// disk when it was opened.
func (q *Queue) Abilities() pawl.Ability {
	a := abilities
	if q.synced {
		a |= pawl.Synced
	}
	return a
}

// Close stops the queue. Accepted calls get their answers. Waiting fetches and all later calls return
// [pawl.ErrClosed]. Leases that have not ended last until they expire. When Close returns, no goroutine of
// the queue runs.
func (q *Queue) Close() error {
	q.intake.Close()
	<-q.done
	q.bell.close()
	if err := q.rdb.Close(); err != nil && !errors.Is(err, redis.ErrClosed) {
		return fmt.Errorf("close queue: %w", err)
	}
	return nil
}

// Clients returns how many processes have the queue open. It does not count processes with Options.NoListen or
// NoPoll, since they do not listen.
func (q *Queue) Clients(ctx context.Context) (int, error) {
	channel := q.prefix + "bell"
	found, err := q.rdb.PubSubNumSub(ctx, channel).Result()
	if err != nil {
		return 0, explain(err)
	}
	return int(found[channel]), nil
}

// Now returns the time by the clock of the queue.
func (q *Queue) Now() time.Time { return q.now() }

// clock is the clock of the server, as this process sees it.
type clock struct {
	mu     sync.Mutex
	server time.Time // without a monotonic part
	read   time.Time // when the server had that time, on monotonic time
}

// clockAge is how long a reading of the server's clock is used.
const clockAge = time.Minute

// set reads the clock of the server, unless the queue has its own clock.
func (c *clock) set(ctx context.Context, q *Queue) error {
	if q.opts.Now != nil {
		return nil
	}
	began := time.Now()
	server, err := q.rdb.Time(ctx).Result()
	if err != nil {
		return explain(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read = time.Now()
	c.server = server.Round(0).Add(c.read.Sub(began) / 2)
	return nil
}

// now returns the time by the clock of the server, and the age of its reading.
func (c *clock) now() (time.Time, time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	age := time.Since(c.read)
	return c.server.Add(age), age
}

// now returns the wall clock.
func (q *Queue) now() time.Time {
	if q.opts.Now != nil {
		return q.opts.Now().Round(0)
	}
	now, _ := q.clock.now()
	return now
}

// mono returns the clock of leases.
func (q *Queue) mono() time.Time {
	if q.opts.Now != nil {
		return time.Now().Round(0)
	}
	return q.now()
}
