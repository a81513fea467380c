package order

import (
	"context"
	"maps"
	"slices"
	"sort"

	"github.com/gopawl/pawl/workflow"
)

func call(r *workflow.Run, name string) error {
	_, err := workflow.Step(r, name, func(context.Context) (int, error) { return 0, nil })
	return err
}

var Flow = workflow.Define("f", func(r *workflow.Run, in map[string]int) ([]string, error) {
	for name := range in { // want `the calls in this range come in the order of a map, which is another one when the run continues; range over sorted keys`
		if _, err := workflow.Step(r, name, func(context.Context) (int, error) { return 0, nil }); err != nil {
			return nil, err
		}
	}
	for name := range maps.Keys(in) { // want `the calls in this range`
		if err := call(r, name); err != nil {
			return nil, err
		}
	}
	mail := func(name string) error { return call(r, name) }
	for name := range in { // want `the calls in this range`
		if err := mail(name); err != nil {
			return nil, err
		}
	}
	var branches []*workflow.Branch[int]
	for name := range in { // want `the calls in this range`
		branches = append(branches, workflow.Go(r, name, func(*workflow.Run) (int, error) { return 0, nil }))
	}
	var unsorted []string
	for name := range in { // want `unsorted gets the order of a map, which is another one when the run continues; sort it`
		unsorted = append(unsorted, name)
	}
	keys := slices.Collect(maps.Keys(in)) // want `keys gets the order of a map`
	_, _ = keys, branches
	return unsorted, nil
})

var fine = workflow.Define("f", func(r *workflow.Run, in map[string]int) (sum int, err error) {
	for _, n := range in {
		sum += n
	}
	other := make(map[string][]string)
	for name := range in {
		other[name] = append(other[name], name)
		var few []string
		few = append(few, name)
		_ = few
	}
	var byHand, byFunc []string
	for name := range in {
		byHand = append(byHand, name)
		byFunc = append(byFunc, name)
	}
	sort.Strings(byHand)
	slices.SortFunc(byFunc, func(a, b string) int { return len(a) - len(b) })
	keys := slices.Collect(maps.Keys(in))
	slices.Sort(keys)
	for _, name := range slices.Sorted(maps.Keys(in)) {
		if err := call(r, name); err != nil {
			return 0, err
		}
	}
	_, err = workflow.Step(r, "s", func(context.Context) (all []string, _ error) {
		for name := range in {
			all = append(all, name)
		}
		return all, nil
	})
	return sum, err
})
