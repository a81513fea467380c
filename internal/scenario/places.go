package scenario

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/workflow"
)

// desk is a flow that acts, and then waits until a word comes.
func desk(k *kit, opts ...workflow.Option) *workflow.Flow[int, string] {
	return workflow.Define("desk", func(r *workflow.Run, n int) (string, error) {
		if _, err := act(k, r, fmt.Sprintf("serve %d", n), n); err != nil {
			return "", err
		}
		return word.Wait(r, workflow.Forever)
	}, opts...)
}

// queueUp starts runs of a desk, one after another, with keys; "" for none.
func queueUp(k *kit, f *workflow.Flow[int, string], keys ...string) (runs []*workflow.Handle[string]) {
	k.t.Helper()
	for i, key := range keys {
		var opts []workflow.StartOption
		if key != "" {
			opts = append(opts, workflow.Key(key))
		}
		h, err := f.Start(k.t.Context(), k.e, fmt.Sprint(i), i, opts...)
		require.NoError(k.t, err)
		runs = append(runs, h)
		k.settle()
	}
	return runs
}

// served requires which runs have begun, in order, and that the rows of workflows agree with one another.
func served(k *kit, want ...int) {
	k.t.Helper()
	k.settle()
	var steps []string
	for _, n := range want {
		steps = append(steps, fmt.Sprintf("serve %d", n))
	}
	require.Equal(k.t, steps, k.effects())
	require.NoError(k.t, k.e.Check(k.t.Context()))
}

// bye ends runs of a desk.
func bye[Out any](k *kit, runs ...*workflow.Handle[Out]) {
	k.t.Helper()
	for _, h := range runs {
		say(k, h.Run(), "bye", "")
		k.settle()
	}
}

// Rule: of a flow with a limit, so many runs are open at a time, also while they wait and over a crash. The others
// begin in the order of their starts, each when one ends.
func (suite) OpenRunsAreLimited(t *testing.T, k *kit) {
	f := desk(k, workflow.MaxOpen(2))
	k.open(f)
	runs := queueUp(k, f, "", "", "", "", "", "")
	served(k, 0, 1)
	info := k.info(runs[3].Run())
	require.Equal(t, workflow.Waiting, info.Status)
	require.Equal(t, "flow desk", info.Place)
	require.ElementsMatch(t, []pawl.ID{runs[0].Run(), runs[1].Run()}, info.Holders)
	require.Empty(t, k.info(runs[0].Run()).Place)
	list, err := k.e.List(t.Context(), workflow.Filter{Status: workflow.Waiting}, "", 10)
	require.NoError(t, err)
	require.Len(t, list.Runs, 6, "two wait for a signal")
	require.Equal(t, "flow desk", list.Runs[5].Place)

	k.pass(20 * time.Hour)
	served(k, 0, 1)
	bye(k, runs[1])
	served(k, 0, 1, 2)
	k.crash()
	served(k, 0, 1, 2)
	bye(k, find(k, f, "0"), find(k, f, "2"))
	served(k, 0, 1, 2, 3, 4)
	require.NoError(t, k.e.Terminate(t.Context(), runs[3].Run(), ""))
	served(k, 0, 1, 2, 3, 4, 5)
	bye(k, find(k, f, "4"), find(k, f, "5"))
	served(k, 0, 1, 2, 3, 4, 5)
	require.Zero(t, k.rowsIn("places"), "nothing is left")
}

// Rule: with a limit of one for each key, a run keeps its key until it ends, also while it sleeps. Other keys, and runs
// without a key, do not wait for it.
func (suite) KeyIsKeptWhileItSleeps(t *testing.T, k *kit) {
	f := workflow.Define("sleeper", func(r *workflow.Run, n int) (int, error) {
		if _, err := act(k, r, fmt.Sprintf("serve %d", n), n); err != nil {
			return 0, err
		}
		return n, workflow.Sleep(r, "night", time.Hour)
	}, workflow.MaxOpenPerKey(1))
	k.open(f)
	for i, key := range []string{"a", "a", "b", "a"} {
		_, err := f.Start(t.Context(), k.e, fmt.Sprint(i), i, workflow.Key(key))
		require.NoError(t, err)
		k.settle()
	}
	for i := 4; i < 6; i++ {
		startAndSettle(k, f, fmt.Sprint(i), i)
	}
	served(k, 0, 2, 4, 5)
	waiting := k.info(find(k, f, "3").Run())
	require.Equal(t, "a", waiting.Key)
	require.Equal(t, "key a", waiting.Place)
	require.Equal(t, []pawl.ID{find(k, f, "0").Run()}, waiting.Holders)
	k.pass(time.Hour - 1)
	served(k, 0, 2, 4, 5)
	k.pass(1)
	served(k, 0, 2, 4, 5, 1)
	k.crash()
	k.pass(time.Hour - 1)
	served(k, 0, 2, 4, 5, 1)
	returns(k, find(k, f, "3"), 3)
	served(k, 0, 2, 4, 5, 1, 3)
}

// Rule: with both limits, a key with many runs does not keep those of others from the places of the flow.
func (suite) PlacesOfBothLimits(t *testing.T, k *kit) {
	f := desk(k, workflow.MaxOpen(2), workflow.MaxOpenPerKey(1))
	k.open(f)
	runs := queueUp(k, f, "a", "a", "a", "b", "c", "b", "")
	served(k, 0, 3)
	for i, place := range []string{"", "key a", "key a", "", "flow desk", "key b", "flow desk"} {
		require.Equal(t, place, k.info(runs[i].Run()).Place, "run %d", i)
	}
	bye(k, runs[0])
	served(k, 0, 3, 4)
	require.Equal(t, "flow desk", k.info(runs[1].Run()).Place, "it has the key now")
	bye(k, runs[4], runs[3], runs[6])
	served(k, 0, 3, 4, 6, 1, 5)
	bye(k, runs[5], runs[1], runs[2])
	served(k, 0, 3, 4, 6, 1, 5, 2)
	require.Zero(t, k.rowsIn("places"))
}

// Rule: a run that waits for a place follows requests. A cancel and a deadline end it at once, and it makes no calls. A resume
// does not begin it. A paused run keeps its turn, and signals to it are kept.
func (suite) WaitingForAPlaceIsControlled(t *testing.T, k *kit) {
	f := desk(k, workflow.MaxOpen(1))
	k.open(f)
	runs := queueUp(k, f, "", "", "", "", "")
	late, err := f.Start(t.Context(), k.e, "late", 9, workflow.Deadline(time.Hour))
	require.NoError(t, err)
	require.NoError(t, k.e.Cancel(t.Context(), runs[1].Run(), "not needed"))
	require.NoError(t, k.e.Terminate(t.Context(), runs[2].Run(), "not needed"))
	require.NoError(t, k.e.Pause(t.Context(), runs[3].Run()))
	require.NoError(t, k.e.Resume(t.Context(), runs[4].Run()))
	say(k, runs[4].Run(), "early", "")
	served(k, 0)
	require.Equal(t, workflow.Cancelled, k.info(runs[1].Run()).Status)
	require.Equal(t, workflow.Terminated, k.info(runs[2].Run()).Status)
	require.Equal(t, workflow.Paused, k.info(runs[3].Run()).Status)
	require.Equal(t, "flow desk", k.info(runs[4].Run()).Place)
	k.pass(time.Hour)
	require.Equal(t, workflow.Cancelled, k.info(late.Run()).Status)
	require.Empty(t, k.journal(late.Run()))
	bye(k, runs[0])
	served(k, 0)
	require.Empty(t, k.info(runs[3].Run()).Place, "it has the place, and is paused")
	require.NoError(t, k.e.Resume(t.Context(), runs[3].Run()))
	served(k, 0, 3)
	bye(k, runs[3])
	returns(k, runs[4], "early")
	served(k, 0, 3, 4)
	require.Zero(t, k.rowsIn("places"))
}

// Rule: a run that begins later than its start takes its place when it begins: after a delay, and as a fork. Children
// need places too.
func (suite) PlaceIsTakenAtTheBegin(t *testing.T, k *kit) {
	f := desk(k, workflow.MaxOpenPerKey(1), workflow.MaxOpen(2))
	parent := workflow.Define("parent", func(r *workflow.Run, n int) (string, error) { return workflow.Call(r, "child", f, n) })
	k.open(f, parent)
	later, err := f.Start(t.Context(), k.e, "later", 1, workflow.Delay(time.Hour), workflow.Key("a"))
	require.NoError(t, err)
	first, err := f.Start(t.Context(), k.e, "first", 2, workflow.Key("a"))
	require.NoError(t, err)
	served(k, 2)
	require.Empty(t, k.info(later.Run()).Place)
	k.pass(time.Hour)
	served(k, 2)
	require.Equal(t, "key a", k.info(later.Run()).Place)
	fork, err := k.e.Fork(t.Context(), first.Run(), "", "fork")
	require.NoError(t, err)
	k.settle()
	require.Equal(t, "key a", k.info(fork).Place)
	p := startAndSettle(k, parent, "1", 3)
	served(k, 2, 3)
	q := startAndSettle(k, parent, "2", 4)
	served(k, 2, 3)
	bye(k, first)
	served(k, 2, 3, 4)
	require.Equal(t, "flow desk", k.info(later.Run()).Place, "it has the key now")
	require.NoError(t, k.e.Cancel(t.Context(), p.Run(), ""))
	served(k, 2, 3, 4, 1)
	require.NoError(t, k.e.Cancel(t.Context(), q.Run(), ""))
	bye(k, later)
	served(k, 2, 3, 4, 1, 2)
}

// Rule: a run that ends with its children may leave its place to one of them that waits for it.
func (suite) PlaceOfAParent(t *testing.T, k *kit) {
	var f *workflow.Flow[int, int]
	f = workflow.Define("nested", func(r *workflow.Run, n int) (int, error) {
		if n == 0 {
			return act(k, r, "serve 0", 0)
		}
		return workflow.Call(r, "child", f, n-1)
	}, workflow.MaxOpen(1))
	k.open(f)
	h := startAndSettle(k, f, "1", 1)
	child := find(k, f, "1/child")
	require.Equal(t, "flow nested", k.info(child.Run()).Place)
	require.NoError(t, k.e.Terminate(t.Context(), h.Run(), ""))
	k.settle()
	require.Equal(t, workflow.Cancelled, k.info(child.Run()).Status)
	served(k)
	require.Zero(t, k.rowsIn("places"))
}

// Rule: a new limit applies when the app starts. A higher one, or none, lets runs begin. With a lower one, those that are
// open stay open.
func (suite) LimitOfOpenRunsChanges(t *testing.T, k *kit) {
	k.open(desk(k, workflow.MaxOpen(1)))
	runs := queueUp(k, desk(k, workflow.MaxOpen(1)), slices.Repeat([]string{""}, 9)...)
	served(k, 0)
	k.restart("2", desk(k, workflow.MaxOpen(3)))
	k.settle()
	all := k.effects()
	slices.Sort(all)
	require.Equal(t, []string{"serve 0", "serve 1", "serve 2"}, all)
	k.restart("3", desk(k, workflow.MaxOpen(2)))
	bye(k, find(k, desk(k), "0"))
	require.Len(t, k.effects(), 3, "two are open")
	bye(k, find(k, desk(k), "1"))
	require.Len(t, k.effects(), 4)
	k.restart("4", desk(k))
	k.settle()
	require.Len(t, k.effects(), 9)
	require.NoError(t, k.e.Check(t.Context()))
	for _, h := range runs[2:] {
		bye(k, find(k, desk(k), h.ID()))
	}
	require.Zero(t, k.rowsIn("places"))
}

// Rule: a run that waits for its flow, and whose key has a limit from now on, does not keep a place of the flow from the run that
// has the key. It is in one line at a time.
func (suite) LimitOfKeysIsAdded(t *testing.T) {
	for _, resumed := range []bool{false, true} {
		sub(t, fmt.Sprint("resumed ", resumed), func(t *testing.T, k *kit) {
			k.open(desk(k, workflow.MaxOpen(1)))
			runs := queueUp(k, desk(k, workflow.MaxOpen(1)), append(slices.Repeat([]string{"b"}, 10), "a")...)
			f := desk(k, workflow.MaxOpen(1), workflow.MaxOpenPerKey(1))
			k.restart("2", f)
			h, err := f.Start(t.Context(), k.e, "11", 11, workflow.Key("b"))
			require.NoError(t, err)
			if resumed {
				require.NoError(t, k.e.Resume(t.Context(), runs[1].Run()))
			}
			served(k, 0)
			bye(k, runs[0])
			served(k, 0, 10)
			require.Equal(t, "key b", k.info(runs[1].Run()).Place)
			bye(k, append(runs[10:], h)...)
			require.Equal(t, "serve 11", k.effects()[2])
			bye(k, runs[1:10]...)
			require.Len(t, k.effects(), 12)
			require.Zero(t, k.rowsIn("places"))
		})
	}
}

// Rule: no limit beyond the bounds, and no bad key.
func (suite) LimitOfOpenRunsIsRefused(t *testing.T, k *kit) {
	k.open()
	for _, opt := range []workflow.Option{workflow.MaxOpen(0), workflow.MaxOpenPerKey(-1), workflow.MaxOpen(workflow.MaxPlaces + 1)} {
		_, err := desk(k, opt).Start(t.Context(), k.e, "1", 1)
		require.ErrorIs(t, err, pawl.ErrInvalid)
	}
	for _, key := range []string{"", "a\x00b", strings.Repeat("k", pawl.MaxKeyBytes+1)} {
		_, err := desk(k).Start(t.Context(), k.e, "1", 1, workflow.Key(key))
		require.ErrorIs(t, err, pawl.ErrInvalid)
	}
}

// Rule: the commit that ends a run gives its place away, or neither happens. The same holds for a start that finds no place.
func (suite) PlaceLostInACommit(t *testing.T) {
	limits := []workflow.Option{workflow.MaxOpen(1)}
	brief := func(k *kit) *workflow.Flow[int, int] {
		return workflow.Define("brief", func(r *workflow.Run, n int) (int, error) {
			if _, err := act(k, r, fmt.Sprintf("serve %d", n), n); err != nil {
				return 0, err
			}
			k.at(fmt.Sprintf("end of %d", n))
			return n, nil
		}, limits...)
	}
	eachDeath(t, func(at death) story {
		return story{
			first: func(k *kit) {
				f, g := brief(k), k.gate("end of 0")
				k.open(f)
				start(k, f, "0", 0)
				<-g.reached
				startAndSettle(k, f, "1", 1)
				k.linger()
				commit := k.hold()
				close(g.open)
				commit.endLife(at)
			},
			then: func(k *kit) {
				f := brief(k)
				k.open(f)
				returns(k, find(k, f, "0"), 0)
				returns(k, find(k, f, "1"), 1)
				served(k, 0, 1)
				require.Zero(k.t, k.rowsIn("places"))
			},
		}
	})
	eachDeath(t, func(at death) story {
		return story{
			first: func(k *kit) {
				f := desk(k, limits...)
				k.open(f)
				queueUp(k, f, "")
				commit := k.hold()
				go func() { _, _ = f.Start(context.Background(), k.e, "1", 1) }()
				commit.endLife(at)
			},
			then: func(k *kit) {
				f := desk(k, limits...)
				k.open(f)
				if at == before {
					start(k, f, "1", 1)
				}
				served(k, 0)
				bye(k, find(k, f, "0"))
				served(k, 0, 1)
			},
		}
	})
}

// Rule: runs that were imported have their places, whether these are free or not, and those that waited wait again.
func (suite) PlacesAreImported(t *testing.T, k *kit) {
	f := desk(k, workflow.MaxOpenPerKey(1), workflow.MaxOpen(5))
	k.open(f)
	runs := queueUp(k, f, "a", "a", "b")
	other := under.Open(t, k.path+"2", Options{Now: k.now})
	defer func() { require.NoError(t, other.Close()) }()
	e := workflow.Open(other, &workflow.Options{Codec: k.codec})
	for _, h := range runs {
		rows, err := k.e.Rows(t.Context(), h.Run(), "")
		require.NoError(t, err)
		_, err = new(workflow.RowsCheck).Add(&rows)
		require.NoError(t, err)
		require.NoError(t, e.RestoreRows(t.Context(), &rows))
	}
	require.NoError(t, e.Check(t.Context()))
	for i, place := range map[string]string{"4": "key a", "5": "key b", "6": ""} {
		h, err := f.Start(t.Context(), e, i, 0, workflow.Key(map[string]string{"4": "a", "5": "b", "6": "c"}[i]))
		require.NoError(t, err)
		info, err := e.Info(t.Context(), h.Run())
		require.NoError(t, err)
		require.Equal(t, place, info.Place)
	}
}
