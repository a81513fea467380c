package scenario

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/workflow"
)

// Rule: the order in which branches continue changes nothing: each call has the identity that
// its author wrote, its result is its own, and the journal of one order fits all others.
func (suite) Scenario33BranchesInAnyOrder(t *testing.T) {
	const branches, steps = 5, 4
	want := []string{"each eu begun"}
	for b := range branches {
		want = append(want, fmt.Sprintf("branch eu/%d begun", b))
		for s := range steps {
			want = append(want, fmt.Sprintf("step eu/%d/fetch%s done: %d", b, []string{"", "#2", "#3", "#4"}[s], 10*b+s))
		}
	}
	slices.Sort(want)
	place := func(b, s int) string { return fmt.Sprintf("step %d of branch %d", s, b) }
	for seed := range uint64(10) {
		bubble(t, func(t *testing.T, k *kit) {
			f := workflow.Define("order", func(r *workflow.Run, _ int) ([]int, error) {
				return workflow.Each(r, "eu", []int{0, 1, 2, 3, 4}, strconv.Itoa, branches, func(r *workflow.Run, b int) (sum int, err error) {
					for s := range steps {
						v, err := workflow.Step(r, "fetch", func(context.Context) (int, error) {
							k.at(place(b, s))
							return 10*b + s, nil
						})
						if err != nil {
							return 0, err
						}
						sum += v
					}
					return sum, nil
				})
			})
			k.open(f)
			var order []int // the branch whose step ends next
			gates := make(map[string]*gate)
			for b := range branches {
				for s := range steps {
					order = append(order, b)
					gates[place(b, s)] = k.gate(place(b, s))
				}
			}
			random := rand.New(rand.NewPCG(seed, 0))
			random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
			crashAt := random.IntN(len(order))

			h := start(k, f, "1", 0)
			next := make([]int, branches)
			for n, b := range order {
				if n == crashAt {
					k.crash() // steps that were at their gates run again, without
				}
				g := gates[place(b, next[b])]
				if n < crashAt {
					<-g.reached
				}
				close(g.open)
				next[b]++
				k.settle()
			}
			returns(k, find(k, f, "1"), []int{6, 46, 86, 126, 166})
			journal := k.journal(h.Run())
			slices.Sort(journal)
			require.Equal(t, want, journal)
		})
	}
}

// contest is a flow in which a and b race, and the winner gets a prize. It returns the winner
// and the result of b.
func contest(k *kit) *workflow.Flow[int, []string] {
	return workflow.Define("race", func(r *workflow.Run, _ int) ([]string, error) {
		var runners []*workflow.Branch[string]
		for _, name := range []string{"a", "b"} {
			runners = append(runners, workflow.Go(r, name, func(r *workflow.Run) (string, error) {
				v, err := workflow.Step(r, "run", func(context.Context) (string, error) {
					k.effect(r)
					k.at(name + " runs")
					return name, nil
				})
				k.at(name + " ends")
				return v, err
			}))
		}
		_, winner, err := workflow.Race(r, "first", runners...)
		if err != nil {
			return nil, err
		}
		if _, err := workflow.Step(r, "prize", func(context.Context) (string, error) {
			k.effect(r)
			k.at("prize")
			return "for " + winner, nil
		}); err != nil {
			return nil, err
		}
		loser, err := runners[1].Wait(r)
		if errors.Is(err, workflow.ErrAbandoned) {
			loser = "abandoned"
		} else if err != nil {
			return nil, err
		}
		return []string{winner, loser}, nil
	})
}

// Rule: the winner of a race is stored before anybody acts on it. A loser that ignores the
// interruption ends later, and after a crash would be first, but has still lost. A loser that
// did not end does not run again.
func (suite) Scenario34LoserEndsLater(t *testing.T) {
	for _, ends := range []bool{true, false} {
		t.Run(fmt.Sprintf("ends=%v", ends), func(t *testing.T) {
			story{
				first: func(k *kit) {
					k.open(contest(k))
					a, b, prize := k.gate("a runs"), k.gate("b runs"), k.gate("prize")
					start(k, contest(k), "1", 0)
					<-b.reached
					close(a.open)
					<-prize.reached
					if ends {
						close(b.open)
						k.settle()
					}
					_ = k.endLife()
				},
				then: func(k *kit) {
					a := k.gate("a ends")
					k.open(contest(k))
					h := find(k, contest(k), "1")
					<-a.reached
					k.settle()
					close(a.open)
					out, err := outcome(k, h)
					require.NoError(k.t, err)
					want := []string{"a", "abandoned"}
					if ends {
						want[1] = "b"
					}
					require.Equal(k.t, want, out)
					require.ElementsMatch(k.t, []string{"a/run", "b/run", "prize", "prize"}, k.effects())
					require.Contains(k.t, k.journal(h.Run()), "step prize done: for a")
				},
			}.run(t)
		})
	}
}

// Rule: the losers of a race are interrupted wherever they are: in a step, before its next
// attempt, in a sleep, a wait, a child, a nested branch, and also when they are about to wait.
// The run does not wait for what they wait for.
func (suite) Scenario34LosersAreAbandoned(t *testing.T) {
	child := workflow.Define("child", func(r *workflow.Run, _ int) (string, error) { return word.Wait(r, workflow.Forever) })
	fails := errors.New("not yet")
	for name, lose := range map[string]func(k *kit, r *workflow.Run) (string, error){
		"step": func(_ *kit, r *workflow.Run) (string, error) {
			return workflow.Step(r, "s", func(ctx context.Context) (string, error) {
				<-ctx.Done()
				return "", ctx.Err()
			})
		},
		"next attempt": func(_ *kit, r *workflow.Run) (string, error) {
			return workflow.Step(r, "s", func(context.Context) (string, error) { return "", pawl.RetryAfter(time.Hour, fails) })
		},
		"about to wait": func(k *kit, r *workflow.Run) (string, error) {
			return workflow.Step(r, "s", func(context.Context) (string, error) { return "", fails }, workflow.Backoff(hourAt{k, "about to wait"}))
		},
		"sleep": func(_ *kit, r *workflow.Run) (string, error) { return "", workflow.Sleep(r, "s", time.Hour) },
		"wait":  func(_ *kit, r *workflow.Run) (string, error) { return word.Wait(r, workflow.Forever) },
		"child": func(_ *kit, r *workflow.Run) (string, error) { return workflow.Call(r, "c", child, 0) },
		"branch": func(_ *kit, r *workflow.Run) (string, error) {
			return workflow.Go(r, "b", func(r *workflow.Run) (string, error) { return word.Wait(r, workflow.Forever) }).Wait(r)
		},
	} {
		for _, crash := range []bool{false, true} {
			sub(t, fmt.Sprintf("%s/crash=%v", name, crash), func(t *testing.T, k *kit) {
				f := workflow.Define("race", func(r *workflow.Run, _ int) (string, error) {
					loser := workflow.Go(r, "loser", func(r *workflow.Run) (string, error) { return lose(k, r) })
					winner := workflow.Go(r, "winner", func(r *workflow.Run) (string, error) { return last.Wait(r, workflow.Forever) })
					_, v, err := workflow.Race(r, "first", winner, loser)
					k.at("won")
					if err != nil {
						return "", err
					}
					if crash {
						if err := workflow.Sleep(r, "long", time.Minute); err != nil {
							return "", err
						}
					}
					if _, err := loser.Wait(r); !errors.Is(err, workflow.ErrAbandoned) {
						return "", fmt.Errorf("the loser: %w", err)
					}
					return v, nil
				})
				about := k.gate("about to wait")
				won := k.gate("won")
				k.open(f, child)
				h := startAndSettle(k, f, "1", 0)
				require.NoError(t, last.Send(t.Context(), k.e, h.Run(), "me", ""))
				<-won.reached
				close(won.open)
				k.settle()
				close(about.open)
				if crash {
					k.crash()
					k.pass(time.Minute)
				} else {
					k.settle()
				}
				require.Equal(t, workflow.Done, k.info(h.Run()).Status)
				returns(k, find(k, f, "1"), "me")
				if name == "child" {
					k.settle()
					h := find(k, child, "1/loser/c")
					require.Equal(t, workflow.Cancelled, k.info(h.Run()).Status, "it goes with its parent")
				}
			})
		}
	}
}

// Rule: a loser's transaction that has not begun does not begin, and the run continues.
func (suite) Scenario34LoserBeforeItsTransaction(t *testing.T) {
	if under.Beside {
		t.Skip("the transaction does not wait for the queue, so it is before the end of the race")
	}
	bubble(t, func(t *testing.T, k *kit) {
		f := workflow.Define("race", func(r *workflow.Run, _ int) (string, error) {
			loser := workflow.Go(r, "loser", func(r *workflow.Run) (string, error) {
				k.at("loser")
				return workflow.StepTx(r, "s", func(Tx) (string, error) {
					k.effect(r)
					return "", nil
				})
			})
			winner := workflow.Go(r, "winner", func(*workflow.Run) (string, error) {
				k.at("winner")
				return "me", nil
			})
			_, v, err := workflow.Race(r, "first", winner, loser)
			if err != nil {
				return "", err
			}
			if _, err := loser.Wait(r); !errors.Is(err, workflow.ErrAbandoned) {
				return "", fmt.Errorf("the loser: %w", err)
			}
			return v, nil
		})
		loser, winner := k.gate("loser"), k.gate("winner")
		k.open(f)
		h := start(k, f, "1", 0)
		<-loser.reached
		<-winner.reached
		g := k.hold()
		close(loser.open)
		k.settle() // it waits for the queue
		close(winner.open)
		k.settle()
		g.commit()
		require.Equal(t, workflow.Done, k.info(h.Run()).Status)
		require.Empty(t, k.effects())
	})
}

// hourAt is a policy of an hour that first passes a gate.
type hourAt struct {
	k    *kit
	gate string
}

// Delay implements pawl.Policy.
func (p hourAt) Delay(pawl.Retry) (time.Duration, bool) {
	p.k.at(p.gate)
	return time.Hour, true
}

// Rule: All waits for every branch even if one has failed, without holding anything while
// another is suspended, and returns the available results with the errors of all failed
// branches.
func (suite) Scenario35AllWithFailedAndSuspended(t *testing.T, k *kit) {
	full, empty := errors.New("full"), errors.New("empty")
	f := workflow.Define("all", func(r *workflow.Run, _ int) (string, error) {
		step := func(name string, failure error) *workflow.Branch[string] {
			return workflow.Go(r, name, func(r *workflow.Run) (string, error) {
				return workflow.Step(r, "s", func(context.Context) (string, error) {
					k.effect(r)
					return name, failure
				}, workflow.MaxRetries(0))
			})
		}
		received := workflow.Go(r, "heard", func(r *workflow.Run) (string, error) { return word.Wait(r, workflow.Forever) })
		out, err := workflow.All(r, step("a", nil), step("b", full), received, step("c", empty))
		if errors.Is(err, workflow.ErrSuspended) {
			return "", err
		}
		if !errors.Is(err, full) || !errors.Is(err, empty) {
			return "", fmt.Errorf("wrong: %w", err)
		}
		return fmt.Sprintf("%q and %v", out, err), nil
	})
	k.open(f)
	h := startAndSettle(k, f, "1", 0)
	require.Equal(t, workflow.Waiting, k.info(h.Run()).Status)
	require.Equal(t, pawl.Counts{Delayed: 1}, k.jobs())
	k.crash()
	say(k, h.Run(), "hello", "")
	returns(k, find(k, f, "1"), `["a" "" "hello" ""] and branch "b": step "b/s": full`+"\n"+`branch "c": step "c/s": empty`)
	require.ElementsMatch(t, []string{"a/s", "b/s", "c/s"}, k.effects())
}
