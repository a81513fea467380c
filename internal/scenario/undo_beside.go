package scenario

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/workflow"
)

// Rule: a pause takes effect before the next undo step, even while the run undoes, and until Resume or Cancel.
func (suite) PauseBetweenUndoSteps(t *testing.T) {
	for _, cancel := range []bool{false, true} {
		sub(t, fmt.Sprintf("cancel=%v", cancel), func(t *testing.T, k *kit) {
			var h *workflow.Handle[string]
			f := plan(func(r *workflow.Run) (string, error) {
				r.Undo("second", func(context.Context) error { k.effect(r); return nil })
				r.Undo("first", func(ctx context.Context) error {
					k.effect(r)
					return k.e.Pause(ctx, r.Run())
				})
				return "", errors.New("broken")
			})
			k.open(f)
			h = startAndSettle(k, f, "1", 0)
			k.pass(time.Hour)
			require.Equal(t, []string{"_undo/first"}, k.effects())
			require.Equal(t, workflow.Paused, k.info(h.Run()).Status)
			if cancel {
				require.NoError(t, h.Cancel(t.Context(), "enough"))
			} else {
				require.NoError(t, k.e.Resume(t.Context(), h.Run()))
			}
			k.settle()
			require.True(t, k.info(h.Run()).Status.Ended())
			require.Equal(t, []string{"_undo/first", "_undo/second"}, k.effects())
		})
	}
}

// Rule: in an undo step that makes calls, a new call of a branch waits until the function of the undo step has made
// the calls that it has in the journal. So a call that has moved from it to the branch blocks the run, and takes
// effect once.
func (suite) UndoWithCallMovedToABranch(t *testing.T, k *kit) {
	flow := func(moved bool) *workflow.Flow[int, string] {
		return failingTo(k, func(r *workflow.Run) error {
			one := workflow.Go(r, "one", func(r *workflow.Run) (int, error) { return 0, workflow.Sleep(r, "nap", time.Hour) })
			two := workflow.Go(r, "two", func(r *workflow.Run) (int, error) {
				if moved {
					if _, err := act(k, r, "b", 1); err != nil {
						return 0, err
					}
				}
				return one.Wait(r)
			})
			if moved {
				time.Sleep(time.Second) // the branch could make its call meanwhile
			}
			if _, err := act(k, r, map[bool]string{false: "b", true: "c"}[moved], 1); err != nil {
				return err
			}
			_, err := workflow.All(r, one, two)
			return err
		})
	}
	k.open(flow(false))
	h := startAndSettle(k, flow(false), "1", 0)
	require.Equal(t, []string{"_undo/back/b"}, k.effects())
	k.restart("2", flow(true))
	require.NoError(t, k.e.Resume(t.Context(), h.Run()))
	k.pass(2 * time.Second)
	require.Equal(t, workflow.Blocked, k.info(h.Run()).Status)
	require.Contains(t, k.info(h.Run()).Error, `the journal has step "_undo/back/b"`)
	require.Equal(t, []string{"_undo/back/b"}, k.effects())
}

// undoesTwice is a flow with a branch that failed unseen, and with two undo steps that make calls. Each has a branch
// that it does not wait for.
func undoesTwice(k *kit) *workflow.Flow[int, string] {
	undo := func(r *workflow.Run) error {
		workflow.Go(r, "side", func(r *workflow.Run) (int, error) {
			if err := workflow.Sleep(r, "long", time.Hour); err != nil {
				return 0, err
			}
			return act(k, r, "late", 1)
		})
		_, err := act(k, r, "try", 1)
		return err
	}
	return plan(func(r *workflow.Run) (string, error) {
		r.UndoWith("second", undo)
		r.UndoWith("first", undo)
		workflow.Go(r, "lost", func(r *workflow.Run) (int, error) { return 0, errors.New("unseen") })
		if _, err := word.Wait(r, workflow.Forever); err != nil {
			return "", err
		}
		return "", errors.New("broken")
	})
}

// Rule: an undo step that makes calls ends with its own branches, and answers for them alone: neither for those of
// the function nor for those of another undo step. It does so too if the run is cancelled, is paused, or crashes.
func (suite) UndoWithTwice(t *testing.T) {
	for _, what := range []string{"fails", "is cancelled", "is paused"} {
		for crash := range 3 {
			sub(t, fmt.Sprintf("%s/crash=%d", what, crash), func(t *testing.T, k *kit) {
				f := undoesTwice(k)
				k.open(f)
				h := startAndSettle(k, f, "1", 0)
				if what == "is cancelled" {
					require.NoError(t, h.Cancel(t.Context(), "enough"))
				} else {
					say(k, h.Run(), "go on", "")
				}
				k.pass(30 * time.Minute)
				require.Equal(t, []string{"_undo/first/try"}, k.effects())
				if what == "is paused" {
					require.NoError(t, k.e.Pause(t.Context(), h.Run()))
					k.pass(100 * time.Hour)
					require.Equal(t, workflow.Paused, k.info(h.Run()).Status)
					require.Len(t, k.effects(), 1)
					require.NoError(t, k.e.Resume(t.Context(), h.Run()))
					k.settle() // a crash within a step would repeat it
				}
				for n := range 3 {
					if n == crash {
						k.crash()
						k.settle()
					}
					k.pass(time.Hour)
				}
				info := k.info(h.Run())
				require.True(t, info.Status.Ended(), info)
				require.NotContains(t, info.Error, "not all was undone")
				require.Equal(t, []string{"_undo/first/try", "_undo/first/side/late", "_undo/second/try", "_undo/second/side/late"}, k.effects())
				k.carriable(h.Run())
			})
		}
	}
}
