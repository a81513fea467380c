package guide

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/workflow"
	"github.com/gopawl/pawl/workflow/workflowtest"
)

var Lines = workflow.DefineStream[string]("lines")

// translate stands for a service that answers line by line.
func translate(_ context.Context, text string, say func(line string) error) error {
	for line := range strings.Lines(text) {
		if err := say(strings.ToUpper(strings.TrimSpace(line))); err != nil {
			return err
		}
	}
	return nil
}

// Translation translates a text.
var Translation = workflow.Define("translation", func(r *workflow.Run, text string) (bool, error) {
	if err := Lines.Append(r, "begun"); err != nil {
		return false, err
	}
	_, err := workflow.Step(r, "translate", func(ctx context.Context) (bool, error) {
		return true, translate(ctx, text, func(line string) error { return Lines.Append(r, line) })
	})
	if err != nil {
		return false, err
	}
	return true, Lines.Append(r, "ended")
})

// follow shows the items of a run from a number on, and returns the number of the next item.
func follow(ctx context.Context, e *workflow.Engine, run pawl.ID, from uint64, show func(line string)) (uint64, error) {
	for item, err := range Lines.Watch(ctx, e, run, from) {
		if err != nil {
			return from, err
		}
		show(item.Value)
		from = item.N + 1 // where to continue after a broken connection
	}
	return from, nil
}

// Rule: the guide's stream has what the function appends once, at each crash, and what its step appends at each attempt.
func TestGuideStream(t *testing.T) {
	workflowtest.EachCrash(t, func(t *testing.T, at *workflowtest.Point) {
		k := workflowtest.New(t, &workflowtest.Options{At: at}, Translation)
		run := workflowtest.Start(k, Translation, "1", "a\nb\n")
		_, err := run.Result()
		require.NoError(t, err)
		var kept []workflow.Item[string] // without those of earlier attempts
		for item, err := range Lines.Read(t.Context(), k.Engine(), run.Run(), 0) {
			require.NoError(t, err)
			kept = slices.DeleteFunc(kept, func(old workflow.Item[string]) bool {
				return item.Step != "" && old.Step == item.Step && old.Attempt != item.Attempt
			})
			kept = append(kept, item)
		}
		var all, last []string
		for _, item := range kept {
			all = append(all, item.Value)
		}
		require.Equal(t, []string{"begun", "A", "B", "ended"}, all)
		n := kept[len(kept)-1].N
		next, err := follow(t.Context(), k.Engine(), run.Run(), n, func(line string) { last = append(last, line) })
		require.NoError(t, err)
		require.Equal(t, n+1, next)
		require.Equal(t, []string{"ended"}, last)
	})
}
