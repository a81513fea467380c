package clock

import (
	"context"
	"time"

	"github.com/gopawl/pawl/workflow"
)

var Flow = workflow.Define("f", func(r *workflow.Run, n int) (time.Time, error) {
	began := time.Now()       // want `time.Now in a workflow gives another time when the run continues; use workflow.Now, or read the clock in a step`
	_ = time.Since(began)     // want `time.Since in a workflow`
	_ = time.Until(began)     // want `time.Until in a workflow`
	time.Sleep(time.Second)   // want `time.Sleep in a workflow holds a slot of the worker, and waits anew when the run continues; use workflow.Sleep`
	_ = time.NewTimer(1)      // want `time.NewTimer in a workflow`
	<-time.After(time.Second) // want `time.After in a workflow` `a receive from a channel`
	read := time.Now          // want `time.Now in a workflow`
	now, err := workflow.Step(r, "clock", func(context.Context) (time.Time, error) { return time.Now(), nil })
	if err != nil {
		return began, err
	}
	// What only computes with times is allowed, and so is a clock that says how long to sleep.
	if now.Add(time.Hour).After(read()) {
		return now, workflow.SleepUntil(r, "morning", time.Now().Add(time.Duration(n)))
	}
	return now, workflow.Sleep(r, "until", time.Until(now))
})

var method = workflow.Define("f", flows{}.process)

type flows struct{}

func (flows) process(r *workflow.Run, _ int) (time.Time, error) {
	return time.Now(), nil // want `time.Now in a workflow`
}

// deferred functions and those that are called at once are workflow code too.
func deferred(r *workflow.Run) error {
	defer func() { _ = time.Now() }()  // want `time.Now in a workflow`
	func() { _ = time.Now() }()        // want `time.Now in a workflow`
	late := func() { _ = time.Now() }  // want `time.Now in a workflow`
	never := func() { _ = time.Now() } // nobody calls it here
	late()
	keep(never)
	return workflow.Sleep(r, "s", 1)
}

func keep(func()) {}

// onlyInSteps takes a Run for its key. No workflow calls it but in a step.
func onlyInSteps(r *workflow.Run) string { return r.Key() + time.Now().String() }

func step(r *workflow.Run) (string, error) {
	return workflow.Step(r, "s", func(context.Context) (string, error) { return onlyInSteps(r), nil })
}

// stepOf is a step of the app's own, whose function is not known to be one.
func stepOf(r *workflow.Run, fn func(context.Context) (time.Time, error)) (time.Time, error) {
	return workflow.Step(r, "s", fn)
}

func wrapped(r *workflow.Run) (time.Time, error) {
	return stepOf(r, func(context.Context) (time.Time, error) { return time.Now(), nil })
}

func named(r *workflow.Run) (time.Time, error) {
	fn := func(context.Context) (time.Time, error) { return time.Now(), nil }
	return workflow.Step(r, "s", fn)
}

func undone(r *workflow.Run) {
	r.Undo("u", func(context.Context) error { time.Sleep(1); return nil })
}

func transaction(r *workflow.Run) (time.Time, error) {
	return workflow.StepTx(r, "s", func(int) (time.Time, error) { return time.Now(), nil })
}

func noWorkflow() time.Time { return time.Now() }
