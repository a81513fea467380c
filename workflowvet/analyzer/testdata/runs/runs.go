package runs

import (
	"context"

	"github.com/gopawl/pawl/workflow"
)

func call(r *workflow.Run) (int, error) {
	return workflow.Step(r, "s", func(context.Context) (int, error) { return 0, nil })
}

func key(r *workflow.Run) string { return r.Key() }

var Flow = workflow.Define("f", func(r *workflow.Run, _ int) (int, error) {
	mail := func(name string) error { return workflow.Sleep(r, name, 1) }
	workflow.Go(r, "b", func(*workflow.Run) (int, error) {
		return call(r) // want `the call is made by the Run of another function, so it is refused, or is made in another order; take the Run that the branch's function gets`
	})
	workflow.Go(r, "b", func(own *workflow.Run) (int, error) {
		own.Undo(r.ID(), func(context.Context) error { return nil })
		if err := mail("m"); err != nil { // want `mail makes its calls by the Run of another function`
			return 0, err
		}
		r.Undo("u", func(context.Context) error { return nil }) // want `the call is made by the Run of another function`
		return call(own)
	})
	return workflow.Step(r, "outer", func(context.Context) (int, error) {
		_, _ = key(r), r.Key()                            // allowed
		if err := workflow.Sleep(r, "s", 1); err != nil { // want `a call of the run inside of a step returns ErrNested; make it before or after the step`
			return 0, err
		}
		if err := mail("m"); err != nil { // want `a call of the run inside of a step`
			return 0, err
		}
		return call(r) // want `a call of the run inside of a step`
	})
})

var undo = workflow.Define("f", func(r *workflow.Run, _ int) (int, error) {
	r.Undo("u", func(context.Context) error { return workflow.Sleep(r, "s", 1) }) // want `a call of the run inside of a step`
	return workflow.StepTx(r, "t", func(tx int) (int, error) { return workflow.In(r, tx), nil })
})

var each = workflow.Define("f", func(r *workflow.Run, in []string) ([]int, error) {
	itself := func(s string) string { return s }
	return workflow.Each(r, "e", in, itself, 1, func(r *workflow.Run, _ string) (int, error) { return call(r) })
})

var lines *workflow.Stream[int]

var appends = workflow.Define("f", func(r *workflow.Run, in map[string]int) (int, error) {
	lines.Append(r, 1)     // want `the error of this call is dropped`
	for _, n := range in { // want `the calls in this range come in the order of a map`
		if err := lines.Append(r, n); err != nil {
			return 0, err
		}
	}
	return workflow.Step(r, "s", func(context.Context) (int, error) { return 0, lines.Append(r, 2) })
})
