package queuetest

import (
	"context"
	"iter"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/metrics"
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
	MaxCrashes int              // the limit of crashes; 5, and none if it is negative
	Now        func() time.Time // the wall clock; time.Now

	// Limits bound the jobs of queues, for a queue with pawl.LimitKeys; none. A queue that persists
	// keeps the limits that an earlier open declared for a queue which the map does not name.
	Limits map[string]pawl.Limits

	// For a queue that honors them, see Config.Events.

	OnEvent   func(pawl.Event)  // receives every event; none
	Collector metrics.Collector // receives the counters; none
}

// Config describes what the queue can do besides its methods. Nil means nothing.
type Config struct {
	// Persists says that a queue holds the jobs of the queue that was closed in the same
	// folder.
	Persists bool

	// Alone says that only one process at a time opens a queue, so leases found at open
	// are orphans: Open takes them back, and counts a crash for each. Without Alone, a
	// lease outlasts its client until it expires.
	Alone bool

	// Another opens another client of the queue in the same folder, beside those that are
	// open. Nil means that a queue has one client at a time.
	Another Open

	// MaxBatch is the most jobs that an Enqueue of the queue takes, if that is less than the contract
	// says. Cases whose subject is not the batch then enqueue their jobs in several calls.
	MaxBatch int

	// Reduced is how the queue keeps less than the contract. The zero value means the whole contract.
	Reduced Reduced

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

	// Parallel runs the cases at the same time, as many as the flag -parallel says. It is for a queue whose server
	// makes them wait. Open then opens queues that share nothing but the server.
	Parallel bool

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

// Checker is a queue that can compare all of its rows with each other. The random walks and the
// cases of cursors check it between two calls.
type Checker interface {
	// Check returns an error if rows are damaged or contradict each other.
	Check(ctx context.Context) error
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
	needs    needs
	without  needs        // what Config must not say for the case to apply
	requires pawl.Ability // of the queue
	misses   pawl.Ability // what the queue must not have
	settings Settings
	run      func(f *fixture)
}

func newTest(name, rule string, run func(f *fixture)) test {
	return test{name: name, rule: rule, run: run}
}

// restartTest is a case that closes the queue and opens it again. No job is leased then.
func restartTest(name, rule string, run func(f *fixture)) test {
	return newTest(name, rule, run).needing(persists)
}

// aloneTest is a case in which open finds leases and takes them back.
func aloneTest(name, rule string, run func(f *fixture)) test {
	return newTest(name, rule, run).needing(alone)
}

// needing returns the test with more needs.
func (t test) needing(n needs) test {
	t.needs |= n
	return t
}

// unless returns the test for a configuration that does not say something.
func (t test) unless(n needs) test {
	t.without |= n
	return t
}

// alsoRequiring returns the test for a queue with one more ability.
func (t test) alsoRequiring(a pawl.Ability) test {
	t.requires |= a
	return t
}

// with returns the test for a queue with settings.
func (t test) with(s Settings) test {
	t.settings = s
	return t
}

// group is the cases of one subject. Each of them has the needs of the group too.
type group struct {
	name  string
	tests []test
	needs needs

	requires pawl.Ability
}

// applying returns the cases that apply to a queue which meets some needs and has some abilities.
func (g *group) applying(met needs, has pawl.Ability) []test {
	return slices.DeleteFunc(slices.Clone(g.tests), func(t test) bool {
		return (t.needs|g.needs)&^met != 0 || t.without&met != 0 || (t.requires|g.requires)&^has != 0 || t.misses&has != 0
	})
}

var groups = []group{
	{"abilities", abilityTests(), 0, 0},
	{"enqueue", enqueueTests, 0, 0},
	{"batch", batchTests(), 0, 0},
	{"refuse", refuseTests(), 0, 0},
	{"reduced", reducedTests, 0, 0},
	{"delay", delayTests(), 0, 0},
	{"order", orderTests(), 0, 0},
	{"place", placeTests(), 0, 0},
	{"turns", turnTests, 0, 0},
	{"fetch", fetchTests, 0, 0},
	{"wait", waitTests(), 0, 0},
	{"kinds", kindTests, 0, 0},
	{"settle", settleTests(), 0, 0},
	{"requeue", requeueTests(), 0, 0},
	{"acks", ackTests(), 0, 0},
	{"fence", fenceTests(), 0, 0},
	{"lease", leaseTests, 0, 0},
	{"clock", clockTests(), clocked, 0},
	{"crash", crashTests(), 0, 0},
	{"suspect", suspectTests(), suspecting, 0},
	{"history", historyTests(), 0, 0},
	{"runnow", runNowTests(), 0, 0},
	{"dead", deadTests(), 0, 0},
	{"unique", uniqueTests(), 0, pawl.UniqueKeys},
	{"idempotent", idempotentTests(), 0, pawl.IdempotencyKeys},
	{"limits", limitTests(), 0, pawl.LimitKeys},
	{"rests", restTests(), 0, pawl.LimitKeys},
	{"keys in order", inOrderTests(), 0, pawl.LimitKeys | pawl.OrderedKeys},
	{"fair keys", fairTests(), 0, pawl.LimitKeys | pawl.FairKeys},
	{"bounded queues", backlogTests(), 0, pawl.LimitKeys | pawl.BoundedQueues},
	{"pools", poolTests(), 0, pawl.LimitKeys | pawl.SharedPools},
	{"overrides", overrideTests(), 0, pawl.LimitKeys},
	{"why", slices.Concat(whyTests(), whyLimitTests()), 0, pawl.IdempotencyKeys},
	{"cancel", cancelTests(), 0, 0},
	{"deadline", deadlineTests(), 0, pawl.Deadlines},
	{"inspect", inspectTests, 0, 0},
	{"counts", countTests, counting, 0},
	{"copy", copyTests, 0, 0},
	{"context", contextTests(), 0, 0},
	{"close", closeTests, 0, 0},
	{"restart", slices.Concat(restartTests, togetherTests), 0, 0},
	{"many", manyTests, 0, 0},
	{"share", shareTests(), 0, pawl.RetryShares},
	{"weights", weightTests(), 0, 0},
	{"pause", pauseTests(), 0, 0},
	{"retain", retainTests(), 0, pawl.Retention},
	{"results", resultTests(), 0, pawl.Results | pawl.Retention},
	{"groups", slices.Concat(groupTests(), drainTests()), mutating, pawl.Groups},
	{"after", afterTests(), 0, pawl.Prerequisites},
	{"cursors", cursorTests(), 0, pawl.Cursors},
	{"notes", noteTests(), mutating, pawl.RunNotes},
	{"delete", deleteTests(), 0, 0},
	{"transfer", transferTests(), 0, 0},
	{"mutation", mutationTests(), mutating, 0},
	{"change", changeTests(), 0, 0},
	{"edit", editTests(), 0, 0},
	{"sort", sortTests(), 0, 0},
	{"backoff", backoffTests(), 0, 0},
	{"signature", signatureTests(), 0, 0},
	{"list", listTests, 0, 0},
	{"restore", restoreTests, 0, 0},
	{"stats", statTests, 0, 0},
	{"listen", listenTests, 0, 0},
	{"events", eventTests(), emitting, 0},
	{"counters", counterTests(), emitting, 0},
	{"several", severalTests(), several, 0},
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

// Run checks the queue that open opens. A nil Config means the zero value. It leaves out the
// cases that do not apply to what Config says.
func Run(t *testing.T, open Open, c *Config) {
	if c == nil {
		c = new(Config)
	}
	var met needs
	var has pawl.Ability
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		f := &fixture{T: t, config: c, open: open, dir: dir}
		f.reopen()
		met, has = c.meets(f.q), abilitiesOf(f.q)
	})
	names := make(map[string]bool)
	for _, g := range groups {
		for _, test := range g.tests {
			names[g.name+"/"+test.name] = true
		}
		tests := g.applying(met, has)
		if len(tests) == 0 {
			continue
		}
		t.Run(g.name, func(t *testing.T) {
			c.share(t)
			for _, test := range tests {
				t.Run(test.name, func(t *testing.T) {
					c.share(t)
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
	t.Run("random", func(t *testing.T) {
		c.share(t)
		runWalks(t, open, c)
	})
}

// share lets a test run beside others, where the configuration allows it.
func (c *Config) share(t *testing.T) {
	if c.Parallel {
		t.Parallel()
	}
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
