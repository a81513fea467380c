package scenario

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/workflow"
)

// trip is a flow of steps a, b and c, with a night between b and c. It has gates at each of its
// calls, and inside and at the end of each step.
func trip(k *kit) *workflow.Flow[int, int] {
	return workflow.Define("trip", func(r *workflow.Run, n int) (int, error) {
		k.at(fmt.Sprintf("call %d", k.called("trip")))
		for _, name := range []string{"a", "b", "c"} {
			if name == "c" {
				k.at("night")
				if err := workflow.Sleep(r, "night", time.Hour); err != nil {
					return 0, err
				}
			}
			v, err := workflow.Step(r, name, func(context.Context) (int, error) {
				k.at("in " + name)
				k.effect(r)
				k.at("end of " + name)
				return 1, nil
			})
			if err != nil {
				return 0, err
			}
			n += v
		}
		k.at("end")
		return n, nil
	})
}

// tripEnds opens the file, brings the trip with ID 1 to its end, and returns its effects in all
// lives.
func tripEnds(k *kit) []string {
	k.t.Helper()
	f := trip(k)
	k.open(f)
	returns(k, find(k, f, "1"), 13)
	return k.effects()
}

// tripStops brings a trip to a gate, and dies while it is there.
func tripStops(gate string) func(*kit) {
	return func(k *kit) {
		f, g := trip(k), k.gate(gate)
		k.open(f)
		start(k, f, "1", 10)
		<-g.reached
		_ = k.endLife()
	}
}

// tripStopsIn dies in the commit of what a trip does after a gate.
func tripStopsIn(gate string, at death) func(*kit) {
	return func(k *kit) {
		f, g := trip(k), k.gate(gate)
		k.open(f)
		start(k, f, "1", 10)
		<-g.reached
		k.linger()
		commit := k.hold()
		close(g.open)
		commit.endLife(at)
	}
}

// Rule: a start that was not durable leaves nothing, and can be repeated. A start that is
// durable but was not reported exists, and starting again finds it.
func (suite) Scenario01StartLostBeforeCommit(t *testing.T) {
	eachDeath(t, func(at death) story {
		return story{
			first: func(k *kit) {
				f := trip(k)
				k.open(f)
				g := k.hold()
				go func() { _, _ = f.Start(context.Background(), k.e, "1", 10) }()
				g.endLife(at)
			},
			then: func(k *kit) {
				f := trip(k)
				k.slots = -1
				k.open(f)
				known, err := k.e.Find(k.t.Context(), "trip", "1")
				if at == before {
					require.ErrorIs(k.t, err, workflow.ErrNotFound)
					list, err := k.e.List(k.t.Context(), workflow.Filter{}, "", 10)
					require.NoError(k.t, err)
					require.Empty(k.t, list.Runs)
					start(k, f, "1", 10)
				} else {
					require.NoError(k.t, err)
					require.Equal(k.t, known, start(k, f, "1", 10).Run())
				}
				k.close()
				k.slots = 1
				require.Equal(k.t, []string{"a", "b", "c"}, tripEnds(k))
			},
		}
	})
}

// Rule: a start in an app's transaction is lost with the transaction.
func (suite) Scenario01StartTxLostBeforeCommit(t *testing.T) {
	story{
		first: func(k *kit) {
			f := trip(k)
			k.open(f)
			_ = k.q.Update(k.t.Context(), func(tx Tx) error {
				_, err := workflow.StartTx(tx, k.e, f, "1", 10)
				require.NoError(k.t, err)
				return k.endLife()
			})
		},
		then: func(k *kit) {
			k.open(trip(k))
			_, err := k.e.Find(k.t.Context(), "trip", "1")
			require.ErrorIs(k.t, err, workflow.ErrNotFound)
		},
	}.run(t)
}

// Rule: a run that was started and that no worker has had yet runs once, in the next process.
func (suite) Scenario02StartedNotClaimed(t *testing.T) {
	story{
		first: func(k *kit) {
			f := trip(k)
			k.slots = -1 // nobody works
			k.open(f)
			start(k, f, "1", 10)
			_ = k.endLife()
		},
		then: func(k *kit) {
			k.warm = cold
			require.Equal(k.t, []string{"a", "b", "c"}, tripEnds(k))
			require.Equal(k.t, 2, k.calls("trip"), "once until the night, once behind it")
		},
	}.run(t)
}

// Rule: a run that a worker had, and whose function had made no call, runs once.
func (suite) Scenario02ClaimedNotCalled(t *testing.T) {
	story{first: tripStops("call 1"), then: func(k *kit) {
		require.Equal(k.t, []string{"a", "b", "c"}, tripEnds(k))
	}}.run(t)
}

// Rule: after a death within a step that step runs again, and earlier steps do not.
func (suite) Scenario03MidStep(t *testing.T) {
	story{first: tripStops("in b"), then: func(k *kit) {
		require.Equal(k.t, []string{"a", "b", "c"}, tripEnds(k))
	}}.run(t)
}

// Rule: a step that took effect, and whose end was not stored, runs again under the same key,
// even if it dies twice.
func (suite) Scenario04EffectBeforeCheckpoint(t *testing.T) {
	story{first: tripStops("end of b"), then: func(k *kit) {
		f, g := trip(k), k.gate("end of b")
		k.open(f)
		<-g.reached
		k.crash(f)
		k.close()
		require.Equal(k.t, []string{"a", "b", "b", "b", "c"}, tripEnds(k))
		k.sameKeys("b", 3)
	}}.run(t)
}

// Rule: a step that runs at most once, and whose end is unknown, fails and does not run again.
// A step that had not begun runs.
func (suite) Scenario04AtMostOnce(t *testing.T) {
	pay := func(k *kit) *workflow.Flow[int, string] {
		return workflow.Define("pay", func(r *workflow.Run, _ int) (string, error) {
			k.at("top")
			_, err := workflow.Step(r, "pay", func(context.Context) (int, error) {
				k.effect(r)
				k.at("paid")
				return 1, nil
			}, workflow.AtMostOnce())
			switch {
			case err == nil:
				return "paid", nil
			case pawl.IsPermanent(err):
				return "", err
			}
			return workflow.Step(r, "ask", func(context.Context) (string, error) { return err.Error(), nil })
		})
	}
	for _, c := range []struct{ gate, out string }{
		{"top", "paid"},
		{"paid", `step "pay": the step was interrupted, and runs at most once`},
	} {
		t.Run(c.gate, func(t *testing.T) {
			story{
				first: func(k *kit) {
					f, g := pay(k), k.gate(c.gate)
					k.open(f)
					start(k, f, "1", 0)
					<-g.reached
					_ = k.endLife()
				},
				then: func(k *kit) {
					f := pay(k)
					k.open(f)
					returns(k, find(k, f, "1"), c.out)
					k.sameKeys("pay", 1)
				},
			}.run(t)
		})
	}
}

// Rule: a step's checkpoint in progress is in the file entirely or not at all: the step runs
// again under its key, or never.
func (suite) Scenario05CheckpointInFlight(t *testing.T) {
	eachDeath(t, func(at death) story {
		return story{first: tripStopsIn("end of b", at), then: func(k *kit) {
			k.slots = -1
			k.open(trip(k))
			journal := k.journal(find(k, trip(k), "1").Run())
			k.close()
			k.slots = 1
			if at == before {
				require.Equal(k.t, []string{"step a done: 1"}, journal)
				require.Equal(k.t, []string{"a", "b", "b", "c"}, tripEnds(k))
				k.sameKeys("b", 2)
			} else {
				require.Equal(k.t, []string{"step a done: 1", "step b done: 1", "sleep night pending"}, journal)
				require.Equal(k.t, []string{"a", "b", "c"}, tripEnds(k))
			}
		}}
	})
}

// Rule: a commit that fails because of a neighbor costs a run nothing: the next commit writes
// its entries, and none of them twice.
func (suite) Scenario05CommitUndone(t *testing.T) {
	for _, gate := range []string{"end of a", "night", "end of c", "end"} {
		sub(t, gate, func(t *testing.T, k *kit) {
			k.warm = cold
			f, g := trip(k), k.gate(gate)
			k.open(f)
			h := start(k, f, "1", 10)
			<-g.reached
			commit := k.hold()
			close(g.open)
			commit.undone()
			returns(k, h, 13)
			require.Equal(t, []string{"a", "b", "c"}, k.effects())
			require.Equal(t, []string{"step a done: 1", "step b done: 1", "sleep night done", "step c done: 1"}, k.journal(h.Run()))
			require.Equal(t, 2, k.calls("trip"))
		})
	}
}

// report is the result of a run of printed.
type report struct {
	At    time.Time
	Lines []string
	Sum   float64
}

// printed is a flow whose result has some form.
func printed(k *kit) *workflow.Flow[string, report] {
	return workflow.Define("printed", func(r *workflow.Run, title string) (out report, err error) {
		k.called("printed")
		out.At, err = workflow.Step(r, "date", func(context.Context) (time.Time, error) {
			k.effect(r)
			return time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.FixedZone("", 3600)), nil
		})
		if err != nil {
			return out, err
		}
		out.Sum, err = workflow.Step(r, "sum", func(context.Context) (float64, error) {
			k.effect(r)
			return 0.1, nil
		})
		out.Lines = []string{title, out.At.String()}
		k.at("end")
		return out, err
	})
}

// Rule: a death between the last step and the end of a run does not change the run's result. A
// last step that the file does not have yet runs again, under its key, and no other step does.
func (suite) Scenario06LastStepBeforeCompletion(t *testing.T) {
	compare := func(k *kit, calls int, effects ...string) {
		f := printed(k)
		k.open(f)
		h := find(k, f, "1")
		succeeds(k, h)
		require.Equal(k.t, calls, k.calls("printed"))
		got, err := k.e.Output(k.t.Context(), h.Run())
		require.NoError(k.t, err)
		require.Equal(k.t, effects, k.effects())
		k.sameKeys("sum", len(effects)-1)

		other := start(k, f, "2", "title") // undisturbed
		succeeds(k, other)
		want, err := k.e.Output(k.t.Context(), other.Run())
		require.NoError(k.t, err)
		require.NotEmpty(k.t, want)
		require.Equal(k.t, want, got)
	}
	reach := func(k *kit) *gate {
		f, g := printed(k), k.gate("end")
		k.open(f)
		start(k, f, "1", "title")
		<-g.reached
		return g
	}
	t.Run("at once", func(t *testing.T) {
		story{
			first: func(k *kit) { reach(k); _ = k.endLife() },
			then:  func(k *kit) { compare(k, 1, "date", "sum", "sum") },
		}.run(t)
	})
	t.Run("a moment later", func(t *testing.T) {
		story{
			first: func(k *kit) { reach(k); k.linger(); _ = k.endLife() },
			then:  func(k *kit) { compare(k, 1, "date", "sum") },
		}.run(t)
	})
	eachDeath(t, func(at death) story {
		return story{
			first: func(k *kit) {
				g := reach(k)
				commit := k.hold()
				close(g.open)
				commit.endLife(at)
			},
			then: func(k *kit) {
				if at == before {
					compare(k, 1, "date", "sum", "sum")
				} else {
					compare(k, 0, "date", "sum") // it has ended
				}
			},
		}
	})
}
