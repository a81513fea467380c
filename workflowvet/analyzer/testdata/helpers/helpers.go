package helpers

import (
	"context"
	"time"

	"github.com/gopawl/pawl/helpers/other"
	"github.com/gopawl/pawl/workflow"
)

var Flow = workflow.Define("f", func(r *workflow.Run, _ int) (string, error) {
	_ = other.Stamp()   // want `Stamp uses time.Now, which gives another time when the run continues; use workflow.Now, or read the clock in a step`
	_ = other.Through() // want `Through uses time.Now`
	_ = here()          // want `here uses time.Now`
	other.Log("begun")  // it returns nothing that could matter
	_ = other.Pure()
	_ = other.Lazy()
	other.Call(r)                                                 // want `the error of this call is dropped`
	if err := workflow.Sleep(r, "s", other.Until()); err != nil { // a clock that says how long to sleep
		return "", err
	}
	if err := own(r); err != nil {
		return "", err
	}
	return workflow.Step(r, "s", func(context.Context) (string, error) {
		if err := other.Call(r); err != nil { // want `a call of the run inside of a step`
			return "", err
		}
		return other.Key(r) + here().String(), nil
	})
})

func here() time.Time { return time.Now() }

// own takes a Run, and is called by a workflow.
func own(r *workflow.Run) error {
	_ = here() // want `here uses time.Now`
	return nil
}

// calls has a Run in a field.
type calls struct{ r *workflow.Run }

func (c *calls) sleep() error {
	_ = time.Now() // want `time.Now in a workflow`
	return workflow.Sleep(c.r, "s", 1)
}
