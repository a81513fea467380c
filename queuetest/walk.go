package queuetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gopawl/pawl"
)

// Environment variables that choose random walks.
const (
	envSeed  = "QUEUETEST_SEED"  // walk this one alone, to see a failure again
	envSeeds = "QUEUETEST_SEEDS" // walk so many
)

// How long random walks are, and how many there are unless Config.Walks tells.
const (
	walkSteps    = 200
	defaultWalks = 4
)

// runWalks runs the random walks, each as a subtest that is called by its seed.
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
			rule: "What any calls in any order leave is what the model says.",
			run:  func(f *fixture) { f.walk(seed) },
		}
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { walk.start(t, open, c) })
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
	model  *model
	random *rand.Rand
	leases []*pawl.Lease // all that were ever given: most of them are stale
	steps  []string      // what was done, for whoever looks for the cause of a failure
}

func (f *fixture) walk(seed uint64) {
	random := rand.New(rand.NewPCG(seed, 0))
	settings := Settings{
		Lease:      time.Duration(5+random.IntN(20)) * time.Second,
		MaxCrashes: []int{-1, 2, 3, 5}[random.IntN(4)],
	}
	f.fresh(settings)
	w := &walker{fixture: f, random: random, model: &model{lease: settings.Lease, maxCrashes: settings.MaxCrashes}}
	f.inspector() // or skip
	f.Cleanup(func() {
		if f.Failed() {
			f.Logf("lease %v, crash cap %d; the last steps were\n%s\nsee it again with %s=%d", settings.Lease, settings.MaxCrashes,
				strings.Join(w.steps[max(0, len(w.steps)-25):], "\n"), envSeed, seed)
		}
	})
	for range walkSteps {
		w.step()
		f.pass(0)
		w.model.advance(time.Now())
		if err := w.model.compare(f.list(pawl.Filter{})); err != nil {
			f.Fatalf("after step %d, %s: %v", len(w.steps), w.steps[len(w.steps)-1], err)
		}
	}
}

// step makes one random call, or lets time pass.
func (w *walker) step() {
	switch n := w.random.IntN(100); {
	case n < 18:
		w.stepEnqueue()
	case n < 40:
		w.stepFetch()
	case n < 66:
		w.stepSettle()
	case n < 71:
		w.stepExtend()
	case n < 76:
		w.stepUnpark()
	case n < 80:
		w.stepRetry()
	case n < 82:
		w.note("reap")
		equal(w.fixture, w.reap(), 0, "leases reaped: the queue has taken back what has expired")
	case n < 85:
		w.stepEnded()
	case n < 88 && w.config.Restart:
		w.note("restart")
		w.restart()
		w.model.restart(time.Now())
	default:
		w.stepTime()
	}
}

// stepTime lets time pass, often until right before or at the moment in which
// something falls due.
func (w *walker) stepTime() {
	d := []time.Duration{1, time.Second, 3 * time.Second, 10 * time.Second, time.Minute}[w.random.IntN(5)]
	if next := w.model.next(); !next.IsZero() && w.random.IntN(2) == 0 {
		d = max(1, time.Until(next)-time.Duration(w.random.IntN(2)))
	}
	w.note("%v pass", d)
	w.pass(d)
}

func (w *walker) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	w.steps = append(w.steps, fmt.Sprintf("%4d  %s  %s", len(w.steps)+1, time.Now().Format("15:04:05.000000000"), text))
}

func (w *walker) stepEnqueue() {
	batch := newBatch(1 + w.random.IntN(4))
	var want error
	for _, e := range batch {
		e.Kind, e.Queue = w.kind(), w.queue()
		e.Priority = int8(w.random.IntN(3) - 1)
		e.MaxRetries = w.random.IntN(5)
		e.Payload = make([]byte, w.random.IntN(2000))
		switch w.random.IntN(6) {
		case 0:
			e.Delay = w.delay()
		case 1:
			e.NotBefore = time.Now().Add(w.delay())
		case 2:
			e.NotBefore = time.Now().Add(-w.delay())
		}
	}
	switch spoil := batch[w.random.IntN(len(batch))]; {
	case w.random.IntN(10) == 0:
		spoil.MaxRetries, want = -1, pawl.ErrInvalid
	case w.random.IntN(10) == 0 && len(w.model.jobs) > 0:
		spoil.ID, want = w.model.jobs[w.random.IntN(len(w.model.jobs))].ID, pawl.ErrConflict
	}
	err := w.q.Enqueue(w.Context(), batch...)
	w.note("enqueue %d jobs: %v", len(batch), err)
	if w.is(err, want, "enqueue"); err == nil {
		w.model.enqueue(batch, time.Now())
	}
}

func (w *walker) stepFetch() {
	r := pawl.Request{Queues: []string{"x", "y", "never seen"}, Max: 1 + w.random.IntN(5)}
	w.random.Shuffle(len(r.Queues), func(i, j int) { r.Queues[i], r.Queues[j] = r.Queues[j], r.Queues[i] })
	r.Queues = r.Queues[:1+w.random.IntN(3)]
	r.Ahead = w.random.IntN(r.Max + 1)
	if r.Wait = []pawl.Wait{pawl.WaitNot, pawl.WaitDrained, pawl.WaitFinished}[w.random.IntN(3)]; w.model.waits(r) {
		r.Wait = pawl.WaitNot
	}
	leases := w.request(r)
	w.note("fetch %+v: %d leases", r, len(leases))
	w.ok(w.model.fetch(r, leases, time.Now()), "fetch")
	w.leases = append(w.leases, leases...)
}

// given is a lease that was given: mostly one that still counts.
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

func (w *walker) stepSettle() {
	l := w.given()
	j := w.model.held(l)
	var want error
	if j == nil {
		want = pawl.ErrLeaseLost
	}
	delay := time.Duration(0)
	if w.random.IntN(2) == 0 {
		delay = w.delay()
	}
	verb := verbs[w.random.IntN(len(verbs))].name
	var err error
	switch verb {
	case "ack":
		err = w.q.Ack(w.Context(), l)
	case "nack":
		err = w.q.Nack(w.Context(), l, delay, errBoom)
	case "abandon":
		err = w.q.Abandon(w.Context(), l, pawl.ReasonExhausted, errBoom)
	case "release":
		err = w.q.Release(w.Context(), l)
	case "snooze":
		err = w.q.Snooze(w.Context(), l, delay)
	case "park":
		err = w.q.Park(w.Context(), l)
	}
	w.note("%s job %s, delay %v: %v", verb, l.ID, delay, err)
	if w.is(err, want, verb); err == nil {
		w.model.settle(j, verb, delay, time.Now())
	}
}

func (w *walker) stepExtend() {
	var leases, lost []*pawl.Lease
	for range w.random.IntN(4) {
		l := w.given()
		leases = append(leases, l)
		if j := w.model.held(l); j != nil {
			j.expires = time.Now().Add(w.model.lease)
		} else {
			lost = append(lost, l)
		}
	}
	w.note("extend %d leases, %d of them stale", len(leases), len(lost))
	if got := w.extend(leases...); !slices.Equal(got, lost) {
		w.Fatalf("lost: %v, want %v", got, lost)
	}
}

func (w *walker) stepUnpark() {
	kinds := []string{w.kind(), w.kind()}
	n := w.unpark(kinds...)
	w.note("unpark %q: %d", kinds, n)
	equal(w.fixture, n, w.model.unpark(kinds), "jobs unparked")
}

func (w *walker) stepRetry() {
	retrier, ok := w.q.(Retrier)
	if !ok {
		return
	}
	id := pawl.NewID(time.Now())
	if len(w.model.jobs) > 0 && w.random.IntN(10) > 0 {
		id = w.model.jobs[w.random.IntN(len(w.model.jobs))].ID
	}
	keep := w.random.IntN(2) == 0
	err := retrier.Retry(w.Context(), id, keep)
	w.note("retry job %s, attempts kept: %v: %v", id, keep, err)
	w.is(err, w.model.retry(id, keep, time.Now()), "retry")
}

// stepEnded makes a call whose context has ended.
func (w *walker) stepEnded() {
	ctx, cancel := context.WithCancel(w.Context())
	cancel()
	all := calls()
	c := all[w.random.IntN(len(all))]
	w.note("%s with a context that has ended", c.name)
	w.is(c.do(ctx, w.q, w.given()), pawl.ErrNotAccepted, c.name)
}

func (w *walker) kind() string  { return []string{"a", "b", "c"}[w.random.IntN(3)] }
func (w *walker) queue() string { return []string{"x", "y"}[w.random.IntN(2)] }

func (w *walker) delay() time.Duration {
	return time.Duration(w.random.Int64N(int64(30 * time.Second)))
}
