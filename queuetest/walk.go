package queuetest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gopawl/pawl"
)

// Environment variables that choose random walks.
const (
	envSeed  = "QUEUETEST_SEED"  // walk only this seed, to see a failure again
	envSeeds = "QUEUETEST_SEEDS" // the number of walks
)

// How long random walks are, and how many there are by default.
const (
	walkSteps           = 200
	defaultWalks        = 4
	defaultCounterSteps = 100_000
)

// mostJobs is how many jobs there may be before a walk removes some.
const mostJobs = 60

// runWalks runs the random walks, each as a subtest with the name of its seed.
func runWalks(t *testing.T, open Open, c *Config) {
	first, last := uint64(1), uint64(defaultWalks)
	if c.Walks > 0 {
		last = uint64(c.Walks)
	}
	if n, ok := number(t, envSeeds); ok {
		last = n
	}
	if n, ok := number(t, envSeed); ok {
		first, last = n, n
	}
	for seed := first; seed <= last; seed++ {
		walk := test{
			rule: "After any calls in any order, the queue holds what the model says.",
			run:  func(f *fixture) { f.walk(seed, walkSteps, 1) },
		}
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			c.share(t)
			walk.start(t, open, c)
		})
	}
}

func number(t *testing.T, name string) (n uint64, ok bool) {
	text, ok := os.LookupEnv(name)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n, true
}

// walker takes random steps over a queue and a model.
type walker struct {
	*fixture
	*witness // nil when the queue emits no events
	model    *model
	figures  *figures // of the events that the model emits
	random   *rand.Rand
	leases   []*pawl.Lease // those that were granted recently; most of them are stale
	steps    int
	notes    []string // the last steps, for the report of a failure
}

// walk takes this many steps. It compares the jobs with the model after a number of
// steps, and the events after each step.
func (f *fixture) walk(seed uint64, steps, every int) *walker {
	random := rand.New(rand.NewPCG(seed, 0))
	settings := Settings{
		Lease:      time.Duration(5+random.IntN(20)) * time.Second,
		MaxCrashes: []int{-1, 2, 3, 5}[random.IntN(4)],
	}
	if abilitiesOf(f.q)&pawl.LimitKeys != 0 {
		settings.Limits = map[string]pawl.Limits{
			"x": {Running: random.IntN(4), RunningPerKey: random.IntN(3), Rate: anyRate(random)},
			"y": {RunningPerKey: random.IntN(3), RatePerKey: anyRate(random)},
		}
		orders := []pawl.KeyOrder{pawl.OrderNone}
		if abilitiesOf(f.q)&pawl.OrderedKeys != 0 {
			orders = append(orders, pawl.OrderContinue, pawl.OrderHold)
		}
		if order := pick(random, orders...); order != pawl.OrderNone {
			settings.Limits["y"] = pawl.Limits{InOrder: order, RatePerKey: anyRate(random)}
		}
		if abilitiesOf(f.q)&pawl.FairKeys != 0 {
			for name, limits := range settings.Limits {
				limits.Fair = random.IntN(2) == 0
				settings.Limits[name] = limits
			}
		}
	}
	if abilitiesOf(f.q)&pawl.BoundedQueues != 0 {
		for _, name := range []string{"x", "y"} {
			limits := settings.Limits[name]
			limits.MaxWaiting, limits.MaxWaitingPerKey = pick(random, 0, 0, 5, 9), pick(random, 0, 0, 2, 4)
			settings.Limits[name] = limits
		}
	}
	if abilitiesOf(f.q)&pawl.SharedPools != 0 && random.IntN(2) == 0 {
		for _, name := range []string{"x", "y"} {
			limits := settings.Limits[name]
			limits.Pool = inPool(1 + random.IntN(4)).Pool
			settings.Limits[name] = limits
		}
	}
	w := &walker{fixture: f, random: random, figures: newFigures()}
	if f.config.Events {
		w.witness = f.witnessed(settings)
	} else {
		f.fresh(settings)
	}
	if w.model = newModel(settings); abilitiesOf(f.q)&pawl.Groups != 0 {
		f.makeWalkGroups()
	}
	f.inspector() // or skip
	f.Cleanup(func() {
		if f.Failed() {
			f.Logf("lease %v, crash cap %d, limits %+v; the last steps were\n%s\nsee it again with %s=%d", settings.Lease, settings.MaxCrashes, settings.Limits,
				strings.Join(w.notes, "\n"), envSeed, seed)
		}
	})
	for w.steps < steps {
		w.model.advance(time.Now())
		w.step()
		f.pass(0)
		w.model.advance(time.Now())
		w.compareEvents()
		if w.steps%every == 0 || w.steps == steps {
			w.compareJobs()
		}
	}
	return w
}

// anyRate is a rate, or none.
func anyRate(random *rand.Rand) (r pawl.Rate) {
	if random.IntN(2) == 0 {
		r.Starts, r.Per = 1+random.IntN(6), time.Duration(1+random.IntN(30))*time.Second
		r.Burst = random.IntN(r.Starts + 1)
		r.MaxCost = random.IntN(r.Starts - max(1, r.Burst) + 2)
	}
	return r
}

// compareJobs compares the jobs of the queue with those of the model.
func (w *walker) compareJobs() {
	jobs := w.list(pawl.Filter{})
	w.after(w.model.compare(jobs))
	if q, ok := w.q.(Checker); ok {
		w.after(q.Check(w.Context()))
	}
	w.compareGroups(jobs)
	for _, l := range w.leases {
		if j := w.model.held(l); j != nil && j.Cancelled && !l.Cancelled.Fired() {
			w.after(fmt.Errorf("job %s was cancelled, and its lease got no signal", j.ID))
		}
	}
	if w.config.Counts != nil {
		want := w.model.counts()
		for name, got := range w.counts() {
			if got != want[name] {
				w.after(fmt.Errorf("queue %s counts %+v, the model %+v", name, got, want[name]))
			}
		}
	}
	if w.witness != nil {
		w.after(w.figures.compare(w.tally.Snapshot()))
	}
}

// compareEvents compares the events of the last step, for each job separately.
func (w *walker) compareEvents() {
	events := w.model.events
	w.model.events = nil
	if w.witness == nil {
		return
	}
	for _, e := range events {
		w.figures.add(e)
	}
	got, want := storyOf(w.taken()), storyOf(events)
	for id := range maps.All(got) {
		if got[id] != want[id] {
			w.after(fmt.Errorf("events of job %s are %q, want %q", id, got[id], want[id]))
		}
	}
	for id := range maps.All(want) {
		if got[id] == "" {
			w.after(fmt.Errorf("no events of job %s, want %q", id, want[id]))
		}
	}
}

// after ends the walk with an error after a step.
func (w *walker) after(err error) {
	w.Helper()
	if err != nil {
		w.Fatalf("after step %s: %v", w.notes[len(w.notes)-1], err)
	}
}

// step makes one random call, or lets time pass.
func (w *walker) step() {
	switch n := w.random.IntN(100); {
	case n < 18 && len(w.model.jobs) < mostJobs:
		w.stepEnqueue()
	case n < 18:
		w.stepThin()
	case n < 38:
		w.stepFetch()
	case n < 41:
		w.stepThrottle()
	case n < 58:
		w.stepSettle()
	case n < 62:
		w.stepSettlements()
	case n < 64:
		w.stepExtend()
	case n < 66:
		w.stepSave()
	case n < 70:
		w.stepOperate(runningNow, w.id())
	case n < 74:
		w.stepOperate(retrying, w.id())
	case n < 78:
		w.stepCancel()
	case n < 80:
		w.stepOperate(deleting, w.id())
	case n < 81:
		w.stepRelease()
	case n < 83:
		w.stepPause()
	case n < 84:
		w.note("reap")
		equal(w.fixture, w.reap(), 0, "leases reaped: the queue has taken back what has expired")
	case n < 86:
		w.stepEnded()
	case n < 88 && w.config.Persists:
		w.note("restart")
		w.restart()
		w.model.restart(w.config.Alone)
	default:
		w.stepTime()
	}
}

// id returns the ID of a job, usually of an existing one.
func (w *walker) id() pawl.ID {
	if len(w.model.jobs) > 0 && w.random.IntN(10) > 0 {
		return w.model.jobs[w.random.IntN(len(w.model.jobs))].ID
	}
	return pawl.NewID(time.Now())
}

// stepTime lets time pass, often until right before or exactly when something becomes
// due.
func (w *walker) stepTime() {
	d := []time.Duration{1, time.Second, 3 * time.Second, 10 * time.Second, time.Minute}[w.random.IntN(5)]
	if j, at := w.model.next(); j != nil && w.random.IntN(2) == 0 {
		d = max(1, time.Until(at)-time.Duration(w.random.IntN(2)))
	}
	w.note("%v pass", d)
	w.pass(d)
}

func (w *walker) note(format string, args ...any) {
	w.steps++
	text := fmt.Sprintf(format, args...)
	if len(w.notes) == 25 {
		w.notes = append(w.notes[:0], w.notes[1:]...)
	}
	w.notes = append(w.notes, fmt.Sprintf("%4d  %s  %s", w.steps, time.Now().Format("15:04:05.000000000"), text))
}

// given returns a lease that was granted, usually one that still holds.
func (w *walker) given() *pawl.Lease {
	var current []*pawl.Lease
	for _, l := range w.leases {
		if w.model.held(l) != nil {
			current = append(current, l)
		}
	}
	switch {
	case len(current) > 0 && w.random.IntN(10) > 0:
		return current[w.random.IntN(len(current))]
	case len(w.leases) > 0:
		return w.leases[w.random.IntN(len(w.leases))]
	}
	return &pawl.Lease{Envelope: &pawl.Envelope{ID: pawl.NewID(time.Now())}, Token: 1}
}

func (w *walker) kind() string  { return pick(w.random, "a", "b", "c") }
func (w *walker) queue() string { return pick(w.random, "x", "y") }

func (w *walker) delay() time.Duration {
	return time.Duration(w.random.Int64N(int64(30 * time.Second)))
}

// pick returns one of some values.
func pick[T any](random *rand.Rand, values ...T) T { return values[random.IntN(len(values))] }
