package scenario

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/workflow"
)

// draws is a flow that decides a token and a time, publishes both, and names a step after them.
func draws(k *kit) *workflow.Flow[int, string] {
	return workflow.Define("draws", func(r *workflow.Run, _ int) (string, error) {
		token, err := workflow.Decide(r, "token", func() string { return fmt.Sprint(rand.Uint32()) })
		if err != nil {
			return "", err
		}
		now, err := workflow.Now(r, "now")
		if err != nil {
			return "", err
		}
		token += now.Format(" 15:04:05.000000 ") + now.Location().String()
		k.at("decided")
		if err := workflow.Publish(r, "token", token); err != nil {
			return "", err
		}
		k.at("published")
		if err := workflow.Sleep(r, "nap", time.Hour); err != nil {
			return "", err
		}
		second, err := workflow.Decide(r, "second", rand.Uint32)
		if err != nil {
			return "", err
		}
		token += fmt.Sprint(" ", second)
		return workflow.Step(r, "tell "+token, func(context.Context) (string, error) {
			k.effect(r)
			k.at("told")
			return token, nil
		})
	})
}

// Rule: whatever was seen outside of a decided value stays true after a crash: what a step did with
// it, and what was published. The time is that of the queue, in UTC.
func (suite) DecidedBeforeItIsSeen(t *testing.T) {
	for _, gate := range []string{"decided", "published", "told"} {
		t.Run(gate, func(t *testing.T) {
			story{
				first: func(k *kit) {
					f, g := draws(k), k.gate(gate)
					k.open(f)
					start(k, f, "1", 0)
					<-g.reached
					_ = k.endLife()
				},
				then: func(k *kit) {
					f := draws(k)
					k.open(f)
					k.settle()
					h := find(k, f, "1")
					seen := published(k, h.Run())["token"]
					if gate != "told" {
						require.NoError(k.t, k.e.Verify(k.t.Context(), h.Run()))
					}
					out, err := outcome(k, h)
					require.NoError(k.t, err)
					require.Contains(k.t, out, " UTC ")
					require.True(k.t, strings.HasPrefix(out, seen+" "), out)
					require.Equal(k.t, []string{"tell " + out}, slices.Compact(k.effects()))
					require.NoError(k.t, k.e.Replay(k.t.Context(), h.Run()))
				},
			}.run(t)
		})
	}
}

// Rule: decided values need no commit: the next write for the run carries them. Before a step they
// need one together.
func (suite) DecideNeedsNoCommit(t *testing.T, k *kit) {
	flow := func(name string, values int, step bool) *workflow.Flow[int, int] {
		return workflow.Define(name, func(r *workflow.Run, n int) (int, error) {
			for i := range values {
				v, err := workflow.Decide(r, "value", func() int { k.called(name); return i })
				if n += v; err != nil {
					return 0, err
				}
			}
			if step {
				if _, err := act(k, r, "tell", n); err != nil {
					return 0, err
				}
			}
			return n, workflow.Sleep(r, "nap", time.Hour)
		})
	}
	none, some := flow("none", 0, false), flow("some", 5, false)
	noneAndStep, someAndStep := flow("none and step", 0, true), flow("some and step", 5, true)
	k.open(none, some, noneAndStep, someAndStep)
	k.settle()
	cost := func(f *workflow.Flow[int, int]) int {
		before := commits(k)
		startAndSettle(k, f, "1", 0)
		return commits(k) - before
	}
	require.LessOrEqual(t, cost(some), cost(none))
	require.LessOrEqual(t, cost(someAndStep), cost(noneAndStep)+1)
	k.crash()
	returns(k, find(k, some, "1"), 10)
	returns(k, find(k, someAndStep, "1"), 10)
	require.Zero(t, k.calls("some")+k.calls("some and step"), "they were in the file")
}

// Rule: a value that cannot be stored is an error that stays the same. A signal that comes before the
// end of a run takes it back over decided values, since nobody saw them.
func (suite) DecideAtTheEnd(t *testing.T, k *kit) {
	f := workflow.Define("large", func(r *workflow.Run, _ int) (string, error) {
		_, err := workflow.Decide(r, "large", func() []byte { k.called("large"); return make([]byte, workflow.MaxValue+1) })
		if err := workflow.Sleep(r, "nap", time.Hour); err != nil {
			return "", err
		}
		require.ErrorIs(t, err, workflow.ErrTooLarge)
		got, err := word.Wait(r, 0)
		if _, err := workflow.Now(r, "now"); err != nil {
			return "", err
		}
		k.at("end")
		if err != nil {
			return "nothing", nil
		}
		return got, nil
	})
	g := k.gate("end")
	k.open(f)
	h := start(k, f, "1", 0)
	k.pass(time.Hour)
	<-g.reached
	say(k, h.Run(), "hello", "")
	close(g.open)
	returns(k, h, "hello")
	require.Equal(t, 1, k.calls("large"))
	require.Zero(t, k.info(h.Run()).Unread)
}
