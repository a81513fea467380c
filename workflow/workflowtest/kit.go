package workflowtest

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/worker"
	"github.com/gopawl/pawl/workflow"
)

// Epoch is the initial time of a kit's clock.
var Epoch = time.Date(2026, time.January, 5, 9, 0, 0, 0, time.UTC) // a Monday

// maxSkips limits how often one call moves the clock.
const maxSkips = 10_000

// Options configures a kit. A nil *Options and zero fields mean the defaults.
type Options struct {
	// Queues are the queues of the worker, by default only pawl.DefaultQueue. They must include
	// the queues of all flows.
	Queues []string

	// Concurrency is the number of runs that execute at once. The default is that of package
	// worker.
	Concurrency int

	// Handle registers handlers for ordinary jobs. It is called for the first worker and for the
	// worker after each crash.
	Handle func(w *worker.Worker)

	// Engine configures the engine. Middleware also wraps stubs. The default Build is
	// "1"; the default Logger writes errors to the test's log.
	Engine workflow.Options

	// Now is the clock to which the kit adds its offset. The default stands still at [Epoch].
	Now func() time.Time

	// At is the point of a crash, from [EachCrash].
	At *Point
}

// Kit is a queue in a file with an engine and a worker. Its methods are for the test's goroutine, except
// Now, Stub and Attempts.
type Kit struct {
	t     testing.TB
	opts  Options
	flows []workflow.Definition
	path  string
	ahead atomic.Int64 // offset from Options.Now, in nanoseconds
	rests int          // how often all runs waited

	queue  *bolt.Queue
	engine *workflow.Engine
	worker *worker.Worker
	dead   *atomic.Bool // queue, engine and worker have crashed

	mu       sync.Mutex
	stubs    map[string]func(context.Context) (any, error)
	attempts map[string]int // by each name of a step
	points   []*Point       // pending crashes
}

// New opens a queue in a temporary folder, with a worker for these flows. When the test ends, each run
// that is done is replayed, see [workflow.Engine.Replay], and the queue is checked and closed.
func New(t testing.TB, opts *Options, flows ...workflow.Definition) *Kit {
	t.Helper()
	k := &Kit{t: t, flows: flows, path: filepath.Join(t.TempDir(), "workflows.db"),
		stubs: make(map[string]func(context.Context) (any, error)), attempts: make(map[string]int)}
	if opts != nil {
		k.opts = *opts
	}
	if k.opts.Now == nil {
		k.opts.Now = func() time.Time { return Epoch }
	}
	if k.opts.Engine.Build == "" {
		k.opts.Engine.Build = "1"
	}
	if at := k.opts.At; at != nil && at.seen == nil {
		k.points = append(k.points, at)
	}
	k.open()
	t.Cleanup(k.close)
	return k
}

// close ends the test and checks that all results can be repeated, that the file is sound, and that
// all crashes happened.
func (k *Kit) close() {
	k.t.Helper()
	k.replay()
	if err := k.queue.Check(context.Background()); err != nil && !errors.Is(err, pawl.ErrClosed) {
		k.t.Errorf("workflowtest: %v", err)
	}
	if err := k.queue.Close(); err != nil {
		k.t.Errorf("workflowtest: close the queue: %v", err)
	}
	k.missed()
}

// open opens the file, as a new process does.
func (k *Kit) open() {
	k.t.Helper()
	var log pawl.Logger = hclog.New(&hclog.LoggerOptions{Name: "workflow", Output: k.t.Output(), Level: hclog.Error})
	if k.opts.Engine.Logger != nil {
		log = k.opts.Engine.Logger
	}
	q, err := bolt.Open(k.path, &bolt.Options{Now: k.Now, Logger: log})
	if err != nil {
		k.t.Fatalf("workflowtest: %v", err)
	}
	k.queue, k.dead = q, new(atomic.Bool)
	engine := k.opts.Engine
	engine.Logger = log
	engine.Warm = -1 // each wake compares the code with the journal
	engine.Middleware = slices.Concat([]workflow.Middleware{k.watch(q, k.dead)}, engine.Middleware, []workflow.Middleware{k.stubbed})
	k.engine = workflow.Open(q, &engine)
	k.worker = worker.New(q, &worker.Options{
		Queues:      k.opts.Queues,
		Concurrency: k.opts.Concurrency,
		Drain:       1, // not 0, which means the default: a crash ends all contexts at once
		Logger:      hclog.NewNullLogger(),
	})
	if err := k.engine.Handle(k.t.Context(), k.worker, k.flows...); err != nil {
		k.t.Fatalf("workflowtest: %v", err)
	}
	if k.opts.Handle != nil {
		k.opts.Handle(k.worker)
	}
}

// Engine returns the current engine. A crash replaces it.
func (k *Kit) Engine() *workflow.Engine { return k.engine }

// Queue returns the current queue. A crash replaces it.
func (k *Kit) Queue() *bolt.Queue { return k.queue }

// Now returns the time of the queue's clock.
func (k *Kit) Now() time.Time { return k.opts.Now().Add(time.Duration(k.ahead.Load())) }

// Deploy closes the file and opens it with another build, like a new version of the program. The next
// Settle retries runs that the previous build blocked.
func (k *Kit) Deploy(build string, flows ...workflow.Definition) {
	k.t.Helper()
	k.opts.Engine.Build, k.flows = build, flows
	k.reopen()
}

func (k *Kit) reopen() {
	k.t.Helper()
	if err := k.queue.Close(); err != nil { // waits for the Close of a crash
		k.t.Fatalf("workflowtest: close the queue: %v", err)
	}
	k.open()
}

// Settle runs all runs and other jobs until each run waits or has ended, through crashes. It does not
// move the clock.
func (k *Kit) Settle() {
	k.t.Helper()
	for {
		err := k.worker.Drain(k.t.Context(), pawl.WaitDrained)
		if !k.dead.Load() {
			if err != nil {
				k.t.Fatalf("workflowtest: settle: %v", err)
			}
			break
		}
		if err != nil && !errors.Is(err, pawl.ErrClosed) {
			k.t.Fatalf("workflowtest: settle: %v", err)
		}
		k.reopen()
	}
	open := k.openRuns()
	for _, run := range open {
		if run.Status == workflow.Running && k.ready(run.Run) {
			k.t.Fatalf("workflowtest: %s is on queue %q, which the worker does not serve; see Options.Queues", describe(run), run.Queue)
		}
	}
	if len(open) > 0 {
		k.rested()
	}
}

// ready reports whether the job of a run is ready although the worker handles its flow.
func (k *Kit) ready(run pawl.ID) bool {
	k.t.Helper()
	job, err := k.queue.Job(k.t.Context(), run)
	if err != nil {
		k.t.Fatalf("workflowtest: %v", err)
	}
	return job.State == pawl.Ready && k.worker.Handles(job.Kind)
}

// Skip moves the clock to the next deadline, the earliest time for which a run or a delayed job waits,
// and settles. It returns how far it moved the clock. Without a deadline the test fails.
func (k *Kit) Skip() time.Duration {
	k.t.Helper()
	before := k.Now()
	due := k.next()
	if due.IsZero() {
		k.t.Fatalf("workflowtest: nothing waits for a time; open runs:\n%s", k.list())
	}
	k.goTo(due)
	k.Settle()
	return due.Sub(before)
}

// Advance moves the clock by d, and settles at each deadline on the way and at the end.
func (k *Kit) Advance(d time.Duration) {
	k.t.Helper()
	end := k.Now().Add(d)
	for skips := 0; ; skips++ {
		due := k.next()
		if due.IsZero() || due.After(end) {
			break
		}
		if skips == maxSkips {
			k.t.Fatalf("workflowtest: %d deadlines have passed within %v, and these runs have more:\n%s", skips, d, k.list())
		}
		k.goTo(due)
		k.Settle()
	}
	k.goTo(end)
	k.Settle()
}

// goTo moves the clock forward to t.
func (k *Kit) goTo(t time.Time) {
	k.ahead.Store(max(k.ahead.Load(), int64(t.Sub(k.opts.Now()))))
}

// next returns when the first delayed job is due, or zero.
func (k *Kit) next() time.Time {
	k.t.Helper()
	for job, err := range k.queue.Jobs(k.t.Context(), pawl.Filter{State: pawl.Delayed}) {
		if err != nil {
			k.t.Fatalf("workflowtest: %v", err)
		}
		if job.NotBefore.Sub(k.Now()) < never {
			return job.NotBefore
		}
		break
	}
	return time.Time{}
}

// never is a delay that does not end in practice: runs that wait without a deadline are delayed for
// longer.
const never = 50 * 365 * 24 * time.Hour

// openRuns returns the runs that have not ended.
func (k *Kit) openRuns() (open []workflow.Info) {
	k.t.Helper()
	for after := ""; ; {
		page, err := k.engine.List(k.t.Context(), workflow.Filter{}, after, 1000)
		if err != nil {
			k.t.Fatalf("workflowtest: %v", err)
		}
		for _, run := range page.Runs {
			if !run.Status.Ended() {
				open = append(open, run)
			}
		}
		if after = page.Next; after == "" {
			return open
		}
	}
}

// list returns a line for each open run.
func (k *Kit) list() string {
	k.t.Helper()
	var lines []string
	for _, run := range k.openRuns() {
		lines = append(lines, "  "+describe(run))
	}
	if len(lines) == 0 {
		return "  nothing"
	}
	return strings.Join(lines, "\n")
}

// describe returns a run's state in one line.
func describe(run workflow.Info) string {
	text := fmt.Sprintf("workflow %s %q: %s", run.Flow, run.ID, run.Status)
	if len(run.Waits) > 0 {
		text += " for " + strings.Join(run.Waits, ", ")
	}
	if !run.Due.IsZero() {
		text += fmt.Sprintf(" until %v", run.Due.UTC())
	}
	if run.Error != "" {
		text += ": " + firstLine(run.Error)
	}
	return text
}
