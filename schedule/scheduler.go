package schedule

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/workflow"
)

// Store is what schedules need from a queue: rows beside its jobs.
type Store = workflow.Store

// Options are the settings of a [Scheduler]. A nil *Options and every zero field mean the default.
type Options struct {
	// Group identifies the schedules of this program, if several programs use the same store. The default is "default".
	Group string

	// Forget is how long the store keeps a schedule that the program no longer defines. The default is 30 days.
	Forget time.Duration

	// Poll is how often the scheduler looks for changes by other processes, if they can share the
	// queue. The default is 5 s, the maximum a minute.
	Poll time.Duration

	// Sign, if set, signs the jobs, for workers that verify signatures. For runs, set Sign in the options of the engine
	// that runs flows over the store.
	Sign *pawl.Keyring

	// OnDecision receives each decision once it is durable, one at a time, without its number. A
	// buffered tick comes again, with its job, when it fires. OnDecision must not block. If the
	// process ends right after a commit, OnDecision misses its decisions.
	OnDecision func(schedule string, e Entry)

	// Logger gets a line for each problem. The default is hclog.Default().
	Logger pawl.Logger
}

// Scheduler fires the schedules of a store, from its first [Scheduler.Sync] until it or the store is
// closed. Several schedulers may use one store, in one process or in many: each tick is decided once,
// by one of them. Its methods are safe for concurrent use.
type Scheduler struct {
	*Manager

	start sync.Once
	stop  chan struct{}
	ended chan struct{} // nil until it starts
	mu    sync.Mutex    // guards closed and ended
	ends  bool

	damaged map[string]damaged        // schedules that are passed over
	asked   map[pawl.ID]OverlapPolicy // jobs in the way of a tick, each with the overlap policy that the scheduler last applied to it
	awaited awaited
	behind  []byte    // where the next look at buffered ticks begins; nil for the first ones
	latest  time.Time // latest time of the clock
	opening []string  // schedules whose tick for the opening of the store is not decided; nil before the first look
}

// Open returns a scheduler over a queue. It fires nothing before the first [Scheduler.Sync]. For a
// queue that does not store rows beside its jobs, it returns an error that matches
// [pawl.ErrUnsupported].
func Open(q pawl.Queue, opts *Options) (*Scheduler, error) {
	store, ok := q.(Store)
	if !ok {
		return nil, fmt.Errorf("%w: schedules need a queue that stores rows beside jobs in one transaction, and a %T does not; use package bolt, memory, sqlite, or postgres",
			pawl.ErrUnsupported, q)
	}
	if opts == nil {
		opts = new(Options) // otherwise Manage would use the options of another scheduler
	}
	m := Manage(store, opts)
	if err := driver.CheckQueue(m.opts.Group); err != nil {
		return nil, wrong("group", "%v", err)
	}
	m.hub.opts.Store(&m.opts)
	return &Scheduler{Manager: m, stop: make(chan struct{}), damaged: make(map[string]damaged), asked: make(map[pawl.ID]OverlapPolicy), awaited: awaited{store: store, ring: m.hub.ring}}, nil
}

// Close stops the scheduler and waits until it no longer fires ticks. The store stays open. Another scheduler decides
// later ticks, perhaps in the next process that opens the store.
func (s *Scheduler) Close() {
	s.mu.Lock()
	if !s.ends {
		s.ends = true
		close(s.stop)
	}
	ended := s.ended
	s.mu.Unlock()
	if ended != nil {
		<-ended
	}
}

// begin starts the goroutine.
func (s *Scheduler) begin() {
	s.start.Do(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.ends {
			s.ended = make(chan struct{})
			s.hub.firing.Add(1)
			go s.run(s.ended)
		}
	})
}

// Pauses of the scheduler.
const (
	longestSleep = time.Minute     // longest pause, so that it notices that the clock was set or the machine slept
	bufferPause  = time.Second     // pause while ticks wait for the end of a job that no event reports
	failedPause  = 5 * time.Second // after an error
)

func (s *Scheduler) run(ended chan struct{}) {
	defer close(ended)
	defer s.hub.firing.Add(-1)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-s.stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	defer s.awaited.stop()
	timer := time.NewTimer(0)
	defer timer.Stop()
	<-timer.C
	for failed := false; ; {
		wait, err := s.pass(ctx)
		if err != nil {
			if !failed && !errors.Is(err, pawl.ErrClosed) && ctx.Err() == nil {
				s.opts.Logger.Warn("cannot fire schedules; trying again", "error", err)
			}
			wait = failedPause
		}
		failed = err != nil
		timer.Reset(wait)
		select {
		case <-s.stop:
			return
		case <-s.store.Done():
			return
		case <-s.hub.bell:
		case <-timer.C:
		}
	}
}

// pass decides all due ticks, and returns how long nothing will be due.
func (s *Scheduler) pass(ctx context.Context) (wait time.Duration, err error) {
	now := s.store.Now()
	if s.latest.IsZero() || now.Before(s.latest.Add(-longestSleep)) {
		if err := s.refresh(ctx); err != nil {
			return 0, err
		}
	}
	s.latest = now
	if err := s.open(ctx); err != nil {
		return 0, err
	}
	for {
		v, err := s.look(ctx)
		if err != nil {
			return 0, err
		}
		candidates, jobs, err := s.candidates(ctx, &v)
		if err != nil {
			return 0, err
		}
		if len(candidates) == 0 && len(v.stale) == 0 {
			return max(min(v.wait, s.untilRetry()), 0), nil
		}
		if _, err := s.decide(ctx, candidates, jobs, v.stale); err != nil {
			return 0, err
		}
		for _, c := range candidates {
			if c.failed != nil {
				s.passOver(c.name, c.row.Changes, c.failed, failedPause)
			}
		}
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
	}
}

// Limits of one mutation.
const (
	portion      = 1000    // schedules, and ticks
	portionBytes = 4 << 20 // of jobs
	rowBytes     = 1 << 10 // roughly what a schedule writes
)

// refresh computes the next tick of every schedule again: time zones may have changed, and the clock
// may have been set back.
func (s *Scheduler) refresh(ctx context.Context) error {
	var names []string
	now := s.store.Now()
	err := s.source.ViewRows(ctx, func(r driver.Reader) error {
		return each(r, "", func(name string, row *row, damage error) bool {
			if damage == nil && !sameSchedule(row, refreshed(name, row, now)) {
				names = append(names, name)
			}
			return true
		})
	})
	for len(names) > 0 && err == nil {
		n := min(len(names), portion)
		err = s.change(ctx, names[:n], func(ops driver.Ops, c *change) error {
			now := ops.Now()
			if c.was == nil {
				return nil
			}
			if isAhead(c.was, now) {
				c.add(entry{Decision: Clock, First: c.was.Last, Last: c.was.Last, At: now.UnixNano(), Why: "the clock was set back"})
			}
			entries, tail, counts := c.row.Entries, c.row.Tail, c.row.Counts
			c.row = refreshed(c.name, c.row, now)
			c.row.Entries, c.row.Tail, c.row.Counts = entries, tail, counts
			return nil
		})
		names = names[n:]
	}
	return err
}

// ahead is how far the last tick may lie in the future. Without this limit, a schedule would not fire until the time
// that a wrong clock once showed.
const ahead = 24 * time.Hour

func isAhead(r *row, now time.Time) bool { return r.Last > now.Add(ahead).UnixNano() }

// refreshed returns a row with its next tick computed again.
func refreshed(name string, r *row, now time.Time) *row {
	c := r.clone()
	if isAhead(c, now) {
		c.Last = now.UnixNano()
	}
	c.plan(name)
	return c
}

func sameSchedule(a, b *row) bool {
	return a.Last == b.Last && a.Next == b.Next && a.Due == b.Due && a.Broken == b.Broken
}

func defaults(opts *Options) (o Options) {
	if opts != nil {
		o = *opts
	}
	if o.Group == "" {
		o.Group = "default"
	}
	if o.Forget == 0 {
		o.Forget = 30 * 24 * time.Hour
	}
	if o.Poll <= 0 {
		o.Poll = 5 * time.Second
	}
	if o.Logger == nil {
		o.Logger = hclog.Default()
	}
	return o
}
