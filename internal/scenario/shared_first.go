package scenario

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/workflow"
)

// Rule: if a crash has lost who took a value, the wait that began first takes it.
func (suite) SharedFirstAfterACrash(t *testing.T, k *kit) {
	var takes atomic.Bool // not before the crash, so the journal is as if the crash had lost it
	f := workflow.Define("first", func(r *workflow.Run, _ int) ([]string, error) {
		slot, order := workflow.Share(r, "slot", 0), workflow.Share(r, "order", []string(nil))
		wait := func(name string, before func(r *workflow.Run) error) *workflow.Branch[int] {
			return workflow.Go(r, name, func(r *workflow.Run) (int, error) {
				if err := before(r); err != nil {
					return 0, err
				}
				err := slot.Wait(r, "free", func(n *int) bool {
					free := takes.Load() && *n == 0
					*n++
					return free
				})
				if err == nil {
					err = order.Change(r, func(names *[]string) { *names = append(*names, name) })
				}
				if err == nil {
					err = slot.Change(r, func(n *int) { *n = 0 })
				}
				return 0, err
			})
		}
		early := wait("early", func(*workflow.Run) error { return nil })
		late := wait("late", func(r *workflow.Run) error { // is the last that repeats its calls, too
			for range 20 {
				if err := workflow.Sleep(r, "let the other one wait", time.Minute); err != nil {
					return err
				}
			}
			return nil
		})
		if _, err := word.Wait(r, workflow.Forever); err != nil {
			return nil, err
		}
		if _, err := workflow.All(r, early, late); err != nil {
			return nil, err
		}
		var names []string
		err := order.Change(r, func(all *[]string) { names = *all })
		return names, err
	})
	k.open(f)
	h := startAndSettle(k, f, "1", 0)
	k.pass(time.Hour)
	takes.Store(true)
	k.crash()
	say(k, h.Run(), "go", "")
	got, err := outcome(k, find(k, f, "1"))
	require.NoError(t, err)
	require.Equal(t, []string{"early", "late"}, got)
	require.NoError(t, k.e.Replay(t.Context(), h.Run()))
}
