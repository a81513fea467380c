package scenario

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/workflow"
)

// leg is a branch with steps; "wait" waits for the signal.
func leg(k *kit, r *workflow.Run, name string, steps ...string) *workflow.Branch[string] {
	return workflow.Go(r, name, func(r *workflow.Run) (string, error) { return calls(k, steps...)(r) })
}

// legs begins branches of one step each, waits for them if requested, and then waits for the
// signal.
func legs(k *kit, join bool, names ...string) code {
	return func(r *workflow.Run) (string, error) {
		var all []*workflow.Branch[string]
		for _, name := range names {
			all = append(all, leg(k, r, name, "charge"))
		}
		if join {
			if _, err := workflow.All(r, all...); err != nil {
				return "", err
			}
		}
		return calls(k, "wait")(r)
	}
}

// Rule: a branch that is renamed, removed, inserted, moved, or replaced by a call of another
// kind blocks the run like any call, whether somebody waits for it or not. After the end of the
// journal, the run continues.
func (suite) Scenario13ChangedBranches(t *testing.T) {
	for name, c := range map[string]struct {
		old, new []string
		why      []string // empty if the run continues
	}{
		"renamed":  {[]string{"pay"}, []string{"payment"}, []string{`the journal has branch "pay"`, `build 2 has branch "payment"`}},
		"removed":  {[]string{"a", "b"}, []string{"a"}, []string{`the journal has branch "b"`, `build 2 has wait "proceed"`}},
		"all gone": {[]string{"a"}, nil, []string{`the journal has branch "a"`, `build 2 has wait "proceed"`}},
		"inserted": {[]string{"b"}, []string{"a", "b"}, []string{`the journal has branch "b"`, `build 2 has branch "a"`}},
		"appended": {[]string{"a"}, []string{"a", "b"}, []string{`the journal has wait "proceed"`, `build 2 has branch "b"`}},
		"moved":    {[]string{"a", "b"}, []string{"b", "a"}, []string{`the journal has branch "a"`, `build 2 has branch "b"`}},
		"as it is": {[]string{"a", "b"}, []string{"a", "b"}, nil},
	} {
		for _, join := range []bool{true, false} {
			sub(t, fmt.Sprintf("%s, waited for: %v", name, join), func(t *testing.T, k *kit) {
				f := plan(legs(k, join, c.old...))
				k.open(f)
				h := startAndSettle(k, f, "1", 0)
				journal, effects := k.journal(h.Run()), k.effects()
				h = rebuild(k, "2", legs(k, join, c.new...))
				if c.why != nil {
					blocked(k, h.Run(), "2", journal, c.why...)
				} else {
					succeeds(k, h)
				}
				require.Equal(t, effects, k.effects(), "nothing runs again")
			})
		}
	}
}

// Rule: nothing new runs before all branches have returned from their calls in the journal. So a
// step that is moved from one branch to another blocks the run before it takes effect again, and
// the run continues under the build from before.
func (suite) Scenario16StepMovedToAnotherBranch(t *testing.T, k *kit) {
	code := func(where string) code {
		return func(r *workflow.Run) (string, error) {
			var all []*workflow.Branch[string]
			for _, name := range []string{"a", "b"} {
				all = append(all, workflow.Go(r, name, func(r *workflow.Run) (string, error) {
					if name == where {
						return calls(k, "charge")(r)
					}
					k.at(name + " returns")
					return "", nil
				}))
			}
			if _, err := workflow.All(r, all...); err != nil {
				return "", err
			}
			return calls(k, "wait")(r)
		}
	}
	k.open(plan(code("b")))
	h := startAndSettle(k, plan(code("b")), "1", 0)
	journal := k.journal(h.Run())
	returns := k.gate("b returns")
	h = rebuild(k, "2", code("a"))
	require.Equal(t, []string{"b/charge"}, k.effects())
	close(returns.open)
	k.settle()
	blocked(k, h.Run(), "2", journal, `the journal has step "b/charge"`, "build 2 has nothing more")
	succeeds(k, rebuild(k, "3", code("b")))
	require.Equal(t, []string{"b/charge"}, k.effects())
}

// Rule: if damage took the entry of a branch's start, a function that returns without the branch is
// blocked all the same: its journal still has the calls of the branch.
func (suite) Scenario15BranchWithoutItsStart(t *testing.T, k *kit) {
	f := plan(legs(k, true, "a"))
	k.open(f)
	startAndSettle(k, f, "1", 0)
	require.NoError(t, k.q.Mutate(t.Context(), ride{func(tx driver.Writer) error {
		return tx.Delete(tableSteps, firstKey(tx, tableSteps))
	}}, 0))
	info := k.info(rebuild(k, "2", calls(k, "wait")).Run())
	require.Equal(t, workflow.Blocked, info.Status)
	require.Contains(t, info.Error, `the journal has step "a/charge"`)
	require.Contains(t, info.Error, "the function returned without the branch")
}

// Rule: the start of a branch costs no commit: it is part of the next write, which may be the
// one that suspends or ends the run.
func (suite) Scenario13BranchCostsNoCommit(t *testing.T, k *kit) {
	f := plan(func(r *workflow.Run) (string, error) {
		for n := range 20 {
			if _, err := workflow.Go(r, fmt.Sprint("b", n), func(*workflow.Run) (int, error) { return 0, nil }).Wait(r); err != nil {
				return "", err
			}
		}
		k.at("begun")
		return "done", nil
	})
	begun := k.gate("begun")
	k.open(f)
	h := start(k, f, "1", 0)
	<-begun.reached
	require.Empty(t, k.journal(h.Run()))
	close(begun.open)
	succeeds(k, h)
	require.Len(t, k.journal(h.Run()), 20)
}

// Rule: after a crash between the start of a branch and the next write neither is stored. The
// branch starts again, and nothing blocks the run.
func (suite) Scenario13CrashBeforeTheBeginningIsWritten(t *testing.T, k *kit) {
	f := plan(func(r *workflow.Run) (string, error) {
		b := workflow.Go(r, "b", func(r *workflow.Run) (string, error) {
			k.at("in b")
			return calls(k, "x")(r)
		})
		if _, err := b.Wait(r); err != nil {
			return "", err
		}
		return calls(k, "wait")(r)
	})
	in := k.gate("in b")
	k.open(f)
	h := start(k, f, "1", 0)
	<-in.reached
	require.Empty(t, k.journal(h.Run()))
	k.crash()
	k.settle()
	require.Equal(t, []string{"branch b begun", "step b/x done: x", "wait proceed pending"}, k.journal(h.Run()))
	require.Equal(t, []string{"b/x"}, k.effects())
}

// pay pays each item in a branch of Each, and then waits for the signal.
func pay(k *kit, name string, limit int, items ...string) code {
	return func(r *workflow.Run) (string, error) {
		itself := func(item string) string { return item }
		all, err := workflow.Each(r, name, items, itself, limit, func(r *workflow.Run, item string) (string, error) {
			return act(k, r, "pay", "paid "+item)
		})
		if err != nil {
			return "", err
		}
		if _, err := calls(k, "wait")(r); err != nil {
			return "", err
		}
		return fmt.Sprint(all), nil
	}
}

// Rule: items of Each are identified by their keys: a new item runs once, wherever it is, the
// order may change, and the results belong to the items. An item that has begun must stay, and
// so must the call itself.
func (suite) Scenario14EachItems(t *testing.T) {
	for name, c := range map[string]struct {
		each  string
		items []string
		out   string
		again []string // what runs after the change
		why   string
	}{
		"as they are":  {"item", []string{"a", "b", "c"}, "[paid a paid b paid c]", nil, ""},
		"in front":     {"item", []string{"new", "a", "b", "c"}, "[paid new paid a paid b paid c]", []string{"item/new/pay"}, ""},
		"in the midst": {"item", []string{"a", "n/w", "b", "c"}, "[paid a paid n/w paid b paid c]", []string{"item/n%2Fw/pay"}, ""},
		"moved":        {"item", []string{"c", "a", "b"}, "[paid c paid a paid b]", nil, ""},
		"removed":      {"item", []string{"a", "c"}, "", nil, `the journal has branch "item/b" (entry 4, written by build 1), build 2 has each "item" without that item`},
		"replaced":     {"item", []string{"a", "B", "c"}, "", nil, `the journal has branch "item/b"`},
		"renamed":      {"thing", []string{"a", "b", "c"}, "", nil, `the journal has each "item" (entry 1, written by build 1), build 2 has each "thing"`},
	} {
		sub(t, name, func(t *testing.T, k *kit) {
			f := plan(pay(k, "item", 1, "a", "b", "c"))
			k.open(f)
			h := startAndSettle(k, f, "1", 0)
			journal, effects := k.journal(h.Run()), k.effects()
			require.Equal(t, []string{"item/a/pay", "item/b/pay", "item/c/pay"}, effects)
			h = rebuild(k, "2", pay(k, c.each, 2, c.items...))
			if c.why != "" {
				blocked(k, h.Run(), "2", journal, c.why)
			} else {
				returns(k, h, c.out)
			}
			require.Equal(t, append(effects, c.again...), k.effects())
		})
	}
}

// Rule: items that have begun continue before new ones, whatever the limit is now, so that the
// run waits for everything that it waited for.
func (suite) Scenario14BegunItemsComeFirst(t *testing.T) {
	code := func(k *kit, limit int, items ...string) code {
		return func(r *workflow.Run) (string, error) {
			itself := func(item string) string { return item }
			_, err := workflow.Each(r, "item", items, itself, limit, func(r *workflow.Run, item string) (string, error) {
				return calls(k, "sleep "+item)(r)
			})
			return "", err
		}
	}
	bubble(t, func(t *testing.T, k *kit) {
		f := plan(code(k, 2, "a", "b"))
		k.open(f)
		h := startAndSettle(k, f, "1", 0)
		k.restart("2", plan(code(k, 1, "new", "a", "b")))
		k.pass(time.Hour)
		journal := k.journal(h.Run())
		require.Len(t, journal, 7)
		slices.Sort(journal[:5]) // a and b begin and sleep side by side
		require.Equal(t, []string{"branch item/a begun", "branch item/b begun", "each item begun", "sleep item/a/a done", "sleep item/b/b done",
			"branch item/new begun", "sleep item/new/new pending"}, journal)
		succeeds(k, find(k, f, "1"))
	})
}

// Rule: an empty key, a duplicate key, and a nil function are refused before anything begins.
func (suite) Scenario14BadKeys(t *testing.T, k *kit) {
	each := func(key func(string) string, items ...string) code {
		return func(r *workflow.Run) (string, error) {
			_, err := workflow.Each(r, "item", items, key, 1, func(r *workflow.Run, _ string) (string, error) { return calls(k, "x")(r) })
			return "", err
		}
	}
	itself := func(item string) string { return item }
	for i, c := range []struct {
		code code
		why  string
	}{
		{each(itself, "a", "b", "a"), `items 0 and 2 both have "a"`},
		{each(itself, "a", ""), "that of item 1 is empty"},
		{each(nil, "a"), "the function is nil"},
	} {
		f := plan(func(r *workflow.Run) (string, error) {
			_, err := c.code(r)
			if !errors.Is(err, pawl.ErrInvalid) {
				return "", fmt.Errorf("not invalid: %w", err)
			}
			return "", err
		})
		if i == 0 {
			k.open(f)
		} else {
			k.restart("1", f)
		}
		h := start(k, f, fmt.Sprint(i), 0)
		_, err := outcome(k, h)
		require.ErrorContains(t, err, c.why)
		require.NotContains(t, err.Error(), "not invalid")
		require.Empty(t, k.journal(h.Run()))
	}
}

// Rule: a race depends on its branches and their order: with other branches, or another order,
// the winner would be another, so the run is blocked.
func (suite) Scenario16RaceOfOtherBranches(t *testing.T) {
	race := func(k *kit, order ...int) code {
		return func(r *workflow.Run) (string, error) {
			all := []*workflow.Branch[string]{leg(k, r, "quick", "x"), leg(k, r, "slow", "sleep y")}
			var given []*workflow.Branch[string]
			for _, i := range order {
				given = append(given, all[i])
			}
			_, who, err := workflow.Race(r, "first", given...)
			if err != nil {
				return "", err
			}
			_, err = calls(k, "wait")(r)
			return who, err
		}
	}
	for name, c := range map[string]struct {
		order []int
		why   string
	}{
		"as it was":        {[]int{0, 1}, ""},
		"in another order": {[]int{1, 0}, `race "first" of the branches ["slow" "quick"]`},
		"without one":      {[]int{0}, `race "first" of the branches ["quick"]`},
	} {
		sub(t, name, func(t *testing.T, k *kit) {
			h := change(k, race(k, 0, 1), race(k, c.order...))
			if c.why == "" {
				returns(k, h, "x.")
				return
			}
			require.Equal(t, workflow.Blocked, k.info(h.Run()).Status)
			require.Contains(t, k.info(h.Run()).Error, c.why)
		})
	}
}
