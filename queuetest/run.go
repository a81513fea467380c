package queuetest

import (
	"context"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gopawl/pawl"
)

// Open opens a queue or fails the test. Dir is a folder for this queue alone. A second
// Open with the same dir is the restart of the queue there, which was closed before.
// Run closes what it opened, if it is an io.Closer, before it runs the functions that
// Open gave to t.Cleanup.
//
// Run calls Open and every method within a bubble of testing/synctest. The queue starts
// its goroutines and timers there, and waits for nothing outside the bubble except the
// disk.
type Open func(t testing.TB, dir string, s Settings) pawl.Queue

// Settings are the settings of a queue. Zero fields mean the defaults of the contract.
type Settings struct {
	Lease      time.Duration    // how long a lease lasts; 30 s
	MaxCrashes int              // the limit of crashes; 5, and none when it is negative
	Now        func() time.Time // the wall clock; time.Now

	// For a queue that honors them, see Config.Events.

	OnEvent   func(pawl.Event) // receives every event; none
	Collector pawl.Collector   // receives the counters; none
}

// Config describes what the queue can do besides its methods. Nil means nothing.
type Config struct {
	// Restart says that a queue holds the jobs of the queue that was closed in the same
	// folder.
	Restart bool

	// Counts returns the counts of each named queue that ever had a job or was paused.
	Counts func(ctx context.Context, q pawl.Queue) (map[string]pawl.Counts, error)

	// Events says that the queue honors Settings.OnEvent and Settings.Collector.
	Events bool

	// Walks is the number of random walks; 4 by default. The environment overrides it:
	// QUEUETEST_SEEDS is another number, and QUEUETEST_SEED is the seed of a single
	// walk, as a failure prints it.
	Walks int

	// CounterSteps is the number of steps of the walk that compares the counters with
	// the model; 100 000 by default.
	CounterSteps int

	// Known maps cases, as "group/name", that the queue is known to fail to the
	// reasons. Run skips these cases and prints the reason.
	Known map[string]string
}

// Inspector is a queue whose jobs can be inspected. Most cases need it.
type Inspector interface {
	// Job returns one job with its state, payload, and history, or pawl.ErrNotFound.
	Job(ctx context.Context, id pawl.ID) (*pawl.Envelope, error)

	// Jobs iterates over the jobs that a filter chooses.
	Jobs(ctx context.Context, f pawl.Filter) iter.Seq2[*pawl.Envelope, error]
}

// Retrier is a queue whose dead jobs can be retried.
type Retrier interface {
	// Retry makes a dead job ready. A job that is not dead gives pawl.ErrConflict, and
	// an unknown job gives pawl.ErrNotFound.
	Retry(ctx context.Context, id pawl.ID, keepAttempts bool) error
}

// Canceller is a queue whose jobs can be cancelled.
type Canceller interface {
	// Cancel ends a job. A job that waits is dead at once. The holder of a leased job
	// gets a signal. A dead or completed job gives pawl.ErrConflict, and an unknown job
	// gives pawl.ErrNotFound.
	Cancel(ctx context.Context, id pawl.ID) error
}

// Pauser is a queue whose named queues can be paused.
type Pauser interface {
	// Pause stops a named queue from giving jobs until Resume, over restarts too. An
	// invalid name gives pawl.ErrInvalid.
	Pause(ctx context.Context, queue string) error

	// Resume ends a pause. It does nothing for a queue that is not paused.
	Resume(ctx context.Context, queue string) error
}

// NowRunner is a queue whose delayed jobs can be run now.
type NowRunner interface {
	// RunNow makes a delayed job ready. A job in another state gives pawl.ErrConflict,
	// and an unknown job gives pawl.ErrNotFound.
	RunNow(ctx context.Context, id pawl.ID) error
}

// Deleter is a queue whose dead and completed jobs can be removed.
type Deleter interface {
	// Delete removes a dead or completed job. A job in another state gives
	// pawl.ErrConflict, and an unknown job gives pawl.ErrNotFound.
	Delete(ctx context.Context, id pawl.ID) error
}

// test is one case.
type test struct {
	name     string
	rule     string // of the contract, in one or a few sentences
	settings Settings
	run      func(f *fixture)
}

func newTest(name, rule string, run func(f *fixture)) test {
	return test{name: name, rule: rule, run: run}
}

// with returns the test for a queue with settings.
func (t test) with(s Settings) test {
	t.settings = s
	return t
}

var groups = []struct {
	name  string
	tests []test
}{
	{"enqueue", enqueueTests},
	{"batch", batchTests()},
	{"refuse", refuseTests()},
	{"delay", delayTests()},
	{"order", orderTests()},
	{"place", placeTests()},
	{"turns", turnTests},
	{"fetch", fetchTests},
	{"wait", waitTests()},
	{"kinds", kindTests},
	{"settle", settleTests()},
	{"acks", ackTests()},
	{"fence", fenceTests()},
	{"lease", leaseTests},
	{"clock", clockTests()},
	{"crash", crashTests()},
	{"suspect", suspectTests()},
	{"history", historyTests()},
	{"runnow", runNowTests()},
	{"dead", deadTests()},
	{"unique", uniqueTests()},
	{"idempotent", idempotentTests()},
	{"cancel", cancelTests()},
	{"deadline", deadlineTests()},
	{"inspect", inspectTests},
	{"counts", countTests},
	{"copy", copyTests},
	{"context", contextTests()},
	{"close", closeTests},
	{"restart", restartTests},
	{"many", manyTests},
	{"share", shareTests()},
	{"weights", weightTests()},
	{"pause", pauseTests()},
	{"retain", retainTests()},
	{"delete", deleteTests()},
	{"transfer", transferTests()},
	{"mutation", mutationTests()},
	{"change", changeTests()},
	{"sort", sortTests()},
	{"backoff", backoffTests()},
	{"signature", signatureTests()},
	{"list", listTests},
	{"restore", restoreTests},
	{"stats", statTests},
	{"listen", listenTests},
	{"events", eventTests()},
	{"counters", counterTests()},
}

// Case is one case of the suite. It is the subtest "group/name" of Run.
type Case struct {
	Group string
	Name  string
	Rule  string // of the contract, in one or a few sentences
}

// Cases returns the cases of Run in their order. The random walks, which have a subtest
// for each seed, count as one case.
func Cases() []Case {
	var cases []Case
	for _, g := range groups {
		for _, test := range g.tests {
			cases = append(cases, Case{g.name, test.name, test.rule})
		}
	}
	return append(cases, Case{"random", "any seed",
		"A queue does what the model does, for any order of calls, steps of time, and restarts."})
}

// Run checks the queue that open opens. A nil Config means the zero value.
func Run(t *testing.T, open Open, c *Config) {
	if c == nil {
		c = new(Config)
	}
	names := make(map[string]bool)
	for _, g := range groups {
		for _, test := range g.tests {
			names[g.name+"/"+test.name] = true
		}
		t.Run(g.name, func(t *testing.T) {
			for _, test := range g.tests {
				t.Run(test.name, func(t *testing.T) {
					if why, ok := c.Known[g.name+"/"+test.name]; ok {
						t.Skip("known to fail: " + why)
					}
					test.start(t, open, c)
				})
			}
		})
	}
	for name := range c.Known {
		if !names[name] {
			t.Errorf("Config.Known names %q, which is not a case", name)
		}
	}
	t.Run("random", func(t *testing.T) { runWalks(t, open, c) })
}

// start runs a case in a bubble with its own queue.
func (test *test) start(t *testing.T, open Open, c *Config) {
	t.Helper()
	dir := t.TempDir()
	skipped := false
	synctest.Test(t, func(t *testing.T) {
		f := &fixture{T: t, config: c, open: open, dir: dir, settings: test.settings}
		t.Cleanup(func() {
			if skipped = t.Skipped(); t.Failed() {
				t.Logf("the rule: %s", test.rule)
			}
		})
		f.reopen()
		test.run(f)
	})
	if skipped { // which the bubble hides
		t.SkipNow()
	}
}
