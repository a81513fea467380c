package sim

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/internal/torture/harness"
	"github.com/gopawl/pawl/worker"
)

// process is a queue and its workers, from an open of the file to a crash. It dies
// immediately, in memory: every call of its remaining goroutines is refused, and they end.
type process struct {
	world *world
	q     Queue
	path  string
	hands [workers]*hand // nil for a worker that does not run

	gone chan struct{} // closed when it dies

	// Guarded by the history's mutex.
	dead   bool
	diedAt int64
	left   string // the copy of its file
	fuse   int    // events until it dies; 0 for none
	failed error
}

// hand is a running worker.
type hand struct {
	*worker.Worker
	process *process
	crew    Crew
	stop    context.CancelFunc
	stalled atomic.Int64 // it makes no calls before this instant
	done    chan struct{}

	// Guarded by the history's mutex.
	busy     int         // handlers
	jobs     map[int]int // how many of them have each job
	stopped  int64       // when it had to stop, 0 for never
	impaired []period    // when it could not extend its leases
}

// period is from one instant to another.
type period struct{ from, to int64 }

// impair records that a worker cannot extend its leases for a time. The caller holds the
// history's mutex.
func (h *hand) impair(d time.Duration) {
	h.impaired = append(h.impaired, period{now(), now() + int64(d)})
}

// wasImpaired reports whether it could not extend its leases at some time in a period.
func (h *hand) wasImpaired(from, to int64) bool {
	return slices.ContainsFunc(h.impaired, func(p period) bool { return p.from <= to && p.to >= from })
}

func (h *hand) stalledUntil() time.Time { return time.Unix(0, h.stalled.Load()) }

// running returns the workers of a process in the order of their numbers, so a case does the
// same in every run.
func (p *process) running() (all []*hand) {
	for _, h := range p.hands {
		if h != nil {
			all = append(all, h)
		}
	}
	return all
}

// start opens a file in a new process.
func (w *world) start(path string) error {
	p := &process{world: w, path: path, gone: make(chan struct{})}
	var limits map[string]pawl.Limits
	if w.c.Pool > 0 {
		limits = make(map[string]pawl.Limits)
		for _, queue := range queueNames {
			limits[queue] = pawl.Limits{Pool: pawl.Pool{Name: "p", Running: w.c.Pool}}
		}
	}
	q, err := w.open(path, &bolt.Options{
		Lease: w.c.Lease, MaxCrashes: w.c.MaxCrashes, Logger: hclog.NewNullLogger(), OnEvent: p.hear, Now: w.wall.Now, Limits: limits,
	})
	if err != nil {
		return err
	}
	w.mu.Lock()
	p.q, w.proc = q, p
	w.mu.Unlock()
	return nil
}

// hear receives every event. The scheduler emits most events right after the commit, when a
// crash leaves calls that took effect without an answer.
func (p *process) hear(e pawl.Event) {
	h := &p.world.history
	h.mu.Lock()
	defer h.mu.Unlock()
	if p.dead || p.q == nil {
		return
	}
	switch e.Type {
	case pawl.EventEnqueued:
		p.world.trackOf(e.Job.ID).seq = e.Job.Seq
	case pawl.EventSkipped:
		h.place++
		h.records = append(h.records, &record{what: "skip", job: p.world.numberOf(e.Job.ID), at: now(), begin: h.place, end: h.place})
	}
	if p.fuse > 0 && e.Type != pawl.EventFetched {
		if p.fuse--; p.fuse == 0 {
			p.kill()
		}
	}
}

// kill is the crash. No goroutine writes to the file during kill. The caller holds the
// history's mutex.
func (p *process) kill() {
	if p.dead {
		return
	}
	p.left = p.world.path()
	p.failed = harness.CopyFile(p.path, p.left)
	p.end()
	p.world.died <- struct{}{}
}

// end makes all further calls of a process fail. The caller holds the history's mutex.
func (p *process) end() {
	p.dead, p.diedAt = true, now()
	close(p.gone)
	for _, hand := range p.running() {
		hand.stop()
	}
	for _, r := range p.world.runs {
		if r.to == 0 {
			r.to, r.died = now(), true
		}
	}
}

// hire starts a worker.
func (p *process) hire(number int, crew Crew) {
	ctx, stop := context.WithCancel(context.Background())
	h := p.hand(crew)
	h.stop = stop
	p.world.mu.Lock()
	p.hands[number] = h
	p.world.mu.Unlock()
	p.world.all.Go(func() {
		defer close(h.done)
		if err := h.Run(ctx); err != nil && !p.isGone() && !errors.Is(err, bolt.ErrDisk) { // or it was refused at its start
			p.world.report("worker %d ended: %v", number, err)
		}
	})
}

// hand makes a worker with the running handlers of its kinds.
func (p *process) hand(crew Crew) *hand {
	h := &hand{process: p, crew: crew, done: make(chan struct{}), jobs: make(map[int]int)}
	h.Worker = worker.New(&tap{p, h}, &worker.Options{
		Queues: h.crew.Queues, Weights: h.crew.Weights, RetryShare: h.crew.RetryShare, Concurrency: h.crew.Concurrency,
		Timeout: h.crew.Timeout, StuckGrace: h.crew.Stuck, Drain: h.crew.Drain, StopGrace: h.crew.Grace,
		Policy: pawl.Fixed(h.crew.Backoff), Logger: hclog.NewNullLogger(), Middleware: []worker.Middleware{h.around},
	})
	for _, kind := range h.crew.Kinds {
		worker.Handle(h.Worker, kindOf[kind], p.handle)
	}
	return h
}

func (p *process) isGone() bool {
	select {
	case <-p.gone:
		return true
	default:
		return false
	}
}
