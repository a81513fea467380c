package scenario

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/workflow"
)

// drains is a flow that reads all available words and last words. Then it does what its input
// says.
func drains(k *kit) *workflow.Flow[string, []string] {
	return workflow.Define("drains", func(r *workflow.Run, then string) (all []string, err error) {
		k.called("function")
		for more := true; more; {
			more = false
			for _, s := range []*workflow.Signal[string]{word, last} {
				switch w, err := s.Wait(r, 0); {
				case err == nil:
					all = append(all, w)
					more = true
				case !errors.Is(err, workflow.ErrTimeout):
					return nil, err
				}
				k.at("after " + s.Name())
			}
		}
		switch then {
		case "step":
			_, err = workflow.Step(r, "report", func(context.Context) (int, error) { return 1, nil })
		case "branch":
			_, err = workflow.Go(r, "report", func(*workflow.Run) (int, error) { return 1, nil }).Wait(r)
		case "version":
			_, err = workflow.Version(r, "ending", 1, 2)
		case "nap":
			err = workflow.Sleep(r, "nap", time.Millisecond)
		}
		k.at("end")
		return all, err
	})
}

// Rule: a run receives a signal that arrives after its last look for it and before its end, as
// long as nothing took effect since the look. So it does with the signals that another look
// received meanwhile.
func (suite) Scenario26SignalBeforeTheEnd(t *testing.T) {
	for _, then := range []string{"", "nap", "version"} {
		t.Run(then, func(t *testing.T) {
			eachDeath(t, func(at death) story {
				return story{
					first: func(k *kit) {
						end, after := k.gate("end"), k.gate("after word")
						k.open(drains(k))
						h := start(k, drains(k), "1", then)
						<-after.reached
						require.NoError(k.t, last.Send(k.t.Context(), k.e, h.Run(), "one", ""))
						close(after.open)
						<-end.reached // everything was read
						say(k, h.Run(), "two", "")
						g := k.hold()
						close(end.open)
						g.endLife(at)
					},
					then: func(k *kit) {
						k.slots = -1
						k.open(drains(k))
						require.NoError(k.t, k.e.Check(k.t.Context()))
						k.restartWithSlots(4)
						h := find(k, drains(k), "1")
						out, err := outcome(k, h)
						require.NoError(k.t, err)
						require.ElementsMatch(k.t, []string{"one", "two"}, out)
						require.Empty(k.t, pending(k, h.Run()))
						require.NoError(k.t, k.e.Check(k.t.Context()))
					},
				}
			})
		})
	}
}

// Rule: a run goes back once for each such signal, and ends.
func (suite) Scenario26EndComesOnce(t *testing.T, k *kit) {
	k.slots = -1 // nobody reaches the end before the restart
	k.open(drains(k))
	h := start(k, drains(k), "1", "")
	end := k.gate("end")
	k.restartWithSlots(4)
	for _, w := range []string{"one", "two", "three"} {
		<-end.reached
		say(k, h.Run(), w, "")
		before := end
		if w != "three" {
			end = k.gate("end") // before the run can reach it
		}
		close(before.open)
	}
	h = find(k, drains(k), "1")
	returns(k, h, []string{"one", "two", "three"})
	require.LessOrEqual(t, k.calls("function"), 4)
}

// Rule: a timeout before a call with an effect is final, and a signal that nobody looks for at
// the end stays unread. The run ends all the same.
func (suite) Scenario26SignalThatNobodyReads(t *testing.T) {
	for _, then := range []string{"step", "branch", "unknown"} {
		sub(t, then, func(t *testing.T, k *kit) {
			end := k.gate("end")
			k.open(drains(k))
			h := start(k, drains(k), "1", then)
			<-end.reached
			if then == "unknown" {
				require.NoError(t, workflow.DefineSignal[int]("unknown").Send(t.Context(), k.e, h.Run(), 1, ""))
			} else {
				say(k, h.Run(), "late", "")
			}
			close(end.open)
			out, err := outcome(k, h)
			require.NoError(t, err)
			require.Empty(t, out)
			require.Equal(t, 1, k.info(h.Run()).Unread)
			require.Equal(t, 1, k.calls("function"))
		})
	}
}

// Rule: a run that is being cancelled or terminated does not go back.
func (suite) Scenario26EndOfACancelledRun(t *testing.T, k *kit) {
	end := k.gate("end")
	k.open(drains(k))
	h := start(k, drains(k), "1", "")
	<-end.reached
	say(k, h.Run(), "late", "")
	require.NoError(t, k.e.Cancel(t.Context(), h.Run(), "enough"))
	close(end.open)
	out, err := outcome(k, h)
	require.NoError(t, err, "it had returned")
	require.Empty(t, out)
}

// Rule: a request that comes after the time of the wait for it, and before the end of the run, takes the run back to
// the wait. If the request is rejected, that wait is over at once, and the run ends. A valid request is taken.
func (suite) UpdateBeforeTheEnd(t *testing.T) {
	valid := func(n int) error {
		if n < 0 {
			return errBroke
		}
		return nil
	}
	waits := map[string]func(r *workflow.Run) (int, error){
		"wait": func(r *workflow.Run) (int, error) {
			q, err := withdraw.Wait(r, 72*time.Hour, valid)
			if errors.Is(err, workflow.ErrTimeout) {
				return 0, nil
			}
			return q.Value, err
		},
		"select": func(r *workflow.Run) (int, error) {
			var q workflow.Request[int, int]
			_, err := workflow.Select(r, "next", withdraw.Case(&q, valid), workflow.After(72*time.Hour))
			return q.Value, err
		},
	}
	for name, wait := range waits {
		for _, n := range []int{-1, 7} {
			sub(t, fmt.Sprintf("%s/%d", name, n), func(t *testing.T, k *kit) {
				f := workflow.Define("closes", func(r *workflow.Run, _ int) (int, error) {
					n, err := wait(r)
					if err == nil && n == 0 {
						err = workflow.Sleep(r, "closing", time.Hour)
					}
					return n, err
				})
				k.open(f)
				h := start(k, f, "1", 0)
				k.pass(72*time.Hour + time.Minute)
				require.NoError(t, withdraw.Send(t.Context(), k.e, h.Run(), n, "key"))
				k.pass(2 * time.Hour) // to the end of the second closing, if there is one
				require.Equal(t, workflow.Done, k.info(h.Run()).Status, "%v", k.journal(h.Run()))
				returns(k, h, max(n, 0))
				require.Zero(t, k.info(h.Run()).Unread)
				require.NoError(t, k.e.Check(t.Context()))
				entries := k.entries(h.Run())
				require.Equal(t, len(entries), k.info(h.Run()).Steps)
			})
		}
	}
}

// Rule: a run that fails over a timeout also goes back for a signal that came before its end, unless it has undone
// steps. If it does not go back, the signal stays unread, and the log has it.
func (suite) Scenario26SignalBeforeAFailure(t *testing.T) {
	for _, undoes := range []bool{false, true} {
		sub(t, fmt.Sprintf("undoes=%v", undoes), func(t *testing.T, k *kit) {
			const unread = "signals that it did not read"
			var lines bytes.Buffer
			k.log = hclog.New(&hclog.LoggerOptions{Output: &lines})
			f := workflow.Define("approval", func(r *workflow.Run, _ int) (string, error) {
				if undoes {
					r.Undo("forget it", func(context.Context) error { return nil })
				}
				w, err := word.Wait(r, time.Hour)
				if errors.Is(err, workflow.ErrTimeout) {
					k.at("end")
					return "", errors.New("nobody approved it")
				}
				return w, err
			})
			end := k.gate("end")
			k.open(f)
			h := start(k, f, "1", 0)
			<-end.reached
			say(k, h.Run(), "yes", "")
			close(end.open)
			if !undoes {
				returns(k, h, "yes")
				require.Zero(t, k.info(h.Run()).Unread)
				k.settle()
				require.NotContains(t, lines.String(), unread)
				return
			}
			_, err := outcome(k, h)
			require.ErrorContains(t, err, "nobody approved it")
			require.Equal(t, 1, k.info(h.Run()).Unread)
			k.settle()
			require.Equal(t, 1, strings.Count(lines.String(), unread))
		})
	}
}

// declares is a flow that takes words, and waits for the signal named by its input.
func declares(more ...workflow.SignalDefinition) *workflow.Flow[string, string] {
	return workflow.Define("declares", func(r *workflow.Run, name string) (string, error) {
		return workflow.DefineSignal[string](name).Wait(r, workflow.Forever)
	}, workflow.Receives(word), workflow.Receives(more...))
}

// Rule: a signal that the flow does not declare is refused with the declared names: those of
// the build that runs it, and those of the last such build while none does.
func (suite) Scenario26UndeclaredSignal(t *testing.T, k *kit) {
	refused := func(run pawl.ID, s *workflow.Signal[string], declared string) {
		t.Helper()
		err := s.Send(t.Context(), k.e, run, "x", "")
		require.ErrorIs(t, err, workflow.ErrUndeclared)
		require.ErrorContains(t, err, declared)
		info := k.info(run)
		require.ErrorIs(t, info.Accepts(s.Name()), workflow.ErrUndeclared)
		require.Zero(t, info.Unread)
	}
	worrd := workflow.DefineSignal[string]("worrd")
	k.open(declares())
	h := startAndSettle(k, declares(), "1", "word")
	refused(h.Run(), worrd, "takes word:")
	refused(h.Run(), last, "takes word:")

	k.restart("2", declares(last))
	refused(h.Run(), worrd, "takes last, word:")
	k.restart("3", trip(k)) // without such a flow
	refused(h.Run(), last, "takes word:")
	k.restart("4", declares(last))
	require.NoError(t, last.Send(t.Context(), k.e, h.Run(), "x", ""))
	say(k, h.Run(), "hello", "")
	returns(k, find(k, declares(), "1"), "hello")
	require.ErrorIs(t, worrd.Send(t.Context(), k.e, h.Run(), "x", ""), workflow.ErrNotRunning)
}

// Rule: a flow that declares no signals accepts any.
func (suite) Scenario26NothingDeclared(t *testing.T, k *kit) {
	k.open(listen(k))
	h := start(k, listen(k), "1", 1)
	require.NoError(t, last.Send(t.Context(), k.e, h.Run(), "x", ""))
	require.Empty(t, k.info(h.Run()).Declared)
}

// Rule: a run that waits for a signal that its flow does not declare is blocked, and says so.
func (suite) Scenario26WaitForUndeclaredSignal(t *testing.T, k *kit) {
	k.open(declares())
	h := startAndSettle(k, declares(), "1", "last")
	info := k.info(h.Run())
	require.Equal(t, workflow.Blocked, info.Status)
	require.Contains(t, info.Error, `wait "last"`)
	require.Contains(t, info.Error, "Receives")
	k.restart("2", declares(last))
	require.NoError(t, last.Send(t.Context(), k.e, h.Run(), "x", ""))
	returns(k, find(k, declares(last), "1"), "x")
}

// Rule: a bad signal is reported by the first use of the flow that declares it.
func (suite) ReceivesReportsABadSignal(t *testing.T, k *kit) {
	k.open(trip(k))
	_, err := declares(workflow.DefineSignal[int]("a/b")).Start(t.Context(), k.e, "1", "word")
	require.ErrorIs(t, err, pawl.ErrInvalid)
	var many []workflow.SignalDefinition
	for i := range workflow.MaxDeclared {
		many = append(many, workflow.DefineSignal[int](string(rune('a'+i%26))+time.Duration(i).String()))
	}
	_, err = declares(many...).Start(t.Context(), k.e, "1", "word")
	require.ErrorContains(t, err, "1001 are declared")
}
