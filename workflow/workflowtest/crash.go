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

// errCrashed is the result of a step after a crash. It is never recorded.
var errCrashed = pawl.Permanent(errors.New("workflowtest: the process has crashed"))

// Point is a place for a crash.
type Point struct {
	when when
	step string      // any step with this name
	of   stepAttempt // or this attempt
	rest int         // or the n-th time that all runs wait
	seen *[]*Point   // collects the possible points instead of crashing; guarded by mu
	mu   *sync.Mutex
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

// String returns the name of the point.
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

// meets reports whether the crash is at this step.
func (p *Point) meets(when when, s workflow.StepInfo) bool {
	return p.when == when && (p.of == attemptOf(s) || slices.Contains(names(s), p.step))
}

// CrashBefore crashes before the next attempt of a step: its function is not called, but the start of
// the step is durable. The test fails if there is no such step.
func (k *Kit) CrashBefore(step string) { k.place(&Point{when: before, step: step}) }

// CrashAfter crashes after the next attempt of a step and before its result is recorded: its effects
// have happened, and it runs again. A [workflow.StepTx] has committed together with its result, and
// does not run again. The test fails if there is no such step.
func (k *Kit) CrashAfter(step string) { k.place(&Point{when: after, step: step}) }

func (k *Kit) place(p *Point) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.points = append(k.points, p)
}

// Crash crashes now, while all runs wait or have ended.
func (k *Kit) Crash() {
	k.t.Helper()
	k.dead.Store(true)
	k.reopen()
}

// EachCrash runs a test once without a crash, and then once for each possible crash of that run:
// before and after each attempt of each step, and whenever all runs wait. The test passes at to [New]
// as Options.At and sets up everything anew.
//
//	workflowtest.EachCrash(t, func(t *testing.T, at *workflowtest.Point) {
//		shop := newShop()
//		k := workflowtest.New(t, &workflowtest.Options{At: at}, shop.order)
//		…
//	})
//
// The number of steps and attempts must be deterministic: a crash that does not happen fails the test.
func EachCrash(t *testing.T, test func(t *testing.T, at *Point)) {
	t.Helper()
	var seen []*Point
	record := &Point{seen: &seen, mu: new(sync.Mutex)}
	if !t.Run(record.String(), func(t *testing.T) { test(t, record) }) {
		return
	}
	if len(seen) == 0 {
		t.Fatalf("workflowtest: no point for a crash; is Options.At set?")
	}
	for _, at := range seen {
		t.Run(at.String(), func(t *testing.T) { test(t, at) })
	}
}

// record adds possible points of a crash.
func (k *Kit) record(points ...*Point) {
	if at := k.opts.At; at != nil && at.seen != nil {
		at.mu.Lock()
		*at.seen = append(*at.seen, points...)
		at.mu.Unlock()
	}
}

// watch returns the outermost middleware of the engine on q.
func (k *Kit) watch(q *bolt.Queue, dead *atomic.Bool) workflow.Middleware {
	return func(next workflow.StepFunc) workflow.StepFunc {
		return func(ctx context.Context, s workflow.StepInfo) (any, error) {
			k.record(&Point{when: before, of: attemptOf(s)})
			if k.comes(before, s) {
				crash(q, dead, s)
				return nil, errCrashed
			}
			v, err := next(ctx, s)
			k.record(&Point{when: after, of: attemptOf(s)})
			if k.comes(after, s) {
				crash(q, dead, s)
			}
			return v, err // the closed queue does not accept it
		}
	}
}

// comes reports whether a crash is due here, and removes it from the pending ones.
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

// crash closes the queue, so that nothing stores what the step returns: neither a write of its own nor one of another
// branch that is on its way. A step-tx may be within a transaction of the queue, for which Close waits. So crash returns
// there when the queue accepts nothing more.
func crash(q *bolt.Queue, dead *atomic.Bool, s workflow.StepInfo) {
	dead.Store(true)
	if s.Kind != workflow.KindStepTx {
		_ = q.Close() // reopen closes it too, and reports the error
		return
	}
	go func() { _ = q.Close() }()
	for {
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		_, err := q.Extend(ctx)
		cancel()
		if err != nil && !errors.Is(err, pawl.ErrNotAccepted) {
			return
		}
	}
}

// missed fails the test for crashes that did not happen.
func (k *Kit) missed() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, p := range k.points {
		if !k.t.Failed() {
			k.t.Errorf("workflowtest: no crash %s happened", p)
		}
	}
}
