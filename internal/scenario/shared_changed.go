package scenario

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/workflow"
)

// counts is a flow whose branch adds to a value, which the function waits for.
func counts[T any](initial T, add func(*T), enough func(*T) bool) *workflow.Flow[int, string] {
	return workflow.Define("counts", func(r *workflow.Run, _ int) (string, error) {
		n := workflow.Share(r, "n", initial)
		b := workflow.Go(r, "adds", func(r *workflow.Run) (int, error) { return 1, n.Change(r, add) })
		var got T
		err := n.Wait(r, "enough", func(v *T) bool { got = *v; return enough(v) })
		if err == nil {
			err = workflow.Sleep(r, "nap", time.Hour)
		}
		if err == nil {
			_, err = b.Wait(r)
		}
		return fmt.Sprint(got), err
	})
}

// Rule: code that changes a value otherwise than the journal remembers blocks the run, and says why. The build that
// fits continues it. The initial value is that of the journal.
func (suite) SharedChangedCode(t *testing.T) {
	two := func(n *int) { *n += 2 }
	past := func(least int) func(*int) bool { return func(n *int) bool { return *n >= least } }
	for name, c := range map[string]struct {
		now  *workflow.Flow[int, string]
		want string
	}{
		"change":    {counts(1, func(n *int) { *n += 3 }, past(3)), "computed another value before"},
		"condition": {counts(1, two, past(4)), "its condition was true before"},
		"type":      {counts("", func(*string) {}, func(*string) bool { return true }), "of another type"},
	} {
		sub(t, name, func(t *testing.T, k *kit) {
			f := counts(1, two, past(3))
			k.open(f)
			h := startAndSettle(k, f, "1", 0)
			require.Equal(t, workflow.Sleeping, k.info(h.Run()).Status)
			k.restart("2", c.now)
			require.Error(t, k.e.Verify(t.Context(), h.Run()))
			k.pass(time.Hour)
			require.Equal(t, workflow.Blocked, k.info(h.Run()).Status)
			require.Contains(t, k.info(h.Run()).Error, c.want)
			k.restart("3", counts(100, two, past(3)))
			returns(k, find(k, f, "1"), "3")
		})
	}
}

// Rule: a fork has the changes that came before its step, without a gap, and the run makes the others anew.
func (suite) SharedFork(t *testing.T, k *kit) {
	f := workflow.Define("forked", func(r *workflow.Run, _ int) (string, error) {
		n := workflow.Share(r, "n", "")
		add := func(r *workflow.Run, s string) error { return n.Change(r, func(v *string) { *v += s }) }
		b := workflow.Go(r, "b", func(r *workflow.Run) (string, error) {
			out := ""
			err := n.Wait(r, "c is there", func(v *string) bool { // it began first, and ends last
				out = *v
				return len(*v) > 0 && (*v)[len(*v)-1] == 'c'
			})
			if err == nil {
				err = add(r, "d")
			}
			return out, err
		})
		for _, name := range []string{"a", "b", "c"} {
			if err := workflow.Sleep(r, "nap", time.Minute); err != nil {
				return "", err
			}
			if err := add(r, name); err != nil {
				return "", err
			}
			if _, err := act(k, r, "step "+name, name); err != nil {
				return "", err
			}
		}
		out, err := b.Wait(r)
		if err != nil {
			return "", err
		}
		err = n.Change(r, func(v *string) { out += " " + *v })
		return out, err
	})
	k.open(f)
	h := startAndSettle(k, f, "1", 0)
	returns(k, h, "abc abcd")
	for _, from := range []string{"", "step a", "step b", "step c"} {
		id := "from " + from
		_, err := k.e.Fork(t.Context(), h.Run(), from, id)
		require.NoError(t, err)
		returns(k, find(k, f, id), "abc abcd")
	}
	require.NoError(t, k.e.Check(t.Context()))
}

// picker is a flow that selects among a signal, a shared number that another branch raises, and a time.
func picker(k *kit, first int, after time.Duration) *workflow.Flow[int, string] {
	return workflow.Define("picker", func(r *workflow.Run, _ int) (string, error) {
		n := workflow.Share(r, "n", first)
		raise := workflow.Go(r, "raises", func(r *workflow.Run) (int, error) {
			if _, err := last.Wait(r, 10*time.Hour); err != nil {
				return 0, nil
			}
			return 0, n.Change(r, func(n *int) { *n++ })
		})
		k.at("begun")
		var text string
		seen := 0
		take := func(n *int) bool { seen = *n; return take(n) }
		i, err := workflow.Select(r, "next", word.Case(&text), n.Case(take), workflow.After(after))
		if i < 0 {
			return "", err
		}
		left := 0
		if err := n.Change(r, func(n *int) { left = *n }); err != nil {
			return "", err
		}
		out, err := act(k, r, "tell", fmt.Sprintf("%d %s left %d", i, text, left))
		if err == nil {
			err = workflow.Sleep(r, "nap", 20*time.Hour)
		}
		if err == nil && i == 1 && seen == 0 {
			err = fmt.Errorf("took nothing")
		}
		if err == nil {
			_, err = raise.Wait(r)
		}
		return out, err
	})
}

// Rule: a Select takes a shared value when its function returns true, once, and only if no earlier case is
// ready. A crash changes nothing, before and after.
func (suite) SharedSelect(t *testing.T) {
	for name, c := range map[string]struct {
		first int
		after time.Duration
		word  bool // before the Select looks
		raise bool
		want  string
	}{
		"there":        {1, time.Hour, false, false, "1  left 0"},
		"signal first": {1, time.Hour, true, false, "0 hello left 1"},
		"raised":       {0, time.Hour, false, true, "1  left 0"},
		"time":         {0, time.Hour, false, false, "2  left 0"},
		"look":         {0, 0, false, false, "2  left 0"},
		"look finds":   {1, 0, false, false, "1  left 0"},
	} {
		for _, crash := range []bool{false, true} {
			sub(t, fmt.Sprintf("%s/crash=%v", name, crash), func(t *testing.T, k *kit) {
				f := picker(k, c.first, c.after)
				g := k.gate("begun")
				k.open(f)
				h := start(k, f, "1", 0)
				<-g.reached
				if c.word {
					say(k, h.Run(), "hello", "")
				}
				close(g.open)
				k.settle()
				if crash {
					k.crash()
				}
				if c.raise {
					require.Empty(t, k.effects())
					require.Equal(t, `waits in "next" for the shared value "n"`, k.info(h.Run()).Error)
					require.NoError(t, last.Send(t.Context(), k.e, h.Run(), "up", ""))
					k.settle()
				}
				k.pass(time.Hour)
				require.Equal(t, []string{"tell"}, k.effects())
				if crash {
					k.crash()
				}
				h = find(k, f, "1")
				returns(k, h, c.want)
				require.Equal(t, []string{"tell"}, k.effects())
				require.NoError(t, k.e.Replay(t.Context(), h.Run()))
			})
		}
	}
}

// Rule: a signal that comes after the last look does not take a run back over a Select that took a shared value.
func (suite) SharedSelectIsFinal(t *testing.T, k *kit) {
	f := workflow.Define("final", func(r *workflow.Run, _ int) (int, error) {
		n := workflow.Share(r, "n", 1)
		if _, err := word.Wait(r, 0); err == nil {
			return 0, nil
		}
		i, err := workflow.Select(r, "next", n.Case(take), workflow.After(0))
		k.at("end")
		return 10 + i, err
	})
	g := k.gate("end")
	k.open(f)
	h := start(k, f, "1", 0)
	<-g.reached
	say(k, h.Run(), "hello", "")
	close(g.open)
	returns(k, h, 10)
	require.Equal(t, 1, k.info(h.Run()).Unread)
}

// Rule: a branch whose last call is a version does not hold up the changes in the journal, so a new change comes
// after them.
func (suite) SharedBehindAVersion(t *testing.T) {
	f := func(k *kit) *workflow.Flow[int, string] {
		return workflow.Define("versions", func(r *workflow.Run, _ int) (string, error) {
			text := workflow.Share(r, "text", "")
			add := func(r *workflow.Run, s string) error { return text.Change(r, func(v *string) { *v += s }) }
			v := workflow.Go(r, "v", func(r *workflow.Run) (int, error) { return workflow.Version(r, "tax", 1, 2) })
			w := workflow.Go(r, "w", func(r *workflow.Run) (int, error) {
				k.at("w")
				return 1, add(r, "w")
			})
			if _, err := v.Wait(r); err != nil {
				return "", err
			}
			if err := add(r, "v"); err != nil {
				return "", err
			}
			if _, err := act(k, r, "tell", 1); err != nil {
				return "", err
			}
			k.at("done")
			if _, err := w.Wait(r); err != nil {
				return "", err
			}
			out := ""
			err := text.Change(r, func(v *string) { out = *v })
			return out, err
		})
	}
	story{
		first: func(k *kit) {
			w, done := k.gate("w"), k.gate("done")
			k.open(f(k))
			start(k, f(k), "1", 0)
			<-w.reached
			<-done.reached
			k.linger()
			_ = k.endLife()
		},
		then: func(k *kit) {
			k.open(f(k))
			h := find(k, f(k), "1")
			returns(k, h, "vw")
			require.Equal(k.t, []string{"tell"}, k.effects())
			require.NoError(k.t, k.e.Replay(k.t.Context(), h.Run()))
		},
	}.run(t)
}

// Rule: a change is durable before the function of a step begins, which may act on it.
func (suite) SharedBeforeAStep(t *testing.T) {
	f := func(k *kit) *workflow.Flow[int, int] {
		return workflow.Define("acts", func(r *workflow.Run, n int) (int, error) {
			v := workflow.Share(r, "v", 1)
			if _, err := word.Wait(r, workflow.Forever); err != nil { // a commit of its own
				return 0, err
			}
			if err := v.Change(r, func(v *int) { *v++; n = *v }); err != nil {
				return 0, err
			}
			return workflow.Step(r, "tell", func(context.Context) (int, error) {
				k.at("tell")
				return n, nil
			})
		})
	}
	story{
		first: func(k *kit) {
			g := k.gate("tell")
			k.open(f(k))
			h := startAndSettle(k, f(k), "1", 0)
			say(k, h.Run(), "go", "")
			<-g.reached
			_ = k.endLife()
		},
		then: func(k *kit) {
			k.slots = -1
			k.open(f(k))
			h := find(k, f(k), "1")
			require.Len(k.t, k.entries(h.Run()), 3, "the value, the signal, and the change")
			k.restartWithSlots(8)
			returns(k, find(k, f(k), "1"), 2)
		},
	}.run(t)
}

// Rule: a change is durable with the next write, and needs no commit.
func (suite) SharedNeedsNoCommit(t *testing.T, k *kit) {
	flow := func(name string, changes int) *workflow.Flow[int, int] {
		return workflow.Define(name, func(r *workflow.Run, n int) (int, error) {
			if changes > 0 {
				sum := workflow.Share(r, "sum", 1)
				for range changes {
					if err := sum.Change(r, func(v *int) { *v++; n = *v }); err != nil {
						return 0, err
					}
				}
			}
			return n, workflow.Sleep(r, "nap", time.Hour)
		})
	}
	none, some := flow("none", 0), flow("some", 5)
	k.open(none, some)
	k.settle()
	cost := func(f *workflow.Flow[int, int]) int {
		before := commits(k)
		startAndSettle(k, f, "1", 0)
		return commits(k) - before
	}
	require.LessOrEqual(t, cost(some), cost(none))
	returns(k, find(k, some, "1"), 6)
}
