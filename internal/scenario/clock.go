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

// wayToWait is a way to wait for a time.
type wayToWait struct {
	name string
	wait func(k *kit, r *workflow.Run, d time.Duration) error
}

// waysToWait are all ways to wait for a time.
var waysToWait = []wayToWait{
	{"sleep", func(_ *kit, r *workflow.Run, d time.Duration) error { return workflow.Sleep(r, "nap", d) }},
	{"signal", func(_ *kit, r *workflow.Run, d time.Duration) error {
		if _, err := word.Wait(r, d); !errors.Is(err, workflow.ErrTimeout) {
			return err
		}
		return nil
	}},
	{"select", func(_ *kit, r *workflow.Run, d time.Duration) error {
		_, err := workflow.Select(r, "first", word.Case(nil), workflow.After(d))
		return err
	}},
	{"retry", func(k *kit, r *workflow.Run, d time.Duration) error {
		_, err := workflow.Step(r, "try", func(context.Context) (int, error) {
			if k.called("try "+r.ID()) == 1 {
				return 0, pawl.RetryAfter(d, errors.New("not now"))
			}
			return 0, nil
		})
		return err
	}},
}

// eachWayToWait runs a scenario for each way to wait: in memory and not.
func eachWayToWait(t *testing.T, test func(t *testing.T, k *kit, wait func(r *workflow.Run, d time.Duration) error)) {
	t.Helper()
	for _, way := range waysToWait {
		for _, warm := range []int{cold, workflow.DefaultWarm} {
			name := way.name + ", in memory"
			if warm == cold {
				name = way.name
			}
			sub(t, name, func(t *testing.T, k *kit) {
				k.warm = warm
				test(t, k, func(r *workflow.Run, d time.Duration) error { return way.wait(k, r, d) })
			})
		}
	}
}

// besideWork is a flow that waits for an hour in one branch. The step of the other branch ends when its gate is opened.
func besideWork(k *kit, wait func(r *workflow.Run, d time.Duration) error) *workflow.Flow[int, string] {
	return workflow.Define("beside work", func(r *workflow.Run, _ int) (string, error) {
		waits := workflow.Go(r, "waits", func(r *workflow.Run) (string, error) {
			defer k.called("waited")
			return "waited", wait(r, time.Hour)
		})
		works := workflow.Go(r, "works", func(r *workflow.Run) (string, error) {
			return workflow.Step(r, "work", func(context.Context) (string, error) {
				k.at("work")
				return "worked", nil
			})
		})
		_, err := workflow.All(r, waits, works)
		return "done", err
	})
}

// Rule: if the clock is set forward past the end of a wait while another branch works, the wait ends within a minute. It
// ends at once when nothing works any more.
func (suite) ClockSetForwardBesideWork(t *testing.T) {
	eachWayToWait(t, func(t *testing.T, k *kit, wait func(r *workflow.Run, d time.Duration) error) {
		f := besideWork(k, wait)
		k.open(f)
		for i, ends := range []bool{false, true} {
			gate := k.gate("work")
			h := startAndSettle(k, f, string(rune('a'+i)), 0)
			<-gate.reached
			k.pass(time.Second)
			k.jump(2 * time.Hour)
			if !ends {
				k.pass(time.Minute)
				require.Equal(t, 1, k.calls("waited"))
				require.False(t, k.info(h.Run()).Status.Ended())
			}
			close(gate.open)
			k.settle()
			require.Equal(t, workflow.Done, k.info(h.Run()).Status)
		}
	})
}

// Rule: if the clock is set back, a wait beside a branch that works ends later: never before its time by the clock, and
// within a minute of it.
func (suite) ClockSetBackBesideWork(t *testing.T) {
	eachWayToWait(t, func(t *testing.T, k *kit, wait func(r *workflow.Run, d time.Duration) error) {
		f := besideWork(k, wait)
		k.open(f)
		gate := k.gate("work")
		h := startAndSettle(k, f, "1", 0)
		<-gate.reached
		k.pass(time.Minute / 2)
		k.jump(-3 * time.Hour)
		k.pass(4*time.Hour - time.Minute/2 - 1)
		require.Zero(t, k.calls("waited"))
		k.pass(1)
		require.Equal(t, 1, k.calls("waited"))
		close(gate.open)
		returns(k, h, "done")
	})
}

// Rule: if the clock is set back while a run waits, an operator's Resume does not end the wait before its time by the
// clock, whether the run stays in memory or not. A failed step is retried at once.
func (suite) ClockSetBackAndResume(t *testing.T) {
	eachWayToWait(t, func(t *testing.T, k *kit, wait func(r *workflow.Run, d time.Duration) error) {
		f := workflow.Define("waits", func(r *workflow.Run, _ int) (string, error) { return "done", wait(r, 3*time.Second) })
		k.open(f)
		h := startAndSettle(k, f, "1", 0)
		due := k.info(h.Run()).Due
		k.jump(-time.Hour)
		k.pass(time.Minute)
		require.NoError(t, k.e.Resume(t.Context(), h.Run()))
		k.settle()
		if k.calls("try 1") == 2 {
			returns(k, h, "done")
			return
		}
		require.Equal(t, due, k.info(h.Run()).Due)
		require.False(t, k.info(h.Run()).Status.Ended())
		k.pass(time.Hour - time.Minute + 3*time.Second - 1)
		require.False(t, k.info(h.Run()).Status.Ended())
		k.pass(1)
		require.Equal(t, workflow.Done, k.info(h.Run()).Status)
	})
}

// Rule: if the time of a run has come, but the clock is set back before a worker has a slot for the run, the run waits
// again, whether it stays in memory or not.
func (suite) ClockSetBackBeforeASlotIsFree(t *testing.T) {
	eachWayToWait(t, func(t *testing.T, k *kit, wait func(r *workflow.Run, d time.Duration) error) {
		f := workflow.Define("waits", func(r *workflow.Run, _ int) (string, error) { return "done", wait(r, time.Hour) })
		busy := workflow.Define("busy", func(r *workflow.Run, _ int) (string, error) {
			return workflow.Step(r, "work", func(context.Context) (string, error) {
				k.at("work")
				return "", nil
			})
		})
		k.slots = 1
		k.open(f, busy)
		h := startAndSettle(k, f, "1", 0)
		gate := k.gate("work")
		start(k, busy, "1", 0)
		<-gate.reached
		k.pass(time.Hour)
		k.jump(-time.Hour)
		close(gate.open)
		k.settle()
		require.False(t, k.info(h.Run()).Status.Ended())
		k.pass(time.Hour - 1)
		require.False(t, k.info(h.Run()).Status.Ended())
		k.pass(1)
		require.Equal(t, workflow.Done, k.info(h.Run()).Status)
	})
}

// Rule: a run that holds its slot because its wait is short gives it to others if the clock is set back meanwhile.
func (suite) ClockSetBackDuringAShortWait(t *testing.T) {
	eachWayToWait(t, func(t *testing.T, k *kit, wait func(r *workflow.Run, d time.Duration) error) {
		f := workflow.Define("waits", func(r *workflow.Run, _ int) (string, error) { return "done", wait(r, 50*time.Millisecond) })
		other := workflow.Define("other", func(*workflow.Run, int) (string, error) { return "done", nil })
		k.slots = 1
		k.open(f, other)
		h := startAndSettle(k, f, "1", 0)
		k.pass(20 * time.Millisecond)
		k.jump(-time.Hour)
		k.pass(time.Minute)
		startAndSettle(k, other, "1", 0)
		require.Equal(t, workflow.Done, k.info(find(k, other, "1").Run()).Status)
		k.pass(time.Hour - time.Minute + 30*time.Millisecond - 1)
		require.False(t, k.info(h.Run()).Status.Ended())
		k.pass(1)
		require.Equal(t, workflow.Done, k.info(h.Run()).Status)
	})
}

// Rule: the deadline of a run whose step works follows the clock too. Set forward past the deadline, the clock ends the
// run within a minute. Set back, it ends the run later.
func (suite) ClockIsSetBeforeADeadline(t *testing.T, k *kit) {
	f := reserving(k)
	k.open(f)
	for _, by := range []time.Duration{2 * time.Hour, -2 * time.Hour} {
		h, err := f.Start(t.Context(), k.e, by.String(), "step", workflow.Deadline(time.Hour))
		require.NoError(t, err)
		k.pass(time.Second)
		k.jump(by)
		if by < 0 {
			k.pass(3*time.Hour - time.Second - 1)
			require.False(t, k.info(h.Run()).Status.Ended())
			k.pass(1)
		} else {
			k.pass(time.Minute)
		}
		expired(k, h)
	}
}
