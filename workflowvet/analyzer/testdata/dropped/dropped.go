package dropped

import (
	"context"

	"github.com/gopawl/pawl/workflow"
)

var begun workflow.Signal[string]

var Flow = workflow.Define("f", func(r *workflow.Run, _ int) (int, error) {
	workflow.Sleep(r, "s", 1)       // want `the error of this call is dropped, so the function goes on when its run does not; return the error`
	_ = workflow.Sleep(r, "s", 1)   // want `the error of this call is dropped`
	_, _ = begun.Wait(r, 1)         // want `the error of this call is dropped`
	n, _ := call(r)                 // want `the error of this call is dropped`
	defer workflow.Sleep(r, "s", 1) // want `the error of this call is dropped`
	mail := func() error { return workflow.Sleep(r, "m", 1) }
	mail() // want `the error of this call is dropped`
	_ = r.ID()
	_, err := begun.Wait(r, 1)
	workflow.Go(r, "b", func(r *workflow.Run) (int, error) { return call(r) }) // its result is not needed
	_, err = workflow.Step(r, "s", func(context.Context) (int, error) {
		_ = other()
		return 0, nil
	})
	_ = other()
	return n, err
})

func call(r *workflow.Run) (int, error) {
	return workflow.Step(r, "s", func(context.Context) (int, error) { return 0, nil })
}

func other() error { return nil }
