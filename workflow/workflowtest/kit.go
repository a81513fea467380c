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

// Epoch is the time at which the clock of a kit begins.
var Epoch = time.Date(2026, time.January, 5, 9, 0, 0, 0, time.UTC) // a Monday

// mostSkips is how often the clock is moved for one call before that gives up.
const mostSkips = 10_000

// Options are the settings of a kit. A nil *Options, and every zero field, means the
// default.
type Options struct {
	// Queues are those that the worker works on. The default is pawl.DefaultQueue; a flow
	// that is defined on another has to be named here.
	Queues []string

	// Concurrency is how many runs run at once. The default is that of package worker.
	Concurrency int

	// Handle registers handlers of jobs that are none of workflows. It is called for each
	// worker: at first, and after each crash.
	Handle func(w *worker.Worker)

	// Engine are settings of the engine. What is in Around is around stubs too. The default
	// of Build is "1", that of Logger the log of the test, for errors.
	Engine workflow.Options

	// Now is the clock that the kit's goes by. The default stands still at [Epoch].
	Now func() time.Time

	// At is where a crash comes, when [EachCrash] gave one.
	At *Point
}

// Kit is a queue in a file with an engine and a worker. Its methods are for the goroutine of
// the test, but for Now, Stub and Attempts.
type Kit struct {
	t     testing.TB
	opts  Options
	flows []workflow.Definition
	path  string
	ahead atomic.Int64 // how far the clock is ahead of Options.Now
	rests int          // how often all was settled

	queue  *bolt.Queue
	engine *workflow.Engine
	worker *worker.Worker
	dead   *atomic.Bool // they have crashed

	mu       sync.Mutex
	stubs    map[string]func(context.Context) (any, error)
	attempts map[string]int // of steps, by what they may be called
	points   []*Point       // where crashes are still to come
}

// New opens a queue in a temporary folder, with a worker for these flows. At the end of the
// test it is checked and closed.
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

// close ends the test: the file is sound, and all crashes have come.
func (k *Kit) close() {
	k.t.Helper()
	if err := k.queue.Check(context.Background()); err != nil && !errors.Is(err, pawl.ErrClosed) {
		k.t.Errorf("workflowtest: %v", err)
	}
	if err := k.queue.Close(); err != nil {
		k.t.Errorf("workflowtest: close the queue: %v", err)
	}
	k.missed()
}

// open opens the file, as a process that starts does.
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
	engine.Around = slices.Concat([]workflow.Middleware{k.watch(q, k.dead)}, engine.Around, []workflow.Middleware{k.stubbed})
	k.engine = workflow.Open(q, &engine)
	k.worker = worker.New(q, &worker.Options{
		Queues:      k.opts.Queues,
		Concurrency: k.opts.Concurrency,
		Drain:       1, // a crash ends all contexts at once
		Logger:      hclog.NewNullLogger(),
	})
	if err := k.engine.Handle(k.t.Context(), k.worker, k.flows...); err != nil {
		k.t.Fatalf("workflowtest: %v", err)
	}
	if k.opts.Handle != nil {
		k.opts.Handle(k.worker)
	}
}

// Engine is the engine. It is another one after each crash.
func (k *Kit) Engine() *workflow.Engine { return k.engine }

// Queue is the queue, to look at jobs. It is another one after each crash.
func (k *Kit) Queue() *bolt.Queue { return k.queue }

// Now is the time by the clock of the queue.
func (k *Kit) Now() time.Time { return k.opts.Now().Add(time.Duration(k.ahead.Load())) }

// Deploy closes the file and opens it with another build, as when a new version of the
// program starts. Runs that the build before has blocked are tried again by the next Settle.
func (k *Kit) Deploy(build string, flows ...workflow.Definition) {
	k.t.Helper()
	k.opts.Engine.Build, k.flows = build, flows
	k.reopen()
}

func (k *Kit) reopen() {
	k.t.Helper()
	if err := k.queue.Close(); err != nil { // which waits for one that a crash began
		k.t.Fatalf("workflowtest: close the queue: %v", err)
	}
	k.open()
}

// Settle has the worker run all runs, and other jobs, until each run waits or has ended. The
// clock does not move. A crash on the way is gone through.
func (k *Kit) Settle() {
	k.t.Helper()
	for {
		err := k.worker.Drain(k.t.Context(), pawl.WaitDrained)
		if !k.dead.Load() {
			if err != nil {
				k.t.Fatalf("workflowtest: run the runs: %v", err)
			}
			break
		}
		if err != nil && !errors.Is(err, pawl.ErrClosed) {
			k.t.Fatalf("workflowtest: run the runs: %v", err)
		}
		k.reopen()
	}
	open := k.openRuns()
	for _, run := range open {
		if run.Status == workflow.Running && k.ready(run.Run) {
			k.t.Fatalf("workflowtest: %s is on queue %q, on which the worker does not work; see Options.Queues", describe(run), run.Queue)
		}
	}
	if len(open) > 0 {
		k.rested()
	}
}

// ready reports whether the job of a run is left though the worker has its flow.
func (k *Kit) ready(run pawl.ID) bool {
	k.t.Helper()
	job, err := k.queue.Job(k.t.Context(), run)
	if err != nil {
		k.t.Fatalf("workflowtest: %v", err)
	}
	return job.State == pawl.Ready && k.worker.Handles(job.Kind)
}

// Skip moves the clock to the next deadline: the earliest time for which a run or a delayed
// job waits. Then it settles. It returns how far the clock was moved. Without a deadline the
// test fails.
func (k *Kit) Skip() time.Duration {
	k.t.Helper()
	before := k.Now()
	due := k.next()
	if due.IsZero() {
		k.t.Fatalf("workflowtest: no time is waited for; open are:\n%s", k.list())
	}
	k.goTo(due)
	k.Settle()
	return due.Sub(before)
}

// Advance moves the clock by d. It stops at each deadline on the way, and settles.
func (k *Kit) Advance(d time.Duration) {
	k.t.Helper()
	end := k.Now().Add(d)
	for skips := 0; ; skips++ {
		due := k.next()
		if due.IsZero() || due.After(end) {
			break
		}
		if skips == mostSkips {
			k.t.Fatalf("workflowtest: %d deadlines have passed within %v, and these have more:\n%s", skips, d, k.list())
		}
		k.goTo(due)
		k.Settle()
	}
	k.goTo(end)
	k.Settle()
}

// goTo moves the clock to t, or leaves it where it is later.
func (k *Kit) goTo(t time.Time) {
	k.ahead.Store(max(k.ahead.Load(), int64(t.Sub(k.opts.Now()))))
}

// next is when the first job is due that is delayed, zero when none ever is.
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

// never is a delay of which the end does not matter: runs that wait for no time are delayed
// for longer.
const never = 50 * 365 * 24 * time.Hour

// openRuns are the runs that have not ended.
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

// list is the open runs in a message.
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

// describe is a run in a message.
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
