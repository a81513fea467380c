package scenario

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/workflow"
)

// chooser is a flow that selects among two signals, a branch that ends with a number, and a time.
func chooser(k *kit, branch func(r *workflow.Run) (int, error), after time.Duration) *workflow.Flow[int, string] {
	return workflow.Define("chooser", func(r *workflow.Run, _ int) (string, error) {
		b := workflow.Go(r, "side", branch)
		k.at("begun")
		var first, second string
		var n int
		i, err := workflow.Select(r, "next", word.Case(&first), last.Case(&second), b.Case(&n), workflow.After(after))
		if i < 0 {
			return "", err
		}
		out := fmt.Sprintf("%d %s%s %d %v", i, first, second, n, err)
		return act(k, r, "tell", out)
	})
}

func naps(r *workflow.Run) (int, error) { return 7, workflow.Sleep(r, "nap", 10*time.Hour) }

// Rule: a Select is one entry, and only the selected case takes effect: the signals of the others
// stay unread, and their branches go on. A crash changes nothing, before and after.
func (suite) SelectTakesOne(t *testing.T) {
	for _, crash := range []bool{false, true} {
		for name, test := range map[string]struct {
			send func(k *kit, h *workflow.Handle[string])
			pass time.Duration
			want string
		}{
			"signal": {func(k *kit, h *workflow.Handle[string]) {
				require.NoError(k.t, last.Send(k.t.Context(), k.e, h.Run(), "b", ""))
				require.NoError(k.t, last.Send(k.t.Context(), k.e, h.Run(), "c", ""))
			}, 0, "1 b 0 <nil>"},
			"timer": {func(*kit, *workflow.Handle[string]) {}, time.Hour, "3  0 <nil>"},
		} {
			sub(t, fmt.Sprintf("%s/crash=%v", name, crash), func(t *testing.T, k *kit) {
				k.open(chooser(k, naps, time.Hour))
				h := startAndSettle(k, chooser(k, naps, time.Hour), "1", 0)
				require.ElementsMatch(t, []string{"word", "last"}, k.info(h.Run()).Waits)
				if crash {
					k.crash()
				}
				test.send(k, h)
				k.pass(test.pass)
				require.Equal(t, []string{"tell"}, k.effects())
				if crash {
					k.crash()
				}
				require.Equal(t, workflow.Sleeping, k.info(h.Run()).Status, "the branch goes on")
				returns(k, find(k, chooser(k, naps, time.Hour), "1"), test.want)
				require.Equal(t, []string{"tell"}, k.effects())
				journal := k.journal(h.Run())
				require.Len(t, journal, 4, "the branch, its sleep, the Select, and the step")
				if name == "signal" {
					require.Equal(t, 1, k.info(h.Run()).Unread)
				}
			})
		}
	}
}

// Rule: the first case that is ready is selected. Ready signals and branches come before the timer, even if its
// time is over.
func (suite) SelectFirstReady(t *testing.T, k *kit) {
	quick := func(*workflow.Run) (int, error) { return 7, errors.New("tired") }
	f := chooser(k, quick, 0)
	g := k.gate("begun")
	k.open(f)
	h := start(k, f, "1", 0)
	<-g.reached
	k.settle() // the branch has ended
	close(g.open)
	returns(k, h, "2  7 tired")

	g = k.gate("begun")
	h = start(k, f, "2", 0)
	<-g.reached
	say(k, h.Run(), "hello", "")
	k.settle()
	close(g.open)
	_, err := outcome(k, h)
	require.ErrorContains(t, err, `branch "side": tired`, "nobody has awaited it")
	require.Equal(t, 2, len(k.effects()))

	f = chooser(k, naps, -1)
	k.restart("2", f)
	returns(k, start(k, f, "3", 0), "3  0 <nil>")
}

// Rule: a signal that a Select of a branch received is given back if the branch loses a race
// before it has acted on it.
func (suite) SelectOfALoserGivesBack(t *testing.T, k *kit) {
	f := workflow.Define("race", func(r *workflow.Run, _ int) (string, error) {
		loser := workflow.Go(r, "loser", func(r *workflow.Run) (string, error) {
			var got string
			if _, err := workflow.Select(r, "next", word.Case(&got), workflow.After(workflow.Forever)); err != nil {
				return "", err
			}
			return got, workflow.Sleep(r, "night", 10*time.Hour)
		})
		winner := workflow.Go(r, "winner", func(r *workflow.Run) (string, error) { return "won", workflow.Sleep(r, "nap", time.Hour) })
		_, out, err := workflow.Race(r, "first", winner, loser)
		if err != nil {
			return "", err
		}
		if _, err := loser.Wait(r); !errors.Is(err, workflow.ErrAbandoned) {
			return "", fmt.Errorf("the loser: %w", err)
		}
		got, err := word.Wait(r, 0)
		return out + " " + got, err
	})
	k.open(f)
	h := startAndSettle(k, f, "1", 0)
	say(k, h.Run(), "hello", "")
	k.settle()
	require.Zero(t, k.info(h.Run()).Unread)
	returns(k, h, "won hello")
}

// Rule: a signal that came after the time of the last Select, and before the end of the run, takes the
// run back to the Select.
func (suite) SelectBeforeTheEnd(t *testing.T, k *kit) {
	f := workflow.Define("drain", func(r *workflow.Run, _ int) (n int, err error) {
		for {
			i, err := workflow.Select(r, "next", word.Case(nil), workflow.After(0))
			if i != 0 {
				k.at("end")
				return n, err
			}
			n++
		}
	})
	g := k.gate("end")
	k.open(f)
	h := start(k, f, "1", 0)
	<-g.reached
	say(k, h.Run(), "hello", "")
	say(k, h.Run(), "again", "")
	close(g.open)
	returns(k, h, 2)
	require.Zero(t, k.info(h.Run()).Unread)
}

// Rule: other cases than those in the journal block the run. Bad cases are refused and leave no entry.
func (suite) SelectChangedCases(t *testing.T, k *kit) {
	flow := func(cases ...workflow.Case) *workflow.Flow[int, int] {
		return workflow.Define("f", func(r *workflow.Run, _ int) (int, error) {
			if i, err := workflow.Select(r, "next", cases...); i < 0 {
				return 0, err
			}
			return 1, workflow.Sleep(r, "nap", time.Hour)
		})
	}
	k.open(flow(word.Case(nil), workflow.After(0)))
	h := startAndSettle(k, flow(), "1", 0)
	k.restart("2", flow(last.Case(nil), workflow.After(0)))
	k.pass(time.Hour)
	require.Equal(t, workflow.Blocked, k.info(h.Run()).Status)
	require.Contains(t, k.info(h.Run()).Error, "keep the cases, and their order")
	k.restart("3", flow(word.Case(nil), workflow.After(0)))
	returns(k, find(k, flow(), "1"), 1)

	for _, bad := range [][]workflow.Case{nil, {{}}, {workflow.DefineSignal[int]("a/b").Case(nil)}} {
		k.restart("4", flow(bad...))
		h := start(k, flow(), fmt.Sprint("bad ", len(bad), bad), 0)
		_, err := outcome(k, h)
		require.Error(t, err)
		require.Empty(t, k.journal(h.Run()))
	}
}

// Rule: a wait that a deploy gives a time limit ends when that time has passed since it began, once the run has
// continued. A wait whose limit a deploy removes goes on without one.
func (suite) WaitWithAnotherLimit(t *testing.T) {
	waits := map[string]func(limit time.Duration) code{
		"select": func(limit time.Duration) code {
			return func(r *workflow.Run) (got string, err error) {
				cases := []workflow.Case{word.Case(&got)}
				if limit != 0 {
					cases = append(cases, workflow.After(limit))
				}
				i, err := workflow.Select(r, "next", cases...)
				return fmt.Sprint(i, got), err
			}
		},
		"wait": func(limit time.Duration) code {
			if limit == 0 {
				limit = workflow.Forever
			}
			return func(r *workflow.Run) (string, error) {
				got, err := word.Wait(r, limit)
				if errors.Is(err, workflow.ErrTimeout) {
					return "1", nil
				}
				return "0" + got, err
			}
		},
	}
	for name, wait := range waits {
		sub(t, name+" with a new limit", func(t *testing.T, k *kit) {
			k.open(plan(wait(0)))
			h := startAndSettle(k, plan(wait(0)), "1", 0)
			over := k.now().Add(time.Hour)
			k.pass(10 * time.Minute)
			k.restart("2", plan(wait(time.Hour)))
			require.NoError(t, k.e.Resume(t.Context(), h.Run()))
			k.settle()
			require.True(t, k.info(h.Run()).Due.Equal(over), k.info(h.Run()).Due)
			require.True(t, k.entries(h.Run())[0].Due.Equal(over))
			k.restart("3")
			k.pass(50 * time.Minute)
			require.Equal(t, workflow.Done, k.info(h.Run()).Status)
			returns(k, find(k, plan(wait(time.Hour)), "1"), "1")
		})
		sub(t, name+" without its limit", func(t *testing.T, k *kit) {
			k.open(plan(wait(time.Hour)))
			h := startAndSettle(k, plan(wait(time.Hour)), "1", 0)
			k.restart("2", plan(wait(0)))
			k.pass(2 * time.Hour)
			info := k.info(h.Run())
			require.Equal(t, workflow.Waiting, info.Status, info.Error)
			require.Zero(t, info.Due)
			require.Zero(t, k.entries(h.Run())[0].Due)
			say(k, h.Run(), "hello", "")
			returns(k, find(k, plan(wait(0)), "1"), "0hello")
		})
	}
}
