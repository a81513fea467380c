package scenario

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/workflow"
)

// Rule: a suspension in progress leaves a ready run or a delayed one, and never a run that
// nobody executes. The run does not wake before its time.
func (suite) Scenario07SuspendCommit(t *testing.T) {
	eachDeath(t, func(at death) story {
		return story{first: tripStopsIn("night", at), then: func(k *kit) {
			k.slots = -1
			k.open(trip(k))
			run := find(k, trip(k), "1").Run()
			job, err := k.q.Job(k.t.Context(), run)
			require.NoError(k.t, err)
			if at == before {
				require.Equal(k.t, workflow.Running, k.info(run).Status)
				require.Equal(k.t, pawl.Ready, job.State)
			} else {
				require.Equal(k.t, workflow.Sleeping, k.info(run).Status)
				require.Equal(k.t, pawl.Delayed, job.State)
				require.True(k.t, job.NotBefore.Equal(k.info(run).Due))
			}
			k.close()
			k.slots = 1
			require.Equal(k.t, []string{"a", "b", "c"}, tripEnds(k))
			entries := k.entries(run)
			require.Equal(k.t, "night", entries[2].Step())
			require.Equal(k.t, time.Hour, entries[3].Started.Sub(entries[2].Started))
		}}
	})
}

// Rule: a signal in the commit that suspends the run, before or after the suspension, wakes the
// run, even if that commit fails and each call is retried.
func (suite) Scenario07SignalInTheSuspendCommit(t *testing.T) {
	signal := workflow.DefineSignal[int]("go")
	for _, first := range []string{"signal", "suspension"} {
		for _, end := range []string{"commit", "undone"} {
			sub(t, first+" first, "+end, func(t *testing.T, k *kit) {
				f := workflow.Define("waits", func(r *workflow.Run, _ int) (int, error) {
					k.at("top")
					return signal.Wait(r, workflow.Forever)
				})
				g := k.gate("top")
				k.open(f)
				h := start(k, f, "1", 0)
				<-g.reached
				commit := k.hold()
				suspend := func() { close(g.open); k.settle() }
				send := func() {
					go func() { _ = signal.Send(context.Background(), k.e, h.Run(), 7, "") }()
					k.settle()
				}
				if first == "signal" {
					send()
					suspend()
				} else {
					suspend()
					send()
				}
				if end == "undone" {
					commit.undone()
				} else {
					commit.commit()
				}
				k.settle()
				require.Equal(t, workflow.Done, k.info(h.Run()).Status, "without that time passes")
				returns(k, h, 7)
			})
		}
	}
}

// Rule: a run that dies when it was woken, before its first call, continues after its wait:
// nothing earlier runs again, and it does not wait again.
func (suite) Scenario08WokenBeforeFirstCall(t *testing.T) {
	first := func(k *kit) {
		k.warm = cold // or there is only one call
		tripStops("call 2")(k)
	}
	story{first: first, then: func(k *kit) {
		began := k.now()
		require.Equal(k.t, []string{"a", "b", "c"}, tripEnds(k))
		require.Less(k.t, k.now().Sub(began), time.Hour)
		require.Equal(k.t, 1, k.calls("trip"))
	}}.run(t)
}

// booking is a flow with two steps that are undone when it is cancelled, which it waits for.
func booking(k *kit) *workflow.Flow[int, int] {
	return workflow.Define("booking", func(r *workflow.Run, _ int) (int, error) {
		for _, name := range []string{"room", "car"} {
			_, err := act(k, r, name, 1)
			if err != nil {
				return 0, err
			}
			r.Undo("no "+name, func(context.Context) error {
				k.at("in no " + name)
				k.effect(r)
				k.at("end of no " + name)
				return nil
			})
		}
		return 0, workflow.Sleep(r, "stay", 1000*time.Hour)
	})
}

// Rule: a run that dies while it is being cancelled is cancelled in the next life. An undo step
// does not run again, unless its end was not stored, and then it runs under its key.
func (suite) Scenario09CancelBetweenUndoSteps(t *testing.T) {
	reach := func(k *kit, at string) *gate {
		f, g := booking(k), k.gate(at)
		k.open(f)
		h := startAndSettle(k, f, "1", 0)
		require.Equal(k.t, workflow.Sleeping, k.info(h.Run()).Status)
		require.NoError(k.t, h.Cancel(k.t.Context(), "changed my mind"))
		<-g.reached
		return g
	}
	ends := func(k *kit, effects ...string) {
		f := booking(k)
		k.open(f)
		h := find(k, f, "1")
		_, err := outcome(k, h)
		require.ErrorIs(k.t, err, workflow.ErrCancelled)
		require.ErrorContains(k.t, err, "changed my mind")
		require.Equal(k.t, workflow.Cancelled, k.info(h.Run()).Status)
		require.Equal(k.t, append([]string{"room", "car"}, effects...), k.effects())
		require.Len(k.t, slices.Compact(k.keys()), 4, "each has one key")
	}
	for _, c := range []struct {
		gate    string
		effects []string
	}{
		{"in no car", []string{"_undo/no car", "_undo/no room"}},
		{"end of no car", []string{"_undo/no car", "_undo/no car", "_undo/no room"}},
		{"in no room", []string{"_undo/no car", "_undo/no room"}},
	} {
		t.Run(c.gate, func(t *testing.T) {
			story{
				first: func(k *kit) { reach(k, c.gate); _ = k.endLife() },
				then:  func(k *kit) { ends(k, c.effects...) },
			}.run(t)
		})
	}
	eachDeath(t, func(at death) story {
		return story{
			first: func(k *kit) {
				g := reach(k, "end of no car")
				commit := k.hold()
				close(g.open)
				commit.endLife(at)
			},
			then: func(k *kit) {
				if at == before {
					ends(k, "_undo/no car", "_undo/no car", "_undo/no room")
				} else {
					ends(k, "_undo/no car", "_undo/no room")
				}
			},
		}
	})
}

// fan is a flow that starts three children and waits for all of them.
type fan struct {
	parent *workflow.Flow[int, int]
	child  *workflow.Flow[int, int]
}

func newFan(k *kit) (f fan) {
	f.child = workflow.Define("leg", func(r *workflow.Run, n int) (int, error) {
		v, err := act(k, r, "walk", 10*n)
		k.at(fmt.Sprintf("end of leg %d", n))
		return v, err
	})
	f.parent = workflow.Define("walk", func(r *workflow.Run, _ int) (int, error) {
		k.called("parent")
		all, err := workflow.Each(r, "leg", []int{1, 2, 3}, strconv.Itoa, 3, func(r *workflow.Run, n int) (int, error) {
			return workflow.Call(r, "leg", f.child, n)
		})
		if err != nil {
			return 0, err
		}
		return act(k, r, "sum", all[0]+all[1]+all[2])
	})
	return f
}

// legsEnd ends the children in one commit.
func (f fan) legsEnd(k *kit) (h *workflow.Handle[int], commit *group) {
	k.t.Helper()
	var gates []*gate
	for n := range 3 {
		gates = append(gates, k.gate(fmt.Sprintf("end of leg %d", n+1)))
	}
	k.warm = cold // so that calls of the parent are wakes
	k.open(f.parent, f.child)
	h = start(k, f.parent, "1", 0)
	for _, g := range gates {
		<-g.reached
	}
	k.linger()
	require.Equal(k.t, workflow.Waiting, k.info(h.Run()).Status)
	require.Equal(k.t, 1, k.calls("parent"))
	commit = k.hold()
	for _, g := range gates {
		close(g.open)
	}
	return h, commit
}

// Rule: a parent whose children end in one commit is woken exactly once.
func (suite) Scenario10FanInWakesOnce(t *testing.T, k *kit) {
	f := newFan(k)
	h, commit := f.legsEnd(k)
	commit.commit()
	returns(k, h, 60)
	require.Equal(t, 2, k.calls("parent"))
	require.Equal(t, []string{"walk", "walk", "walk", "sum"}, k.effects())
}

// Rule: if the commit in which children end fails, so that each ends alone, the parent
// continues when the last one has ended, and once.
func (suite) Scenario10FanInUndone(t *testing.T, k *kit) {
	h, commit := newFan(k).legsEnd(k)
	commit.undone()
	returns(k, h, 60)
	require.Equal(t, []string{"walk", "walk", "walk", "sum"}, k.effects())
}

// Rule: children that end while the process dies end in the next life, and their parent
// continues once.
func (suite) Scenario10FanInCrashes(t *testing.T) {
	eachDeath(t, func(at death) story {
		return story{
			first: func(k *kit) {
				_, commit := newFan(k).legsEnd(k)
				commit.endLife(at)
			},
			then: func(k *kit) {
				f := newFan(k)
				k.open(f.parent, f.child)
				h := find(k, f.parent, "1")
				returns(k, h, 60)
				require.Equal(k.t, []string{"walk", "walk", "walk", "sum"}, k.effects())
				if at == after {
					require.Equal(k.t, 1, k.calls("parent"))
				}
			},
		}
	})
}

// Rule: a step's writes in its transaction and its checkpoint are atomic.
func (suite) Scenario11StepTxIsWhole(t *testing.T) {
	ledger := func(k *kit, endLife func(tx Tx) error) *workflow.Flow[int, uint64] {
		return workflow.Define("book", func(r *workflow.Run, _ int) (uint64, error) {
			n, err := workflow.StepTx(r, "ledger", func(tx Tx) (uint64, error) {
				k.effect(r)
				n, err := tx.Count("ledger")
				if err == nil && endLife != nil {
					err = endLife(tx)
				}
				return n, err
			})
			if err != nil {
				return 0, err
			}
			k.at("written")
			return n, nil
		})
	}
	for _, c := range []struct {
		name    string
		endLife func(k *kit) func(Tx) error
		tries   int
	}{
		{"inside", func(k *kit) func(Tx) error {
			return func(Tx) error { return k.endLife() }
		}, 2},
		{"when it is in the file", func(k *kit) func(Tx) error {
			return func(tx Tx) error { tx.OnCommit(k.end); return nil }
		}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			story{
				first: func(k *kit) {
					f := ledger(k, c.endLife(k))
					k.open(f)
					start(k, f, "1", 0)
					k.awaitDeath()
				},
				then: func(k *kit) {
					f := ledger(k, nil)
					k.open(f)
					returns(k, find(k, f, "1"), uint64(1))
					k.sameKeys("ledger", c.tries)
					k.counted("ledger", 1)
				},
			}.run(t)
		})
	}
}
