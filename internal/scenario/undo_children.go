package scenario

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/workflow"
)

// lineage is a flow that calls a flow that calls a flow. Each has an undo step, and those of the last takes an hour.
func lineage(k *kit) (first, second, third *workflow.Flow[int, int]) {
	undo := func(r *workflow.Run) { r.Undo("undo", func(context.Context) error { k.effect(r); return nil }) }
	third = workflow.Define("third", func(r *workflow.Run, _ int) (int, error) {
		r.UndoWith("third", func(r *workflow.Run) error {
			if err := workflow.Sleep(r, "slow", time.Hour); err != nil {
				return err
			}
			_, err := act(k, r, "undone", 1)
			return err
		})
		return 0, workflow.Sleep(r, "long", 1000*time.Hour)
	})
	second = workflow.Define("second", func(r *workflow.Run, _ int) (int, error) {
		undo(r)
		return workflow.Call(r, "third", third, 0)
	})
	first = workflow.Define("first", func(r *workflow.Run, fails int) (int, error) {
		undo(r)
		child := workflow.Go(r, "child", func(r *workflow.Run) (int, error) { return workflow.Call(r, "second", second, 0) })
		if fails > 0 {
			if err := workflow.Sleep(r, "fails", time.Minute); err != nil {
				return 0, err
			}
			return 0, errors.New("failed")
		}
		return child.Wait(r)
	})
	return first, second, third
}

// Rule: a run that failed or is cancelled undoes its steps after its children have undone theirs, and they after
// theirs, whatever crashes.
func (suite) UndoAfterChildren(t *testing.T) {
	for fails := range 2 {
		for _, crash := range []bool{false, true} {
			sub(t, fmt.Sprintf("fails=%d/crash=%v", fails, crash), func(t *testing.T, k *kit) {
				first, second, third := lineage(k)
				k.open(first, second, third)
				h := startAndSettle(k, first, "1", fails)
				if fails == 0 {
					require.NoError(t, h.Cancel(t.Context(), "asked for"))
				}
				k.pass(2 * time.Minute)
				require.Empty(t, k.effects())
				child := find(k, second, "1/child/second").Run()
				info := k.info(h.Run())
				require.Equal(t, workflow.Waiting, info.Status)
				require.Contains(t, info.Error, fmt.Sprintf(`it waits for the end of run %s (second "1/child/second"); if that cannot run`, child))
				if crash {
					k.crash()
					k.settle()
					require.NoError(t, k.e.Resume(t.Context(), h.Run())) // it looks, and waits on
					k.settle()
					require.Empty(t, k.effects())
				}
				k.pass(time.Hour)
				require.True(t, k.info(h.Run()).Status.Ended(), k.info(h.Run()))
				require.NotContains(t, k.info(h.Run()).Error, "waits")
				require.Equal(t, []string{"_undo/third/undone", "_undo/undo", "_undo/undo"}, k.effects())
				require.Contains(t, k.keys()[1], child.String())
			})
		}
	}
}

// Rule: a child that no worker runs keeps its parent from undoing until either is terminated. The parent says
// which child it waits for. The parent of a terminated child undoes its steps.
func (suite) UndoWithoutAWorkerForTheChild(t *testing.T) {
	for _, terminate := range []string{"child", "parent"} {
		for _, crash := range []bool{false, true} {
			sub(t, fmt.Sprintf("%s/crash=%v", terminate, crash), func(t *testing.T, k *kit) {
				first, second, third := lineage(k)
				k.open(first, third)
				h := startAndSettle(k, first, "1", 0)
				child := find(k, second, "1/child/second").Run()
				require.NoError(t, h.Cancel(t.Context(), "asked for"))
				k.pass(workflow.DefaultRetention + time.Hour) // nothing but a sleep lasts longer
				require.Empty(t, k.effects())
				require.Contains(t, k.info(h.Run()).Error, child.String())
				run, status, effects := child, workflow.Cancelled, []string{"_undo/undo"}
				if terminate == "parent" {
					run, status, effects = h.Run(), workflow.Terminated, nil
				}
				require.NoError(t, k.e.Terminate(t.Context(), run, "it never runs"))
				if crash {
					k.crash()
				}
				k.settle()
				require.Equal(t, status, k.info(h.Run()).Status)
				require.Equal(t, effects, slices.Compact(k.effects())) // a crash may repeat the step
				require.Equal(t, workflow.Running, k.info(child).Status)
				require.NotEmpty(t, k.info(child).Cancelling)
				k.restart(k.build, first, second, third) // a worker knows the flow at last
				k.settle()
				require.True(t, k.info(child).Status.Ended())
				require.Equal(t, []string{"_undo/undo"}, slices.Compact(k.effects())) // of the parent, or of the child
			})
		}
	}
}

// Rule: a run that fails waits for all of its children, however many, and cancels each once.
func (suite) UndoAfterManyChildren(t *testing.T) {
	bubble(t, func(t *testing.T, k *kit) {
		child := workflow.Define("child", func(r *workflow.Run, n int) (int, error) {
			r.UndoWith("slow", func(r *workflow.Run) error {
				return workflow.Sleep(r, "slow", time.Duration(250-n/50*50)*time.Second) // the first ones end last
			})
			return 0, workflow.Sleep(r, "long", 1000*time.Hour)
		})
		f := workflow.Define("f", func(r *workflow.Run, _ int) (int, error) {
			r.Undo("undo", func(context.Context) error { k.effect(r); return nil })
			_, err := workflow.Each(r, "all", numbers(250), func(n int) string { return fmt.Sprint(n) }, 250, func(r *workflow.Run, n int) (int, error) {
				return workflow.Call(r, "child", child, n)
			})
			return 0, err
		})
		k.open(f, child)
		h := startAndSettle(k, f, "1", 0)
		require.NoError(t, h.Cancel(t.Context(), "asked for"))
		k.settle()
		require.Contains(t, k.info(h.Run()).Error, "and for 249 more")
		k.pass(249 * time.Second)
		require.Empty(t, k.effects())
		k.pass(2 * time.Second)
		require.Equal(t, workflow.Cancelled, k.info(h.Run()).Status)
		require.Equal(t, []string{"_undo/undo"}, k.effects())
	})
}
