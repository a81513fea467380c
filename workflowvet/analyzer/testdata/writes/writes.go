package writes

import (
	"context"
	"encoding/json"

	"github.com/gopawl/pawl/workflow"
)

type order struct{ cents int }

var total, world int

var Flow = workflow.Define("f", func(r *workflow.Run, in *order) (out int, err error) {
	var sum int
	var parsed order
	paid := make(map[string]bool)
	list := make([]int, 3)
	_, err = workflow.Step(r, "s", func(context.Context) (n int, err error) {
		own := 1
		own++
		n = own
		sum = 7            // want `the step writes sum, which is lost when the run continues, as the step does not run again; return the value from the step`
		sum++              // want `the step writes sum`
		parsed.cents = 2   // want `the step writes parsed`
		paid["ada"] = true // want `the step writes paid`
		delete(paid, "b")  // want `the step writes paid`
		list[1] = 1        // want `the step writes list`
		out = 1            // want `the step writes out`
		world++            // the world, which is what steps are for
		in.cents = 3
		return n, json.Unmarshal(nil, &parsed) // want `the step writes parsed`
	})
	_, err = workflow.Decide(r, "d", func() int {
		sum = 1 // want `the step writes sum`
		return sum
	})
	// What the call assigns anyway is not lost.
	_, err = workflow.Step(r, "s", func(context.Context) (int, error) {
		err = nil
		return 0, err
	})
	r.Undo("u", func(context.Context) error {
		sum = 3 // want `the step writes sum`
		return nil
	})
	total++ // want `the workflow writes total, which other runs and executions write too; keep the state in the function, or write it in a step`
	in.cents = 1
	sum = in.cents
	return sum, err
})

func counted() (*workflow.Flow[int, int], *int) {
	times := 0
	return workflow.Define("f", func(r *workflow.Run, _ int) (int, error) {
		times++ // want `the workflow writes times`
		_, err := workflow.Step(r, "s", func(context.Context) (int, error) {
			times++
			return 0, nil
		})
		return 0, err
	}), &times
}

var branches = workflow.Define("f", func(r *workflow.Run, in []string) ([]int, error) {
	sum, out, mails := 0, make([]int, len(in)), 0
	mail := func() error {
		mails++
		return workflow.Sleep(r, "m", 1)
	}
	if err := mail(); err != nil {
		return nil, err
	}
	key := func(s string) string { return s }
	_, err := workflow.Each(r, "e", in, key, 1, func(r *workflow.Run, s string) (got int, err error) {
		sum += len(s) // want `the branch writes sum, which the function and other branches use at the same time; return the value from the branch, or share it by workflow.Share`
		out[0] = 1
		got = 1
		return got, nil
	})
	sum++
	return out, err
})

var shared = workflow.Define("f", func(r *workflow.Run, in []string) (int, error) {
	n, seen := workflow.Share(r, "n", 0), 0
	workflow.Go(r, "b", func(r *workflow.Run) (int, error) {
		own := 0
		err := n.Change(r, func(n *int) {
			own = *n
			*n++
			seen = *n // want `the branch writes seen`
		})
		return own, err
	})
	err := n.Wait(r, "some", func(n *int) bool {
		seen = *n
		return *n > 0
	})
	return seen, err
})
