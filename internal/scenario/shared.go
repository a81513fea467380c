package scenario

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/workflow"
)

// take is the condition of a free slot, which it takes.
func take(free *int) bool {
	if *free == 0 {
		return false
	}
	*free--
	return true
}

// rooms is a flow of six branches that need one of two slots for an hour. It returns the order in which they got one.
func rooms(k *kit) *workflow.Flow[int, []int] {
	return workflow.Define("rooms", func(r *workflow.Run, _ int) ([]int, error) {
		slots, order := workflow.Share(r, "slots", 2), workflow.Share(r, "order", []int(nil))
		itself := func(i int) string { return fmt.Sprint(i) }
		_, err := workflow.Each(r, "guest", numbers(6), itself, 6, func(r *workflow.Run, i int) (int, error) {
			if err := slots.Wait(r, "a free slot", take); err != nil {
				return 0, err
			}
			var before []int
			err := order.Change(r, func(all *[]int) { before = slices.Clone(*all); *all = append(*all, i) })
			if err != nil {
				return 0, err
			}
			_, err = workflow.Step(r, fmt.Sprint(i, " after ", len(before)), func(context.Context) (int, error) {
				k.effect(r)
				k.at("seen")
				return i, nil
			})
			if err != nil {
				return 0, err
			}
			k.at("in")
			if err := workflow.Sleep(r, "stay", time.Hour); err != nil {
				return 0, err
			}
			return i, slots.Change(r, func(free *int) { *free++ })
		})
		if err != nil {
			return nil, err
		}
		var all []int
		err = order.Change(r, func(in *[]int) { all = *in })
		return all, err
	})
}

// Rule: branches share a value: each change sees those before it, a wait ends as soon as its condition holds, and the
// order is the same after a crash, also what a step has seen of it. No slot of the worker is held.
func (suite) SharedSlots(t *testing.T) {
	for _, crashes := range []int{0, 1, 2, 3} {
		sub(t, fmt.Sprintf("crashes=%d", crashes), func(t *testing.T, k *kit) {
			f := rooms(k)
			k.open(f)
			h := startAndSettle(k, f, "1", 0)
			for i := range 3 {
				require.Len(t, k.effects(), 2*i+2, "two at a time")
				require.Equal(t, []workflow.Status{workflow.Waiting, workflow.Waiting, workflow.Sleeping}[i], k.info(h.Run()).Status)
				require.NoError(t, k.e.Verify(t.Context(), h.Run()))
				if i < crashes {
					k.crash()
				}
				k.pass(time.Hour)
			}
			h = find(k, f, "1")
			all, err := outcome(k, h)
			require.NoError(t, err)
			var want []string
			for at, i := range all {
				want = append(want, fmt.Sprintf("guest/%d/%d after %d", i, i, at))
			}
			require.ElementsMatch(t, want, k.effects())
			require.NoError(t, k.e.Replay(t.Context(), h.Run()))
			require.NoError(t, k.e.Check(t.Context()))
		})
	}
}

// Rule: who was seen to be first is first after a crash, wherever the process dies.
func (suite) SharedWinnerStays(t *testing.T) {
	for _, gate := range []string{"seen", "in"} {
		t.Run(gate, func(t *testing.T) { winnerStays(gate).run(t) })
	}
}

func winnerStays(gate string) story {
	return story{
		first: func(k *kit) {
			f, g := rooms(k), k.gate(gate)
			k.open(f)
			start(k, f, "1", 0)
			<-g.reached
			_ = k.endLife()
		},
		then: func(k *kit) {
			f := rooms(k)
			k.open(f)
			all, err := outcome(k, find(k, f, "1"))
			require.NoError(k.t, err)
			var want []string
			for at, i := range all {
				want = append(want, fmt.Sprintf("guest/%d/%d after %d", i, i, at))
			}
			require.Subset(k.t, want, k.effects(), "no other order was seen")
			require.Len(k.t, slices.Compact(slices.Sorted(slices.Values(k.effects()))), 6)
		},
	}
}

// Rule: a wait ends with a value that is changed again right after, whatever the scheduling of goroutines. A wait
// that takes something leaves the next one what is left. The wait that began first is first, even after the run has
// continued from its journal.
func (suite) SharedMomentIsSeen(t *testing.T, k *kit) {
	f := workflow.Define("moment", func(r *workflow.Run, _ int) (string, error) {
		light, log := workflow.Share(r, "light", ""), workflow.Share(r, "log", "")
		var all []*workflow.Branch[int]
		for _, name := range []string{"a", "b", "c"} {
			all = append(all, workflow.Go(r, name, func(r *workflow.Run) (int, error) {
				for range 5 {
					err := light.Wait(r, "green", func(v *string) bool { // the last one takes it
						ok := *v != "" && *v != "red"
						if ok {
							*v = (*v)[1:]
						}
						return ok
					})
					if err == nil {
						err = log.Change(r, func(v *string) { *v += name })
					}
					if err != nil {
						return 0, err
					}
				}
				return 1, nil
			}))
		}
		for range 15 {
			if err := workflow.Sleep(r, "let them wait", time.Minute); err != nil {
				return "", err
			}
			for _, next := range []string{"1", "red", ""} {
				if err := light.Change(r, func(v *string) { *v = next }); err != nil {
					return "", err
				}
			}
		}
		if _, err := workflow.All(r, all...); err != nil {
			return "", err
		}
		var out string
		err := log.Change(r, func(v *string) { out = *v })
		return out, err
	})
	k.open(f)
	h := startAndSettle(k, f, "1", 0)
	out, err := outcome(k, h)
	require.NoError(t, err)
	require.Equal(t, 15, len(out))
	for _, name := range []string{"a", "b", "c"} {
		require.Equal(t, 5, strings.Count(out, name))
	}
	require.Equal(t, strings.Repeat(out[:3], 5), out, "they take turns")
	require.NoError(t, k.e.Replay(t.Context(), h.Run()))
}

// Rule: operators see which condition a run waits for. A run in which nobody can meet it is blocked, and says who
// waits for what.
func (suite) SharedWaitIsSeen(t *testing.T, k *kit) {
	flow := func(wakes bool) *workflow.Flow[int, int] {
		return workflow.Define("stuck", func(r *workflow.Run, _ int) (int, error) {
			done := workflow.Share(r, "done", 0)
			if wakes {
				workflow.Go(r, "wakes", func(r *workflow.Run) (int, error) {
					if _, err := word.Wait(r, workflow.Forever); err != nil {
						return 0, err
					}
					return 0, done.Change(r, func(n *int) { *n++ })
				})
			}
			b := workflow.Go(r, "waits", func(r *workflow.Run) (int, error) {
				return 7, done.Wait(r, "all done", func(n *int) bool { return *n > 0 })
			})
			return b.Wait(r)
		})
	}
	k.open(flow(true))
	h := startAndSettle(k, flow(true), "1", 0)
	info := k.info(h.Run())
	require.Equal(t, workflow.Waiting, info.Status)
	require.Equal(t, `waits for "all done" of the shared value "done"`, info.Error)
	require.Equal(t, []string{word.Name()}, info.Waits)
	require.Contains(t, k.journal(h.Run()), "condition waits/all done pending")
	say(k, h.Run(), "go", "")
	returns(k, h, 7)
	require.Empty(t, k.info(h.Run()).Error)

	k.restart("2", flow(false))
	h = startAndSettle(k, flow(false), "2", 0)
	info = k.info(h.Run())
	require.Equal(t, workflow.Blocked, info.Status)
	require.Contains(t, info.Error, `branch "waits" waits for "all done" of the shared value "done"`)
	k.crash()
	k.settle()
	require.Equal(t, workflow.Blocked, k.info(h.Run()).Status)
}

// Rule: a cancelled run does not wait for a condition. Its undo steps share values of their own, and not
// those of the function.
func (suite) SharedUndo(t *testing.T) {
	for _, crash := range []bool{false, true} {
		sub(t, fmt.Sprintf("crash=%v", crash), func(t *testing.T, k *kit) {
			f := workflow.Define("undoes", func(r *workflow.Run, _ int) (int, error) {
				n := workflow.Share(r, "n", 1)
				for _, name := range []string{"first", "second"} {
					r.UndoWith(name, func(r *workflow.Run) error {
						if err := n.Change(r, func(*int) {}); err == nil || !strings.Contains(err.Error(), "in an undo step") {
							return fmt.Errorf("the value of the function: %w", err)
						}
						left := workflow.Share(r, "left", 2)
						itself := func(i int) string { return fmt.Sprint(i) }
						_, err := workflow.Each(r, "part", numbers(2), itself, 2, func(r *workflow.Run, i int) (int, error) {
							if err := workflow.Sleep(r, "nap", time.Hour); err != nil {
								return 0, err
							}
							return 0, left.Change(r, func(n *int) { *n-- })
						})
						if err != nil {
							return err
						}
						if err := left.Wait(r, "none left", func(n *int) bool { return *n == 0 }); err != nil {
							return err
						}
						_, err = act(k, r, "undone", 1)
						return err
					})
				}
				if err := n.Change(r, func(n *int) { *n++ }); err != nil {
					return 0, err
				}
				workflow.Go(r, "sleeps", func(r *workflow.Run) (int, error) { return 0, workflow.Sleep(r, "nap", 20*time.Hour) })
				return 0, n.Wait(r, "ten", func(n *int) bool { return *n == 10 })
			})
			k.open(f)
			h := start(k, f, "1", 0)
			k.settle()
			require.Equal(t, workflow.Waiting, k.info(h.Run()).Status)
			require.NoError(t, k.e.Cancel(t.Context(), h.Run(), "enough"))
			for range 4 {
				if crash {
					k.crash()
				}
				k.pass(30 * time.Minute)
			}
			_, err := outcome(k, find(k, f, "1"))
			require.ErrorContains(t, err, "enough")
			require.NotContains(t, err.Error(), "not all was undone")
			require.Equal(t, []string{"_undo/second/undone", "_undo/first/undone"}, k.effects())
			require.NoError(t, k.e.Check(t.Context()))
		})
	}
}

// Rule: a branch that loses a race does not take what it waits for. What it changed before stays, and it has used
// its signals then. A crash changes nothing.
func (suite) SharedOfALoser(t *testing.T) {
	for _, crash := range []bool{false, true} {
		sub(t, fmt.Sprintf("crash=%v", crash), func(t *testing.T, k *kit) {
			f := workflow.Define("race", func(r *workflow.Run, _ int) (string, error) {
				n := workflow.Share(r, "n", 0)
				loser := workflow.Go(r, "loser", func(r *workflow.Run) (string, error) {
					got, err := word.Wait(r, workflow.Forever)
					if err == nil {
						err = n.Change(r, func(n *int) { *n = 5 })
					}
					if err == nil {
						err = n.Wait(r, "ten", func(n *int) bool { *n++; return *n > 10 })
					}
					if !errors.Is(err, workflow.ErrAbandoned) && !errors.Is(err, workflow.ErrSuspended) {
						err = fmt.Errorf("not abandoned: %w", err)
					}
					return got, err
				})
				winner := workflow.Go(r, "winner", func(r *workflow.Run) (string, error) { return "won", workflow.Sleep(r, "nap", time.Hour) })
				_, out, err := workflow.Race(r, "first", winner, loser)
				if err != nil {
					return "", err
				}
				if err := n.Change(r, func(n *int) { out += fmt.Sprint(*n); *n = 100 }); err != nil {
					return "", err
				}
				if _, err := loser.Wait(r); !errors.Is(err, workflow.ErrAbandoned) {
					return "", fmt.Errorf("the loser: %w", err)
				}
				if err := workflow.Sleep(r, "nap", time.Hour); err != nil {
					return "", err
				}
				err = n.Change(r, func(n *int) { out += fmt.Sprint(" ", *n) })
				return out, err
			})
			k.open(f)
			h := startAndSettle(k, f, "1", 0)
			say(k, h.Run(), "hello", "")
			for range 4 {
				k.pass(29 * time.Minute)
				if crash {
					k.crash()
				}
			}
			h = find(k, f, "1")
			returns(k, h, "won5 100")
			require.Zero(t, k.info(h.Run()).Unread, "the signal was used")
			require.NoError(t, k.e.Replay(t.Context(), h.Run()))
		})
	}
}

// Rule: a value that nobody can store is an error that stays the same, and changes nothing. A condition that
// panics does so in its own branch, whoever changed the value.
func (suite) SharedRefused(t *testing.T, k *kit) {
	f := workflow.Define("large", func(r *workflow.Run, _ int) (string, error) {
		text := workflow.Share(r, "text", "small")
		large := text.Change(r, func(s *string) { *s = strings.Repeat("x", workflow.MaxValue) })
		if err := workflow.Sleep(r, "nap", time.Hour); err != nil {
			return "", err
		}
		var failed *workflow.StepError
		if !errors.As(large, &failed) || !errors.Is(large, workflow.ErrTooLarge) {
			return "", fmt.Errorf("too large: %w", large)
		}
		var out string
		if err := text.Change(r, func(s *string) { out = *s }); err != nil {
			return "", err
		}
		if err := workflow.Share(r, "bad/name", 1).Change(r, func(*int) {}); err == nil || !strings.Contains(err.Error(), "bad/name") {
			return "", fmt.Errorf("bad name: %w", err)
		}
		return out, nil
	})
	panics := workflow.Define("panics", func(r *workflow.Run, _ int) (int, error) {
		n := workflow.Share(r, "n", 0)
		b := workflow.Go(r, "waits", func(r *workflow.Run) (int, error) {
			return 7, n.Wait(r, "one", func(n *int) bool {
				if *n == 1 && k.called("panic") < 10 {
					panic("of the condition")
				}
				return *n == 1
			})
		})
		if err := workflow.Sleep(r, "nap", time.Hour); err != nil {
			return 0, err
		}
		if err := n.Change(r, func(n *int) { *n++ }); err != nil {
			return 0, err
		}
		return b.Wait(r)
	})
	k.open(f, panics)
	h := startAndSettle(k, f, "1", 0)
	k.crash()
	returns(k, find(k, f, "1"), "small")
	require.NoError(t, k.e.Replay(t.Context(), h.Run()))

	h2 := startAndSettle(k, panics, "1", 0)
	k.pass(time.Hour)
	require.Equal(t, workflow.Blocked, k.info(h2.Run()).Status)
	require.Contains(t, k.info(h2.Run()).Error, "of the condition")
	for range 10 {
		k.called("panic")
	}
	require.NoError(t, k.e.Resume(t.Context(), h2.Run()))
	returns(k, h2, 7)
}
