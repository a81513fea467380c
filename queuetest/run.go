package queuetest

import (
	"context"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gopawl/pawl"
)

// Open opens a queue, or fails the test. Dir is a folder for it alone; a second Open
// with the same dir is the restart of the queue there, which was closed. Run closes
// what it opened when it is an io.Closer, before the functions run that Open gave to
// t.Cleanup.
//
// Open is called within a bubble of testing/synctest, and so is every method: the
// queue starts its goroutines and timers there, and waits for nothing outside but
// the disk.
type Open func(t testing.TB, dir string, s Settings) pawl.Queue

// Settings are what a queue is to be opened with. Zero fields mean the defaults of
// the contract.
type Settings struct {
	Lease      time.Duration    // how long a lease lasts; 30 s
	MaxCrashes int              // the crash cap; 5, and none when it is negative
	Now        func() time.Time // the wall clock; time.Now

	// For a queue that honours them, see Config.Events.

	OnEvent   func(pawl.Event) // is told every event; none
	Collector pawl.Collector   // gets the counters; none
}

// Config tells what the queue can do besides its methods. Nil means nothing.
type Config struct {
	// Restart says that a queue which is opened where another was closed holds the
	// jobs of that one.
	Restart bool

	// Counts counts the jobs of each named queue that ever had one, or was paused.
	Counts func(ctx context.Context, q pawl.Queue) (map[string]pawl.Counts, error)

	// Events says that the queue honours Settings.OnEvent and Settings.Collector.
	Events bool

	// Walks is how many random walks there are; 4 unless it is set. The environment
	// overrides it: QUEUETEST_SEEDS is another number, QUEUETEST_SEED the seed of a
	// single walk, as a failure prints it.
	Walks int

	// CounterSteps is how long the walk is whose counters are compared with the model;
	// 100 000 unless it is set.
	CounterSteps int

	// Known names cases, as "group/name", that the queue is known to fail, and why.
	// They are skipped, and say so.
	Known map[string]string
}

// Inspector is a queue into which one can look. Most cases want it.
type Inspector interface {
	// Job returns one job with its state, payload and history, or pawl.ErrNotFound.
	Job(ctx context.Context, id pawl.ID) (*pawl.Envelope, error)

	// Jobs iterates over the jobs that a filter chooses.
	Jobs(ctx context.Context, f pawl.Filter) iter.Seq2[*pawl.Envelope, error]
}

// Retrier is a queue whose dead letters can be retried.
type Retrier interface {
	// Retry takes a dead letter back to ready. A job that is not dead gives
	// pawl.ErrConflict, one that is not there pawl.ErrNotFound.
	Retry(ctx context.Context, id pawl.ID, keepAttempts bool) error
}

// Canceller is a queue whose jobs can be cancelled.
type Canceller interface {
	// Cancel ends a job: one that waits is a dead letter at once, one that is leased is
	// told to end. A dead or completed one gives pawl.ErrConflict, one that is not there
	// pawl.ErrNotFound.
	Cancel(ctx context.Context, id pawl.ID) error
}

// Pauser is a queue whose named queues can be paused.
type Pauser interface {
	// Pause stops a named queue from giving jobs until Resume, over restarts too. A
	// name that is no name of a queue gives pawl.ErrInvalid.
	Pause(ctx context.Context, queue string) error

	// Resume ends a pause. That of a queue which is not paused does nothing.
	Resume(ctx context.Context, queue string) error
}

// Hastener is a queue whose jobs can be told to wait no longer.
type Hastener interface {
	// RunNow makes a delayed job ready. One in another state gives
	// pawl.ErrConflict, one that is not there pawl.ErrNotFound.
	RunNow(ctx context.Context, id pawl.ID) error
}

// Deleter is a queue whose dead letters and completed records can be removed.
type Deleter interface {
	// Delete removes a job that is dead or completed. One in another state gives
	// pawl.ErrConflict, one that is not there pawl.ErrNotFound.
	Delete(ctx context.Context, id pawl.ID) error
}

// test is one case.
type test struct {
	name     string
	rule     string // of the contract, in a sentence
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
	{"hasten", runNowTests()},
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
	{"events", eventTests()},
	{"counters", counterTests()},
}

// Case is one case of the suite, a subtest of Run by the name "group/name".
type Case struct {
	Group string
	Name  string
	Rule  string // of the contract, in a sentence
}

// Cases returns the cases of Run in their order. The random walks, which have a subtest
// for each seed, are one case.
func Cases() []Case {
	var cases []Case
	for _, g := range groups {
		for _, test := range g.tests {
			cases = append(cases, Case{g.name, test.name, test.rule})
		}
	}
	return append(cases, Case{"random", "any seed",
		"A queue does what the model does, whichever way calls, time and restarts fall."})
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
			t.Errorf("Config.Known names %q, which is no case", name)
		}
	}
	t.Run("random", func(t *testing.T) { runWalks(t, open, c) })
}

// start runs a case in a bubble, with a queue of its own.
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
	if skipped { // which the bubble keeps to itself
		t.SkipNow()
	}
}
