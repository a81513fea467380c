package scenario

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/race"
	"github.com/gopawl/pawl/workflow"
)

var (
	modelSeeds = flag.Int("model.seeds", 60, "how many random histories the model is tried with")
	modelFirst = flag.Uint64("model.first", 1, "the first of them")
)

// identity is one call, as its author knows it.
type identity struct {
	run   string
	round int
	step  string
}

func (id identity) String() string { return fmt.Sprintf("%s@%d: %s", id.run, id.round, id.step) }

// outcomeOf is the result of a call, as a function received it.
type outcomeOf struct {
	v   int
	err string
}

// oracle knows the allowed behavior: it records the result of every call of every function, and
// the effects on the outside world, over all lives of the program.
type oracle struct {
	k       *kit
	program *workflow.Flow[program, int]

	mu       sync.Mutex
	wrong    []string
	start    map[identity]time.Time // first call
	known    map[identity]outcomeOf // calls that have ended
	heards   int
	order    map[identity]int  // order of their first results
	back     map[identity]bool // waits of losers that gave back their signals
	attempts map[identity]int
	last     map[string]*execution // the last execution of each run's function
	undone   map[string][]identity // of each run, in the order of their first attempts

	sent       map[string][]int // to each run, by name, in order
	cancelled  map[string]bool
	terminated map[string]bool

	endedAt map[identity]time.Time // when the result of a call was first received
	crashes []crash
}

// crash is the time from the begin of a crash until the next life has begun.
type crash struct{ from, to time.Time }

// crash ends a life and begins the next.
func (o *oracle) crash() {
	o.mu.Lock()
	o.crashes = append(o.crashes, crash{from: time.Now()})
	o.mu.Unlock()
	o.k.crash()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.crashes[len(o.crashes)-1].to = time.Now()
}

// lost reports whether a crash came so soon after the end of a step that the file may not have it.
func (o *oracle) lost(id identity, n node) bool {
	at, soon := o.endedAt[id], 5*time.Millisecond
	return n.Kind == "step" && !n.Once && slices.ContainsFunc(o.crashes, func(c crash) bool {
		return c.from.Sub(at) <= soon && (c.to.IsZero() || !at.After(c.to))
	})
}

func newOracle(k *kit) *oracle {
	o := &oracle{k: k, start: make(map[identity]time.Time), known: make(map[identity]outcomeOf), order: make(map[identity]int), back: make(map[identity]bool), attempts: make(map[identity]int),
		last: make(map[string]*execution), endedAt: make(map[identity]time.Time), undone: make(map[string][]identity),
		sent: make(map[string][]int), cancelled: make(map[string]bool), terminated: make(map[string]bool)}
	o.program = o.flow()
	return o
}

func (o *oracle) complain(format string, args ...any) {
	o.wrong = append(o.wrong, fmt.Sprintf(format, args...))
}

// execution records one call of a function. An execution of an earlier life may continue for a
// while.
type execution struct {
	undos    []identity // undo steps that it named
	total    *workflow.Shared[int]
	returned outcomeOf
}

// began records that a function is called.
func (o *oracle) began(run string) *execution {
	o.mu.Lock()
	defer o.mu.Unlock()
	x := new(execution)
	o.last[run] = x
	return x
}

// calls records that a function makes a call, and returns when it first did.
func (o *oracle) calls(id identity) time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, ok := o.start[id]; !ok {
		o.start[id] = o.k.now()
	}
	return o.start[id]
}

// waited hears that time is over.
func (o *oracle) waited(id identity, begun time.Time, d time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if now := o.k.now(); now.Before(begun.Add(d)) {
		o.complain("%s is over after %v of %v", id, now.Sub(begun), d)
	}
}

// received records the result of a call: an ended call always has the same result.
func (o *oracle) received(id identity, v int, err error) {
	if err != nil && !own(err) {
		return // it has not ended
	}
	got := outcomeOf{v: v}
	if err != nil {
		got.err = err.Error()
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.back[id] {
		return // the race was decided before the loser learned of its signal
	}
	if o.wentBack(id, got) {
		o.forget(id)
	}
	if _, ok := o.known[id]; !ok {
		o.order[id], o.endedAt[id] = o.heards, time.Now()
		o.heards++
	}
	if before, ok := o.known[id]; ok && before != got {
		o.complain("%s gave %v, and then %v", id, before, got)
	}
	o.known[id] = got
}

// wentBack reports whether the run has gone back to a wait of its function before it ended: a
// timeout has become a signal.
func (o *oracle) wentBack(id identity, got outcomeOf) bool {
	before := o.known[id]
	return strings.HasSuffix(before.err, workflow.ErrTimeout.Error()) && got.err == "" && !strings.Contains(id.step, "/")
}

// forget drops the results of a wait, and of the function's own calls after it.
func (o *oracle) forget(id identity) {
	for other := range o.known {
		if other.run == id.run && other.round == id.round && !strings.Contains(other.step, "/") && o.order[other] >= o.order[id] {
			delete(o.known, other)
			delete(o.order, other)
		}
	}
}

// gaveBack reads which signals the losers of races gave back. The waits of those signals have
// not ended then.
func (o *oracle) gaveBack(r pawl.ID, run string, round int) {
	entries, err := o.k.engine().Journal(context.Background(), r, false)
	o.mu.Lock()
	defer o.mu.Unlock()
	if err != nil && !errors.Is(err, pawl.ErrClosed) {
		o.complain("journal of %s: %v", run, err)
	}
	for _, e := range entries {
		if e.Kind == workflow.KindWait && strings.Contains(e.Error, "given back") {
			id := identity{run, round, e.Step()}
			o.back[id] = true
			delete(o.known, id)
		}
	}
}

// attempted records an outside effect, and returns how often it has happened.
func (o *oracle) attempted(id identity, n node) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.attempts[id]++
	if known, ok := o.known[id]; ok && o.lost(id, n) {
		delete(o.known, id)
		delete(o.order, id)
	} else if ok {
		o.complain("%s runs again, and has given %v", id, known)
	}
	if n.Once && o.attempts[id] > 1 {
		o.complain("%s runs again, and was to run at most once", id)
	}
	if n.Kind == "undo" && o.attempts[id] == 1 {
		o.undone[id.run] = append(o.undone[id.run], id)
	}
	return o.attempts[id]
}

// named records an undo step.
func (o *oracle) named(x *execution, id identity) {
	o.mu.Lock()
	defer o.mu.Unlock()
	x.undos = append(x.undos, id)
}

// ended records the result of a function.
func (o *oracle) ended(x *execution, v int, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if x.returned.v = v; err != nil {
		x.returned.err = err.Error()
	}
}

// Rule: whatever random functions do, and whatever happens to their runs, through crashes and
// restarts: an ended call always returns the same result and does not run again, unless it is a
// step that ended a moment before a crash. No signal is lost or received twice, no run is stuck,
// and every run ends in a way that the requests to it allow.
func (suite) Scenario45Model(t *testing.T) {
	for seed := range uint64(race.Fewer(*modelSeeds)) {
		sub(t, fmt.Sprint("seed ", *modelFirst+seed), func(t *testing.T, k *kit) {
			t.Cleanup(func() { k.pass(24 * time.Hour) }) // until steps that ignore their contexts end
			random := rand.New(rand.NewPCG(*modelFirst+seed, 45))
			o := newOracle(k)
			k.maxCrashes = -1 // crashes say nothing about the runs
			k.slots = 1 + random.IntN(6)
			k.open(o.program)
			for i := range 3 {
				a := author{Rand: random}
				start(k, o.program, fmt.Sprint(i), a.program(0))
			}
			for range 30 {
				o.happen(random)
				o.sound()
			}
			o.endAll()
			o.judge()
		})
	}
}

// sound requires that nothing has gone wrong so far.
func (o *oracle) sound() {
	o.k.t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	require.Empty(o.k.t, o.wrong)
}

// happen lets one random thing happen to the program or to a run.
func (o *oracle) happen(random *rand.Rand) {
	k, t := o.k, o.k.t
	t.Helper()
	runs := o.runs()
	run := runs[random.IntN(len(runs))]
	ctx := t.Context()
	allow := func(err error, allowed ...error) {
		t.Helper()
		for _, a := range append(allowed, workflow.ErrNotRunning) {
			if errors.Is(err, a) {
				return
			}
		}
		require.NoError(t, err)
	}
	switch random.IntN(20) {
	case 0, 1:
		o.crash()
	case 2, 3:
		require.NoError(t, k.e.Check(ctx))
		k.restart(k.build)
	case 4:
		allow(k.e.Pause(ctx, run.Run), pawl.ErrConflict)
	case 5, 6:
		allow(k.e.Resume(ctx, run.Run))
	case 7:
		o.cancelled[run.ID] = true
		allow(k.e.Cancel(ctx, run.Run, "so it was asked"))
	case 8:
		if random.IntN(3) == 0 {
			err := k.e.Terminate(ctx, run.Run, "so it was asked")
			o.terminated[run.ID] = o.terminated[run.ID] || err == nil
			allow(err)
		}
	case 9, 10, 11, 12, 13:
		o.send(run, [...]string{word.Name(), last.Name()}[random.IntN(2)])
	case 14, 15, 16:
		k.pass([...]time.Duration{0, time.Millisecond, time.Second, time.Minute, time.Hour}[random.IntN(5)])
	case 17:
		k.jump(time.Duration(random.IntN(3600)) * time.Second)
	default:
		k.settle()
	}
}

func (o *oracle) send(run workflow.Info, name string) {
	o.k.t.Helper()
	key := run.ID + " " + name
	n := len(o.sent[key]) + 1
	err := workflow.DefineSignal[int](name).Send(o.k.t.Context(), o.k.e, run.Run, n, "")
	if !errors.Is(err, workflow.ErrNotRunning) {
		require.NoError(o.k.t, err)
		o.sent[key] = append(o.sent[key], n)
	}
}

// runs returns all runs, which are never blocked or dead.
func (o *oracle) runs() []workflow.Info {
	o.k.t.Helper()
	list, err := o.k.e.List(o.k.t.Context(), workflow.Filter{}, "", 1000)
	require.NoError(o.k.t, err)
	require.Empty(o.k.t, list.Next)
	for _, run := range list.Runs {
		require.NotContains(o.k.t, []workflow.Status{workflow.Blocked, workflow.Dead}, run.Status, "%+v", run)
	}
	return list.Runs
}

// endAll lets every run end: none is paused any more, all signals arrive, and time passes.
func (o *oracle) endAll() {
	k, t := o.k, o.k.t
	t.Helper()
	for range 200 {
		k.settle()
		open := 0
		for _, run := range o.runs() {
			if run.Status.Ended() {
				continue
			}
			open++
			if run.Status == workflow.Paused {
				if err := k.e.Resume(t.Context(), run.Run); !errors.Is(err, workflow.ErrNotRunning) {
					require.NoError(t, err)
				}
			}
			for _, name := range []string{word.Name(), last.Name()} {
				o.send(run, name)
			}
		}
		if open == 0 {
			return
		}
		k.pass(3 * time.Hour)
	}
	for _, run := range o.runs() {
		if !run.Status.Ended() {
			t.Errorf("a run is stuck: %+v\n%s", run, strings.Join(k.journal(run.Run), "\n"))
		}
	}
	t.FailNow()
}
