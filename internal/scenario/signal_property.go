package scenario

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/internal/race"
	"github.com/gopawl/pawl/workflow"
)

var signalSeeds = flag.Int("signal.seeds", 25, "how many random selections of signals are tried")

// selects is a flow that receives signals in random ways, as its input says, until it has tried
// all of them: it races waits with each other, with sleeps, and with branches that collect
// several, and records each signal that the winner of a race returned in a step. At the end it
// reads the rest.
func selects() *workflow.Flow[[]int, []int] {
	get := func(s *workflow.Signal[int], d time.Duration) func(*workflow.Run) ([]int, error) {
		return func(r *workflow.Run) ([]int, error) {
			v, err := s.Wait(r, d)
			if errors.Is(err, workflow.ErrTimeout) {
				return nil, nil
			}
			return []int{v}, err
		}
	}
	nap := func(d time.Duration) func(*workflow.Run) ([]int, error) {
		return func(r *workflow.Run) ([]int, error) { return nil, workflow.Sleep(r, "nap", d) }
	}
	inTurn := func(parts ...func(*workflow.Run) ([]int, error)) func(*workflow.Run) ([]int, error) {
		return func(r *workflow.Run) (all []int, err error) {
			for _, part := range parts {
				some, err := part(r)
				if err != nil {
					return nil, err
				}
				all = append(all, some...)
			}
			return all, nil
		}
	}
	together := func(parts ...func(*workflow.Run) ([]int, error)) func(*workflow.Run) ([]int, error) {
		return func(r *workflow.Run) (all []int, err error) {
			var branches []*workflow.Branch[[]int]
			for _, part := range parts {
				branches = append(branches, workflow.Go(r, "part", part))
			}
			lists, err := workflow.All(r, branches...)
			for _, some := range lists {
				all = append(all, some...)
			}
			return all, err
		}
	}
	first := func(parts ...func(*workflow.Run) ([]int, error)) func(*workflow.Run) ([]int, error) {
		return func(r *workflow.Run) ([]int, error) {
			var branches []*workflow.Branch[[]int]
			for _, part := range parts {
				branches = append(branches, workflow.Go(r, "side", part))
			}
			_, some, err := workflow.Race(r, "first", branches...)
			return some, err
		}
	}
	a, b := number("a"), number("b")
	ways := []func(*workflow.Run) ([]int, error){
		get(a, time.Second),
		first(get(a, workflow.Forever), get(b, workflow.Forever)),
		first(get(a, workflow.Forever), nap(3*time.Millisecond)),
		first(get(b, workflow.Forever), nap(time.Second)),
		first(inTurn(get(a, workflow.Forever), get(b, workflow.Forever)), nap(time.Minute)),
		first(together(get(a, workflow.Forever), get(b, workflow.Forever)), nap(time.Minute)),
		first(inTurn(first(get(a, workflow.Forever), nap(time.Second)), get(a, time.Hour)), get(b, workflow.Forever)),
		first(together(inTurn(get(a, time.Second), nap(time.Millisecond)), get(b, workflow.Forever)), get(a, workflow.Forever), nap(time.Hour)),
	}
	return workflow.Define("selects", func(r *workflow.Run, plan []int) (kept []int, err error) {
		keep := func(some []int) error {
			for _, v := range some {
				if _, err := workflow.Step(r, "keep", func(context.Context) (int, error) { return v, nil }); err != nil {
					return err
				}
				kept = append(kept, v)
			}
			return nil
		}
		for _, way := range plan {
			some, err := ways[way%len(ways)](r)
			if err != nil {
				return nil, err
			}
			if err := keep(some); err != nil {
				return nil, err
			}
		}
		for more := true; more; {
			more = false
			for _, s := range []*workflow.Signal[int]{a, b} {
				some, err := get(s, 0)(r)
				if err != nil {
					return nil, err
				}
				kept, more = append(kept, some...), more || len(some) > 0
			}
		}
		return kept, nil
	}, workflow.Receives(a, b))
}

func number(name string) *workflow.Signal[int] { return workflow.DefineSignal[int](name) }

// Rule: each signal that Send accepts is received exactly once, by a branch that won or by the
// function itself, through waits, races, timeouts, crashes and restarts, until the run has
// ended. No signal that the function looks for at the end is left.
func (suite) Scenario26EachSignalOnce(t *testing.T) {
	for seed := range uint64(race.Fewer(*signalSeeds)) {
		sub(t, fmt.Sprint("seed ", seed), func(t *testing.T, k *kit) {
			random := rand.New(rand.NewPCG(seed, 26))
			k.maxCrashes = -1
			k.open(selects())
			h := start(k, selects(), "1", random.Perm(24))
			var sent []int
			for n := range 400 {
				switch random.IntN(12) {
				case 0:
					k.crash()
				case 1:
					k.restart(k.build)
				case 2, 3:
					k.pass([...]time.Duration{time.Millisecond, 3 * time.Millisecond, time.Second, time.Minute}[random.IntN(4)])
				case 4:
					k.settle()
				case 5, 6, 7, 8:
					err := number([]string{"a", "b"}[random.IntN(2)]).Send(t.Context(), k.e, h.Run(), n, "")
					if errors.Is(err, workflow.ErrNotRunning) {
						break
					}
					require.NoError(t, err)
					sent = append(sent, n)
				}
			}
			for n := 1000; !k.info(h.Run()).Status.Ended(); n++ {
				require.NotEqual(t, workflow.Blocked, k.info(h.Run()).Status, k.info(h.Run()).Error)
				require.Less(t, n, 3000, "%+v", k.info(h.Run()))
				for i, s := range []string{"a", "b"} {
					err := number(s).Send(t.Context(), k.e, h.Run(), 2*n+i, "")
					if !errors.Is(err, workflow.ErrNotRunning) {
						require.NoError(t, err)
						sent = append(sent, 2*n+i)
					}
				}
				k.pass(time.Minute)
			}
			require.NoError(t, k.e.Check(t.Context()))
			kept, err := outcome(k, find(k, selects(), "1"))
			require.NoError(t, err)
			require.ElementsMatch(t, sent, kept)
			require.Zero(t, k.info(h.Run()).Unread)
		})
	}
}
