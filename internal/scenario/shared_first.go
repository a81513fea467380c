package scenario

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/workflow"
)

// Rule: if a crash loses the record of who took a value, the wait that began first takes it.
func (suite) SharedFirstAfterACrash(t *testing.T, k *kit) {
	var takes atomic.Bool // false until the crash, so the journal looks as if the crash had lost the change
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
		late := wait("late", func(r *workflow.Run) error { // also repeats its calls last
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

// Rule: of the cases that are ready, a Select takes the first, even if the run continues because of that case and a
// branch changes the value of a later one immediately.
func (suite) SharedCaseBehindASignal(t *testing.T, k *kit) {
	const selects = 5
	signal := func(i int) *workflow.Signal[int] { return workflow.DefineSignal[int](fmt.Sprint("signal ", i)) }
	f := workflow.Define("selects", func(r *workflow.Run, _ int) ([]int, error) {
		light := workflow.Share(r, "light", false)
		var all []*workflow.Branch[int]
		for i := range selects {
			all = append(all, workflow.Go(r, fmt.Sprint("select ", i), func(r *workflow.Run) (int, error) {
				return workflow.Select(r, "either", signal(i).Case(nil), light.Case(func(on *bool) bool { return *on }))
			}))
		}
		if err := workflow.Sleep(r, "until the signals are there", time.Minute); err != nil {
			return nil, err
		}
		if err := light.Change(r, func(on *bool) { *on = true }); err != nil {
			return nil, err
		}
		return workflow.All(r, all...)
	})
	freed := make(chan bool)
	busy := workflow.Define("busy", func(*workflow.Run, int) (int, error) { <-freed; return 0, nil })
	k.slots = 1
	k.open(f, busy)
	h := startAndSettle(k, f, "1", 0)
	startAndSettle(k, busy, "2", 0) // so that the first run continues only once all is there
	for i := range selects {
		require.NoError(t, signal(i).Send(t.Context(), k.e, h.Run(), 1, ""))
	}
	k.pass(2 * time.Minute)
	close(freed)
	returns(k, h, make([]int, selects))
	require.NoError(t, k.e.Replay(t.Context(), h.Run()))
}
