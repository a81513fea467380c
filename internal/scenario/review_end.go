package scenario

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/workflow"
)

// damage flips the last byte of a row of workflows.
func (k *kit) damage(bucket string, key []byte) {
	k.t.Helper()
	table := tableNamed(bucket)
	require.NoError(k.t, k.q.Mutate(k.t.Context(), ride{func(tx driver.Writer) error {
		value, err := tx.Get(table, key)
		if err != nil || len(value) == 0 {
			return fmt.Errorf("row %x: %w", key, err)
		}
		value = bytes.Clone(value)
		value[len(value)-1] ^= 1
		return tx.Put(table, key, value)
	}}, 0))
}

// family is a flow that calls another, which sleeps for an hour.
func family() (parent, child *workflow.Flow[int, int]) {
	child = workflow.Define("child", func(r *workflow.Run, _ int) (int, error) { return 3, workflow.Sleep(r, "nap", time.Hour) })
	parent = workflow.Define("parent", func(r *workflow.Run, _ int) (int, error) { return workflow.Call(r, "c", child, 0) })
	return parent, child
}

// Rule: a damaged row of a child does not keep its parent from ending, nor a damaged row of a
// parent its child.
func (suite) ReviewDamagedRelative(t *testing.T) {
	sub(t, "child", func(t *testing.T, k *kit) {
		p, c := family()
		k.open(p, c)
		h := startAndSettle(k, p, "1", 0)
		run := find(k, c, "1/c").Run()
		k.damage("runs", run[:])
		require.NoError(t, h.Cancel(t.Context(), "enough"))
		_, err := outcome(k, h)
		require.ErrorIs(t, err, workflow.ErrCancelled)
	})
	sub(t, "parent", func(t *testing.T, k *kit) {
		p, c := family()
		k.open(p, c)
		h := startAndSettle(k, p, "1", 0)
		run := h.Run()
		k.damage("runs", run[:])
		returns(k, find(k, c, "1/c"), 3)
	})
}

// Rule: if another run has a child's ID, the child gets an ID with the parent's run, whatever
// the other run's input. If that is taken too, the call returns an error.
func (suite) ReviewChildIDTaken(t *testing.T) {
	for name, input := range map[string]int{"the same input": 0, "another": 9} {
		sub(t, name, func(t *testing.T, k *kit) {
			p, c := family()
			k.open(p, c)
			start(k, c, "1/c", input)
			h := startAndSettle(k, p, "1", 0)
			succeeds(k, h)
			require.Equal(t, h.Run(), k.info(find(k, c, h.Run().String()+"/c").Run()).Parent)

			gate := workflow.Define("late", func(r *workflow.Run, _ int) (int, error) {
				if err := workflow.Sleep(r, "first", time.Hour); err != nil {
					return 0, err
				}
				return workflow.Call(r, "c", c, 0)
			})
			k.restart("2", p, c, gate)
			late := startAndSettle(k, gate, "1", 0)
			start(k, c, late.Run().String()+"/c", input)
			_, err := outcome(k, late)
			require.ErrorIs(t, err, workflow.ErrConflict)
			require.Equal(t, workflow.Failed, k.info(late.Run()).Status)
		})
	}
}

// Rule: a dead or paused child is cancelled with its parent, as Cancel itself does it.
func (suite) ReviewDeadChildIsCancelled(t *testing.T, k *kit) {
	p, c := family()
	k.open(p, c)
	for _, id := range []string{"dead", "paused"} {
		h := startAndSettle(k, p, id, 0)
		ch := find(k, c, id+"/c")
		if id == "dead" {
			require.NoError(t, k.q.Cancel(t.Context(), ch.Run()))
			require.Equal(t, workflow.Dead, k.info(ch.Run()).Status)
		} else {
			require.NoError(t, k.e.Pause(t.Context(), ch.Run()))
		}
		require.NoError(t, h.Cancel(t.Context(), "enough"))
		_, err := outcome(k, h)
		require.ErrorIs(t, err, workflow.ErrCancelled)
		_, err = outcome(k, ch)
		require.ErrorIs(t, err, workflow.ErrCancelled)
	}
}

// Rule: a run with a full journal can undo its steps, and the calls of undo steps have as much room again.
func (suite) ReviewFullJournalIsUndone(t *testing.T, k *kit) {
	fill := func(r *workflow.Run) error {
		items := numbers(400)
		_, err := workflow.Each(r, "b", items, strconv.Itoa, len(items), func(r *workflow.Run, _ int) (int, error) {
			for range workflow.MaxEntries {
				if err := one(r, "s"); err != nil {
					return 0, err
				}
			}
			return 0, nil
		})
		return err
	}
	var version error
	f := workflow.Define("f", func(r *workflow.Run, _ int) (int, error) {
		r.Undo("u", func(context.Context) error { k.effect(r); return nil })
		r.UndoWith("w", fill)
		err := fill(r)
		_, version = workflow.Version(r, "v", 1, 2)
		return 0, err
	})
	k.open(f)
	h := start(k, f, "1", 0)
	_, err := outcome(k, h)
	require.ErrorContains(t, err, workflow.ErrTooMany.Error())
	require.ErrorIs(t, version, workflow.ErrTooMany)
	require.Equal(t, []string{"_undo/u"}, k.effects())
	require.Equal(t, 2*workflow.MaxEntries+1, k.info(h.Run()).Steps)
}

// Rule: a deadline is in the file while another scope works, even if the suspension that was to
// write it was refused because that scope had something to do.
func (suite) ReviewDeadlineOfRefusedSuspension(t *testing.T, k *kit) {
	child := workflow.Define("child", func(*workflow.Run, int) (int, error) { k.at("end of the child"); return 3, nil })
	f := workflow.Define("f", func(r *workflow.Run, _ int) (int, error) {
		a := workflow.Go(r, "a", func(r *workflow.Run) (int, error) {
			k.at("before the night")
			return 0, workflow.Sleep(r, "night", 24*time.Hour)
		})
		b := workflow.Go(r, "b", func(r *workflow.Run) (int, error) {
			if _, err := workflow.Call(r, "c", child, 0); err != nil {
				return 0, err
			}
			return workflow.Step(r, "work", func(context.Context) (int, error) { k.at("work"); return 1, nil })
		})
		_, err := workflow.All(r, a, b)
		return 0, err
	})
	end, night, work := k.gate("end of the child"), k.gate("before the night"), k.gate("work")
	k.open(f, child)
	h := start(k, f, "1", 0)
	<-end.reached
	<-night.reached
	k.settle()
	g := k.hold()
	close(end.open) // the child ends
	k.settle()
	close(night.open) // everything waits, so the run is about to be suspended
	k.settle()
	g.commit()
	<-work.reached
	k.settle()
	require.Contains(t, k.journal(h.Run()), "sleep a/night pending")
	close(work.open)
	succeeds(k, h)
}

// Rule: the values from signals and children count at once among the values of a run.
func (suite) ReviewBytesOfSignals(t *testing.T, k *kit) {
	f := workflow.Define("f", func(r *workflow.Run, _ int) (int, error) {
		k.at("top")
		if _, err := word.Wait(r, workflow.Forever); err != nil {
			return 0, err
		}
		return 0, workflow.Sleep(r, "night", time.Hour)
	})
	g := k.gate("top")
	k.open(f)
	h := start(k, f, "1", 0)
	<-g.reached
	require.NoError(t, word.Send(t.Context(), k.e, h.Run(), strings.Repeat("x", 1000), ""))
	close(g.open)
	k.settle()
	require.Greater(t, k.info(h.Run()).Bytes, int64(1000))
}

// A handler that is stuck after its run was suspended keeps only its own slot. Whatever arrives
// for the run meanwhile is postponed.
func (suite) StuckSuspensionKeepsOneSlot(t *testing.T, k *kit) {
	k.slots = 2
	hang := make(chan struct{})
	f := workflow.Define("f", func(r *workflow.Run, _ int) (int, error) {
		_, err := word.Wait(r, workflow.Forever)
		if err != nil && k.called("f") == 1 {
			<-hang
		}
		return 0, err
	})
	g := workflow.Define("g", func(r *workflow.Run, _ int) (int, error) { return 1, one(r, "s") })
	k.open(f, g)
	h := startAndSettle(k, f, "1", 0)
	require.NoError(t, word.Send(t.Context(), k.e, h.Run(), "x", ""))
	k.settle()
	other := start(k, g, "1", 0)
	k.pass(time.Minute)
	status := k.info(other.Run()).Status
	close(hang)
	k.pass(time.Minute)
	require.Equal(t, workflow.Done, status)
	require.Equal(t, workflow.Done, k.info(h.Run()).Status)
}

// Two runs with the same ID may call the same child flow in the same step.
func (suite) ChildrenOfNamesakes(t *testing.T, k *kit) {
	child := workflow.Define("child", func(*workflow.Run, int) (int, error) { return 3, nil })
	parent := func(name string) *workflow.Flow[int, int] {
		return workflow.Define(name, func(r *workflow.Run, _ int) (int, error) { return workflow.Call(r, "invoice", child, 0) })
	}
	p1, p2 := parent("p1"), parent("p2")
	k.open(p1, p2, child)
	for _, p := range []*workflow.Flow[int, int]{p1, p2} {
		succeeds(k, start(k, p, "1042", 0))
	}
}
