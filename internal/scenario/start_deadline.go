package scenario

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/workflow"
)

// reserving is a flow that takes a room, and gives it back unless a word comes.
func reserving(k *kit) *workflow.Flow[string, string] {
	return workflow.Define("reserving", func(r *workflow.Run, how string) (string, error) {
		k.called("reserving")
		if _, err := act(k, r, "take", 1); err != nil {
			return "", err
		}
		r.Undo("give back", func(context.Context) error {
			k.effect(r)
			if how == "slow undo" && k.called("undo") < 3 {
				return pawl.RetryAfter(24*time.Hour, errors.New("not yet"))
			}
			return nil
		})
		switch how {
		case "retry":
			_, err := workflow.Step(r, "try", func(context.Context) (int, error) {
				return 0, pawl.RetryAfter(24*time.Hour, errors.New("not now"))
			})
			return "", err
		case "step":
			_, err := workflow.Step(r, "long", func(ctx context.Context) (int, error) {
				k.at("in the step")
				<-ctx.Done()
				return 0, context.Cause(ctx)
			})
			return "", err
		case "nap":
			for range 3 {
				if err := workflow.Sleep(r, "nap", 10*time.Minute); err != nil {
					return "", err
				}
			}
		case "panic":
			if k.build == "1" {
				panic("a mistake")
			}
		}
		return word.Wait(r, workflow.Forever)
	})
}

// reserve starts a reservation with a deadline of an hour.
func reserve(k *kit, f *workflow.Flow[string, string], how string) *workflow.Handle[string] {
	k.t.Helper()
	h, err := f.Start(k.t.Context(), k.e, how, how, workflow.Deadline(time.Hour))
	require.NoError(k.t, err)
	k.settle()
	return h
}

// expired requires that a run was cancelled because of its deadline.
func expired[Out any](k *kit, h *workflow.Handle[Out]) {
	k.t.Helper()
	require.Equal(k.t, workflow.Cancelled, k.info(h.Run()).Status)
	_, err := h.Result(k.t.Context())
	require.ErrorIs(k.t, err, workflow.ErrDeadline)
	require.ErrorIs(k.t, err, workflow.ErrCancelled)
}

// Rule: a run is cancelled at its deadline and undoes its steps, whatever it waits for, and not before. A
// run that has ended by then keeps its end.
func (suite) Deadline(t *testing.T, k *kit) {
	f := reserving(k)
	k.open(f)
	began := k.now()
	gate := k.gate("in the step")
	close(gate.open)
	ways := []string{"wait", "retry", "nap", "step"}
	runs := make(map[string]*workflow.Handle[string])
	for _, how := range ways {
		runs[how] = reserve(k, f, how)
	}
	done := reserve(k, f, "done")
	say(k, done.Run(), "in time", "")
	k.pass(time.Hour - 1)
	for _, how := range ways {
		info := k.info(runs[how].Run())
		require.False(t, info.Status.Ended(), how)
		require.True(t, began.Add(time.Hour).Equal(info.Deadline))
	}
	k.pass(1)
	for _, how := range ways {
		expired(k, runs[how])
		k.sameRunUndone(runs[how].Run(), 1)
	}
	returns(k, done, "in time")
	k.sameRunUndone(done.Run(), 0)
}

// sameRunUndone requires how often a reservation was given back.
func (k *kit) sameRunUndone(run pawl.ID, times int) {
	k.t.Helper()
	n := 0
	for _, key := range k.keys() {
		if key == run.String()+"/_undo/give back" {
			n++
		}
	}
	require.Equal(k.t, times, n, "%v", k.keys())
}

// Rule: a run that cannot continue by itself is cancelled at its deadline too: one that is paused, one that is
// blocked once its code fits, and one that no worker had, also if the program was down at that time.
func (suite) DeadlineOfARunThatStands(t *testing.T, k *kit) {
	f := reserving(k)
	k.open(f)
	paused, atWake, blocked := reserve(k, f, "wait"), reserve(k, f, "nap"), reserve(k, f, "panic")
	require.NoError(t, k.e.Pause(t.Context(), paused.Run()))
	require.NoError(t, k.e.Pause(t.Context(), atWake.Run()))
	require.Equal(t, workflow.Blocked, k.info(blocked.Run()).Status)
	k.pass(time.Hour)
	expired(k, paused)
	expired(k, atWake)
	k.sameRunUndone(paused.Run(), 1)
	require.Equal(t, workflow.Blocked, k.info(blocked.Run()).Status)
	require.Equal(t, workflow.ErrDeadline.Error(), k.info(blocked.Run()).Cancelling)
	k.pass(time.Hour)
	require.Equal(t, workflow.Blocked, k.info(blocked.Run()).Status)
	k.restart("2")
	k.settle()
	expired(k, find(k, f, "panic"))
	k.sameRunUndone(blocked.Run(), 1)

	k.restartWithSlots(-1)
	down := reserve(k, f, "down")
	k.pass(2 * time.Hour)
	require.False(t, k.info(down.Run()).Status.Ended(), "nobody works")
	k.restartWithSlots(1)
	k.settle()
	expired(k, find(k, f, "down"))
	require.Empty(t, k.journal(down.Run()), "it made no call")
}

// Rule: the deadline does not limit the undo, and makes nobody run again and again meanwhile.
func (suite) DeadlineDoesNotLimitTheUndo(t *testing.T, k *kit) {
	k.warm = cold
	f := reserving(k)
	k.open(f)
	h := reserve(k, f, "slow undo")
	k.pass(2 * time.Hour)
	require.Equal(t, workflow.ErrDeadline.Error(), k.info(h.Run()).Cancelling)
	require.Equal(t, 2, k.calls("reserving"), "once until it waits, and once at the deadline")
	k.pass(47 * time.Hour)
	expired(k, h)
	k.sameRunUndone(h.Run(), 3)
	require.Equal(t, 4, k.calls("reserving"), "and once for each retry of the undo")
}

// Rule: a run that wakes at its deadline is cancelled before it does anything else, also if it stayed in memory.
func (suite) DeadlineComesFirst(t *testing.T) {
	for _, warm := range []int{cold, workflow.DefaultWarm} {
		bubble(t, func(t *testing.T, k *kit) {
			k.warm = warm
			f := workflow.Define("nap", func(r *workflow.Run, d time.Duration) (int, error) {
				if err := workflow.Sleep(r, "nap", d); err != nil {
					return 0, err
				}
				return act(k, r, "too late", 1)
			})
			k.open(f)
			h, err := f.Start(t.Context(), k.e, "1", time.Hour, workflow.Deadline(time.Hour))
			require.NoError(t, err)
			k.pass(time.Hour)
			expired(k, h)
			require.Empty(t, k.keys())
		})
	}
}

// Rule: the deadline counts from the start, over restarts of the run. It cancels children, and a fork has none.
func (suite) DeadlineOverRestarts(t *testing.T, k *kit) {
	child := reserving(k)
	f := workflow.Define("rounds", func(r *workflow.Run, n int) (string, error) {
		if err := workflow.Sleep(r, "round", 25*time.Minute); err != nil {
			return "", err
		}
		if n < 2 {
			return "", workflow.Restart(r, n+1)
		}
		return "", nil
	})
	parent := workflow.Define("parent", func(r *workflow.Run, _ int) (string, error) { return workflow.Call(r, "child", child, "wait") })
	k.open(f, parent, child)
	h, err := f.Start(t.Context(), k.e, "1", 0, workflow.Deadline(time.Hour))
	require.NoError(t, err)
	p, err := parent.Start(t.Context(), k.e, "1", 0, workflow.Deadline(time.Hour))
	require.NoError(t, err)
	k.pass(time.Hour)
	expired(k, h)
	require.Equal(t, 2, k.info(h.Run()).Restarts)
	expired(k, p)
	c := find(k, child, "1/child")
	require.Equal(t, workflow.Cancelled, k.info(c.Run()).Status)
	k.sameRunUndone(c.Run(), 1)

	fork, err := k.e.Fork(t.Context(), h.Run(), "", "2")
	require.NoError(t, err)
	require.Zero(t, k.info(fork).Deadline)
	succeeds(k, find(k, f, "2"))
}

// Rule: a death in the commit that cancels a run at its deadline changes nothing of its end.
func (suite) DeadlineLostInItsCommit(t *testing.T) {
	eachDeath(t, func(at death) story {
		return story{
			first: func(k *kit) {
				f, g := reserving(k), k.gate("in the step")
				k.open(f)
				_, _ = f.Start(k.t.Context(), k.e, "step", "step", workflow.Deadline(time.Second))
				<-g.reached
				close(g.open)
				commit := k.hold()
				k.pass(time.Second)
				commit.endLife(at)
			},
			then: func(k *kit) {
				f := reserving(k)
				k.open(f)
				k.settle()
				h := find(k, f, "step")
				expired(k, h)
				k.sameRunUndone(h.Run(), 1)
			},
		}
	})
}

// Rule: a deadline that no run could keep is refused.
func (suite) DeadlineIsRefused(t *testing.T, k *kit) {
	f := reserving(k)
	k.open(f)
	for _, opts := range [][]workflow.StartOption{
		{workflow.Deadline(0)}, {workflow.Deadline(-1)}, {workflow.Deadline(time.Hour), workflow.Delay(time.Hour)},
		{workflow.At(k.now().Add(2 * time.Hour)), workflow.Deadline(time.Hour)},
	} {
		_, err := f.Start(t.Context(), k.e, "1", "wait", opts...)
		require.ErrorIs(t, err, pawl.ErrInvalid)
	}
	h, err := f.Start(t.Context(), k.e, "1", "wait", workflow.Delay(time.Minute), workflow.Deadline(time.Hour))
	require.NoError(t, err)
	k.pass(time.Hour)
	expired(k, h)
}
