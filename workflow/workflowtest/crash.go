package workflowtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/workflow"
)

// errCrashed is what a step ends with that a crash came before. Nobody writes it down.
var errCrashed = pawl.Permanent(errors.New("workflowtest: the process has crashed"))

// Point is where a crash comes.
type Point struct {
	when when
	step string      // its name, where any of that name will do
	of   stepAttempt // or this one
	rest int         // or when all is settled that often
	seen *[]*Point   // what is recorded here, in place of a crash
	mu   *sync.Mutex // of seen
}

type when string

const (
	before when = "before"
	after  when = "after"
	atRest when = "at rest"
)

// stepAttempt is one attempt of a step of a run.
type stepAttempt struct {
	flow, id, step string
	attempt        int
}

func attemptOf(s workflow.StepInfo) stepAttempt {
	return stepAttempt{s.Flow, s.ID, s.Step, s.Attempt}
}

// String names the point.
func (p *Point) String() string {
	switch {
	case p == nil || p.seen != nil:
		return "no crash"
	case p.when == atRest:
		return fmt.Sprintf("%s %d", atRest, p.rest)
	case p.step != "":
		return fmt.Sprintf("%s %s", p.when, p.step)
	case p.of.attempt > 1:
		return fmt.Sprintf("%s attempt %d of %s", p.when, p.of.attempt, p.of.step)
	}
	return fmt.Sprintf("%s %s", p.when, p.of.step)
}

// meets reports whether a step is the one at which the crash comes.
func (p *Point) meets(when when, s workflow.StepInfo) bool {
	return p.when == when && (p.of == attemptOf(s) || slices.Contains(names(s), p.step))
}

// CrashBefore places a crash before the next attempt of a step: its function is not called,
// and what the step is told at its start is durable. The test fails at its end when there
// was no such step.
func (k *Kit) CrashBefore(step string) { k.place(&Point{when: before, step: step}) }

// CrashAfter places a crash after the next attempt of a step, before anybody has written
// down that it took place: what it did outside is done, and it runs again. A
// [workflow.StepTx] has committed then, with its end, and does not run again. The test fails
// at its end when there was no such step.
func (k *Kit) CrashAfter(step string) { k.place(&Point{when: after, step: step}) }

func (k *Kit) place(p *Point) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.points = append(k.points, p)
}

// Crash crashes while all runs wait or have ended.
func (k *Kit) Crash() {
	k.t.Helper()
	k.dead.Store(true)
	k.reopen()
}

// EachCrash runs a test once without a crash, and then once for each place of that at which
// there can be one: before and after each attempt of each step, and wherever all runs wait.
// The test gives at to [New] by Options.At, and makes all that it needs anew.
//
//	workflowtest.EachCrash(t, func(t *testing.T, at *workflowtest.Point) {
//		shop := newShop()
//		k := workflowtest.New(t, &workflowtest.Options{At: at}, shop.order)
//		…
//	})
//
// Steps whose number is by chance, as that of retries that depend on the time, do not suit
// it: a crash that does not come fails the test.
func EachCrash(t *testing.T, test func(t *testing.T, at *Point)) {
	t.Helper()
	var seen []*Point
	record := &Point{seen: &seen, mu: new(sync.Mutex)}
	if !t.Run(record.String(), func(t *testing.T) { test(t, record) }) {
		return
	}
	if len(seen) == 0 {
		t.Fatalf("workflowtest: there is nowhere to crash; is Options.At set?")
	}
	for _, at := range seen {
		t.Run(at.String(), func(t *testing.T) { test(t, at) })
	}
}

// record remembers where there can be a crash.
func (k *Kit) record(points ...*Point) {
	if at := k.opts.At; at != nil && at.seen != nil {
		at.mu.Lock()
		*at.seen = append(*at.seen, points...)
		at.mu.Unlock()
	}
}

// watch is the outermost middleware, of the engine over q.
func (k *Kit) watch(q *bolt.Queue, dead *atomic.Bool) workflow.Middleware {
	return func(next workflow.StepFunc) workflow.StepFunc {
		return func(ctx context.Context, s workflow.StepInfo) (any, error) {
			k.record(&Point{when: before, of: attemptOf(s)})
			if k.comes(before, s) {
				crash(q, dead)
				return nil, errCrashed
			}
			v, err := next(ctx, s)
			k.record(&Point{when: after, of: attemptOf(s)})
			if k.comes(after, s) {
				crash(q, dead)
			}
			return v, err // which the queue does not take any more
		}
	}
}

// comes reports whether a crash comes here, and takes it from those that are to come.
func (k *Kit) comes(when when, s workflow.StepInfo) bool {
	return k.take(func(p *Point) bool { return p.meets(when, s) })
}

func (k *Kit) take(met func(*Point) bool) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	i := slices.IndexFunc(k.points, met)
	if i < 0 {
		return false
	}
	k.points = slices.Delete(k.points, i, i+1)
	return true
}

// rested is called whenever all runs wait.
func (k *Kit) rested() {
	k.t.Helper()
	k.rests++
	k.record(&Point{when: atRest, rest: k.rests})
	if k.take(func(p *Point) bool { return p.when == atRest && p.rest == k.rests }) {
		k.Crash()
	}
}

// crash closes the queue and returns when it takes nothing more. It may be called inside a
// transaction of the queue, for whose end the queue waits.
func crash(q *bolt.Queue, dead *atomic.Bool) {
	dead.Store(true)
	go func() { _ = q.Close() }() // reopen closes it too, and tells the error
	for {
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		_, err := q.Extend(ctx)
		cancel()
		if err != nil && !errors.Is(err, pawl.ErrNotAccepted) {
			return
		}
	}
}

// missed fails the test for crashes that did not come.
func (k *Kit) missed() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, p := range k.points {
		if !k.t.Failed() {
			k.t.Errorf("workflowtest: there was no crash %s", p)
		}
	}
}
