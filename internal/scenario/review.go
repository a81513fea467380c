package scenario

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/workflow"
)

// one is a step that returns 1.
func one(r *workflow.Run, name string) error {
	_, err := workflow.Step(r, name, func(context.Context) (int, error) { return 1, nil })
	return err
}

// Rule: a call that is refused before it begins leaves no gap in the journal: a run that
// handles the error continues after its next wait.
func (suite) ReviewRefusedSleepLeavesNoGap(t *testing.T, k *kit) {
	f := workflow.Define("f", func(r *workflow.Run, _ int) (int, error) {
		if err := workflow.Sleep(r, "for ever", workflow.Forever); err == nil {
			return 0, errors.New("it ended")
		}
		if err := one(r, "a"); err != nil {
			return 0, err
		}
		return 1, workflow.Sleep(r, "night", time.Hour)
	})
	k.open(f)
	returns(k, start(k, f, "1", 0), 1)
}

// Rule: a wait that ends later than the largest storable time is long, and does not end at
// once.
func (suite) ReviewWaitsOfCenturies(t *testing.T) {
	for name, wait := range map[string]func(r *workflow.Run) error{
		"sleep": func(r *workflow.Run) error { return workflow.Sleep(r, "long", 290*365*24*time.Hour) },
		"until": func(r *workflow.Run) error {
			return workflow.SleepUntil(r, "long", time.Date(2290, 1, 1, 0, 0, 0, 0, time.UTC))
		},
		"9999": func(r *workflow.Run) error {
			return workflow.SleepUntil(r, "long", time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC))
		},
		"signal": func(r *workflow.Run) error { _, err := word.Wait(r, 290*365*24*time.Hour); return err },
		"retry": func(r *workflow.Run) error {
			_, err := workflow.Step(r, "s", func(context.Context) (int, error) {
				return 0, pawl.RetryAfter(math.MaxInt64, errors.New("not now"))
			})
			return err
		},
	} {
		sub(t, name, func(t *testing.T, k *kit) {
			f := workflow.Define("f", func(r *workflow.Run, _ int) (int, error) { return 0, wait(r) })
			k.open(f)
			h := start(k, f, "1", 0)
			k.pass(24 * time.Hour)
			require.Contains(t, []workflow.Status{workflow.Sleeping, workflow.Waiting}, k.info(h.Run()).Status)
		})
	}
}

// Rule: a run with a retention longer than the largest storable time is kept, and not removed
// at once.
func (suite) ReviewRetainForCenturies(t *testing.T, k *kit) {
	f := workflow.Define("f", func(*workflow.Run, int) (int, error) { return 7, nil }, workflow.Retain(workflow.Forever))
	k.open(f)
	succeeds(k, start(k, f, "1", 0))
	_, err := outcome(k, start(k, f, "2", 0)) // which removes what is due
	require.NoError(t, err)
	returns(k, find(k, f, "1"), 7)
}

// Rule: a retention of 0 or less is refused: a run that vanishes at its end has no result for
// anybody. Forever is stored as no retention, and inspection says so.
func (suite) Retain(t *testing.T) {
	done := func(*workflow.Run, int) (int, error) { return 7, nil }
	bubble(t, func(t *testing.T, k *kit) {
		k.open()
		for _, d := range []time.Duration{0, -1, -workflow.Forever} {
			var invalid *pawl.InvalidError
			_, err := workflow.Define("f", done, workflow.Retain(d)).Start(t.Context(), k.e, "1", 0)
			require.ErrorAs(t, err, &invalid, "%v", d)
			require.Equal(t, "retention", invalid.Field)
		}
	})
	bubble(t, func(t *testing.T, k *kit) {
		f := workflow.Define("f", done, workflow.Retain(workflow.Forever))
		k.open(f)
		h := start(k, f, "1", 0)
		succeeds(k, h)
		info, err := k.e.Info(t.Context(), h.Run())
		require.NoError(t, err)
		require.Zero(t, info.Retain)
	})
}

// Rule: a race of so many branches that its result is stored apart continues at its next wake.
func (suite) ReviewRaceOfMany(t *testing.T, k *kit) {
	f := workflow.Define("f", func(r *workflow.Run, _ int) (int, error) {
		var all []*workflow.Branch[int]
		for i := range 400 {
			all = append(all, workflow.Go(r, fmt.Sprintf("a branch of a long name %d", i), func(r *workflow.Run) (int, error) {
				if i == 0 {
					return i, nil
				}
				return i, workflow.Sleep(r, "s", time.Hour)
			}))
		}
		if _, _, err := workflow.Race(r, "first", all...); err != nil {
			return 0, err
		}
		return 5, workflow.Sleep(r, "night", 2*time.Hour)
	})
	k.open(f)
	returns(k, start(k, f, "1", 0), 5)
}

// Rule: a dry run compares every branch up to the end of its journal, also after a race whose
// losers were interrupted.
func (suite) ReviewVerifyLooksBehindFrontiers(t *testing.T, k *kit) {
	flow := func(inBranch, behind string) *workflow.Flow[int, int] {
		return workflow.Define("f", func(r *workflow.Run, _ int) (int, error) {
			fast := workflow.Go(r, "fast", func(*workflow.Run) (int, error) { return 0, nil })
			slow := workflow.Go(r, "slow", func(r *workflow.Run) (int, error) { return 0, workflow.Sleep(r, "s", time.Hour) })
			if _, _, err := workflow.Race(r, "first", fast, slow); err != nil {
				return 0, err
			}
			far := workflow.Go(r, "far", func(r *workflow.Run) (int, error) { return 0, one(r, inBranch) })
			if _, err := far.Wait(r); err != nil {
				return 0, err
			}
			near := workflow.Go(r, "near", func(r *workflow.Run) (int, error) { return 0, workflow.Sleep(r, "long", time.Hour) })
			if err := one(r, "a"); err != nil {
				return 0, err
			}
			if err := workflow.Sleep(r, behind, time.Hour); err != nil {
				return 0, err
			}
			_, err := near.Wait(r)
			return 0, err
		})
	}
	k.open(flow("b", "night"))
	h := startAndSettle(k, flow("b", "night"), "1", 0)
	require.Equal(t, workflow.Sleeping, k.info(h.Run()).Status)
	require.NoError(t, k.e.Verify(t.Context(), h.Run()))
	k.slots = -1
	for _, changed := range []*workflow.Flow[int, int]{flow("c", "night"), flow("b", "day")} {
		k.restart("1", changed)
		for range 20 {
			var mismatch *workflow.DeterminismError
			require.ErrorAs(t, k.e.Verify(t.Context(), h.Run()), &mismatch)
		}
	}
}

// Rule: a Run refuses a call from anything but its function, while the function waits or after
// it has returned.
func (suite) ReviewRunOfAnother(t *testing.T) {
	for name, use := range map[string]func(outer, own *workflow.Run) error{
		"step":    func(outer, _ *workflow.Run) error { return one(outer, "s") },
		"sleep":   func(outer, _ *workflow.Run) error { return workflow.Sleep(outer, "s", time.Hour) },
		"signal":  func(outer, _ *workflow.Run) error { _, err := word.Wait(outer, time.Hour); return err },
		"version": func(outer, _ *workflow.Run) error { _, err := workflow.Version(outer, "v", 1, 2); return err },
		"branch": func(outer, own *workflow.Run) error {
			_, err := workflow.Go(outer, "x", func(*workflow.Run) (int, error) { return 0, nil }).Wait(own)
			return err
		},
	} {
		sub(t, name, func(t *testing.T, k *kit) {
			f := workflow.Define("f", func(outer *workflow.Run, _ int) (int, error) {
				b := workflow.Go(outer, "b", func(own *workflow.Run) (int, error) {
					k.at("in the branch")
					return 0, use(outer, own)
				})
				_, err := b.Wait(outer)
				return 0, err
			})
			g := k.gate("in the branch")
			k.open(f)
			h := start(k, f, "1", 0)
			<-g.reached
			k.settle() // the outer call waits
			close(g.open)
			_, err := outcome(k, h)
			require.ErrorIs(t, err, workflow.ErrNested)
		})
	}
}

// Rule: an undo step makes no calls on the run: the journal of its function is complete.
func (suite) ReviewCallInUndo(t *testing.T, k *kit) {
	tried, inside := 0, error(nil)
	f := workflow.Define("f", func(r *workflow.Run, _ int) (int, error) {
		r.Undo("u", func(context.Context) error {
			if tried++; tried == 1 {
				inside = one(r, "inside")
				return errors.New("once more")
			}
			return nil
		}, workflow.Backoff(pawl.Fixed(time.Hour)))
		return 0, errors.New("broken")
	})
	k.open(f)
	h := start(k, f, "1", 0)
	_, err := outcome(k, h)
	require.ErrorContains(t, err, "broken")
	require.ErrorIs(t, inside, workflow.ErrNested)
	require.Equal(t, workflow.Failed, k.info(h.Run()).Status)
}

// Rule: undo steps run in the reverse of the order in which they were named, including those of
// branches that had made no other calls before, or whose end was waited for.
func (suite) ReviewUndoOrderOverBranches(t *testing.T, k *kit) {
	undo := func(r *workflow.Run, name string) {
		r.Undo(name, func(context.Context) error { k.effect(r); return nil })
	}
	f := workflow.Define("f", func(r *workflow.Run, _ int) (int, error) {
		if err := one(r, "a"); err != nil {
			return 0, err
		}
		undo(r, "1")
		b := workflow.Go(r, "b", func(r *workflow.Run) (int, error) {
			undo(r, "2")
			err := one(r, "b")
			undo(r, "3")
			return 0, err
		})
		if _, err := b.Wait(r); err != nil {
			return 0, err
		}
		undo(r, "4")
		c := workflow.Go(r, "c", func(r *workflow.Run) (int, error) { undo(r, "5"); return 0, one(r, "c") })
		if _, err := workflow.All(r, c); err != nil {
			return 0, err
		}
		undo(r, "6")
		return 0, errors.New("broken")
	})
	k.open(f)
	h := start(k, f, "1", 0)
	_, err := outcome(k, h)
	require.ErrorContains(t, err, "broken")
	var order []string
	for _, e := range k.entries(h.Run()) {
		if e.Kind == workflow.KindUndo {
			order = append(order, e.Name)
		}
	}
	require.Equal(t, []string{"6", "5", "4", "3", "2", "1"}, order)
}

// Rule: ending a run at once does not need its function, which may be stuck.
func (suite) ReviewTerminateDoesNotCallTheFunction(t *testing.T, k *kit) {
	f := workflow.Define("f", func(r *workflow.Run, _ int) (int, error) {
		k.called("f")
		return 0, workflow.Sleep(r, "night", time.Hour)
	})
	k.open(f)
	h := startAndSettle(k, f, "1", 0)
	require.Equal(t, 1, k.called("f")-1)
	require.NoError(t, k.e.Terminate(t.Context(), h.Run(), "enough"))
	_, err := outcome(k, h)
	require.ErrorIs(t, err, workflow.ErrTerminated)
	require.Equal(t, 2, k.calls("f"), "with the one of the test")
}

// Rule: the same input finds its run, whatever the order of the entries of a map in it, and has
// the same fingerprint.
func (suite) ReviewMapsAreTheSameInput(t *testing.T, k *kit) {
	type in struct {
		M map[string]int
		N map[int]map[string]string
	}
	input := func() in {
		m := in{map[string]int{}, map[int]map[string]string{}}
		for i := range 30 {
			m.M[fmt.Sprint(i)] = i
			m.N[i] = map[string]string{"a": "b", "c": "d", fmt.Sprint(i): "e"}
		}
		return m
	}
	f := workflow.Define("f", func(r *workflow.Run, _ in) (int, error) {
		_, err := workflow.Step(r, "s", func(context.Context) (int, error) { return 1, nil }, workflow.Fingerprint(input()))
		if err != nil {
			return 0, err
		}
		return 1, workflow.Sleep(r, "night", time.Hour)
	})
	k.open(f)
	h := start(k, f, "1", input())
	for range 10 {
		require.Equal(t, h.Run(), start(k, f, "1", input()).Run())
	}
	other := input()
	other.N[3]["a"] = "x"
	_, err := f.Start(t.Context(), k.e, "1", other)
	require.ErrorIs(t, err, workflow.ErrConflict)
	succeeds(k, h)
}

// Rule: branches that wait only for each other are a mistake in the code. The run reports it,
// and does not wait for nothing.
func (suite) ReviewBranchesInACircle(t *testing.T, k *kit) {
	f := workflow.Define("f", func(r *workflow.Run, _ int) (int, error) {
		var a, b *workflow.Branch[int]
		begun := make(chan struct{})
		a = workflow.Go(r, "a", func(r *workflow.Run) (int, error) { <-begun; return b.Wait(r) })
		b = workflow.Go(r, "b", func(r *workflow.Run) (int, error) { <-begun; return a.Wait(r) })
		close(begun)
		return b.Wait(r)
	})
	k.open(f)
	h := startAndSettle(k, f, "1", 0)
	require.Equal(t, workflow.Blocked, k.info(h.Run()).Status)
	require.Contains(t, k.info(h.Run()).Error, "wait for one another")
}
