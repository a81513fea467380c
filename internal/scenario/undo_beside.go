package scenario

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/workflow"
)

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
