package scenario

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/worker"
	"github.com/gopawl/pawl/workflow"
)

// Rule: a run that waits for the next attempt of a step reports the error of the step, and no
// longer does once the attempt has begun.
func (suite) InfoHasTheStepThatFails(t *testing.T, k *kit) {
	f := stubborn(k)
	second := k.gate("attempt 2")
	k.open(f)
	h := startAndSettle(k, f, "1", 0)
	info := k.info(h.Run())
	require.Equal(t, workflow.Sleeping, info.Status)
	require.Equal(t, `step "try": not today`, info.Error)
	require.False(t, info.Due.IsZero())
	k.pass(time.Hour)
	<-second.reached
	info = k.info(h.Run())
	require.Equal(t, workflow.Running, info.Status)
	require.Empty(t, info.Error)
	close(second.open)
	k.settle()
	require.Equal(t, `step "try" failed 2 times: not today`, k.info(h.Run()).Error)
}

// Rule: if a child was cancelled or terminated, its parent finds that in the error, whatever
// the child's function returned.
func (suite) ParentReceivesHowTheChildEnded(t *testing.T) {
	for _, how := range []error{workflow.ErrCancelled, workflow.ErrTerminated} {
		sub(t, how.Error(), func(t *testing.T, k *kit) {
			child := workflow.Define("child", func(r *workflow.Run, _ int) (int, error) {
				return 0, workflow.Sleep(r, "nap", time.Hour)
			})
			var reported error
			parent := workflow.Define("parent", func(r *workflow.Run, _ int) (int, error) {
				_, err := workflow.Call(r, "c", child, 0)
				reported = err
				return 1, nil
			})
			k.open(parent, child)
			h := startAndSettle(k, parent, "1", 0)
			run := find(k, child, "1/c").Run()
			if how == workflow.ErrTerminated {
				require.NoError(t, k.e.Terminate(t.Context(), run, "enough"))
			} else {
				require.NoError(t, k.e.Cancel(t.Context(), run, "enough"))
			}
			succeeds(k, h)
			require.ErrorIs(t, reported, how)
		})
	}
}

// Rule: a flow that is nil is an error, not a panic.
func (suite) HandleOfNoFlow(t *testing.T, k *kit) {
	k.open()
	var none *workflow.Flow[int, int]
	for _, flow := range []workflow.Definition{nil, none} {
		var invalid *pawl.InvalidError
		err := k.e.Handle(context.Background(), worker.New(k.q, nil), flow)
		require.ErrorAs(t, err, &invalid)
	}
}

// Rule: if a second flow has the same name, the call that passes it returns an error: in one
// call or in two, and also with another engine. The same holds for a handler of jobs of that
// kind. A refused call gives the worker nothing. Another worker may have the flows.
func (suite) HandleOfTwoFlowsOfOneName(t *testing.T, k *kit) {
	k.open()
	one := workflow.Define("f", func(*workflow.Run, int) (int, error) { return 1, nil })
	two := workflow.Define("f", func(*workflow.Run, string) (int, error) { return 2, nil })
	other := workflow.Define("other", func(*workflow.Run, int) (int, error) { return 3, nil })
	w := worker.New(k.q, nil)
	require.ErrorIs(t, k.e.Handle(t.Context(), w, other, one, two), worker.ErrHandlerExists)
	require.NoError(t, k.e.Handle(t.Context(), w, one, other))
	for _, e := range []*workflow.Engine{k.e, workflow.Open(k.q, nil)} {
		err := e.Handle(t.Context(), w, two)
		require.ErrorIs(t, err, worker.ErrHandlerExists)
		require.ErrorContains(t, err, `flow "f"`)
		require.NoError(t, e.Handle(t.Context(), worker.New(k.q, nil), two))
	}
	taken := worker.New(k.q, nil)
	worker.Handle(taken, pawl.Define[int]("workflow/f"), func(context.Context, *pawl.Job[int]) error { return nil })
	require.ErrorIs(t, k.e.Handle(t.Context(), taken, other, one), worker.ErrHandlerExists)
	require.False(t, taken.Handles("workflow/other"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, taken.Run(ctx), "nothing of what was refused is left in it")
	require.NoError(t, w.Run(ctx), "nothing of what was refused is left in it")
}

// Rule: Resume retries at once a step that waits for its next attempt, and no attempt is lost
// or gained.
func (suite) ResumeTriesAFailedStepNow(t *testing.T, k *kit) {
	f := stubborn(k)
	k.open(f)
	h := startAndSettle(k, f, "1", 0)
	for attempts := 1; attempts < 4; attempts++ {
		require.Len(t, k.keys(), attempts)
		require.NoError(t, k.e.Resume(t.Context(), h.Run()))
		k.settle()
	}
	_, err := outcome(k, h)
	require.ErrorContains(t, err, `step "try" failed 4 times: not today`)
	require.Len(t, k.keys(), 4)
}

// Rule: so it does while another branch of the run works, which keeps the run from being suspended.
func (suite) ResumeTriesAFailedStepNowBesideAnother(t *testing.T, k *kit) {
	f := workflow.Define("beside", func(r *workflow.Run, _ int) (int, error) {
		working := workflow.Go(r, "working", func(r *workflow.Run) (int, error) {
			return workflow.Step(r, "long", func(context.Context) (int, error) { k.at("long"); return 1, nil })
		})
		if _, err := workflow.Step(r, "try", func(context.Context) (int, error) {
			if k.calls("try") == 3 {
				return 3, nil
			}
			k.called("try")
			return 0, errPlanned
		}, workflow.Backoff(hourAt{k, "backoff"})); err != nil {
			return 0, err
		}
		return working.Wait(r)
	})
	long := k.gate("long")
	k.open(f)
	h := start(k, f, "1", 0)
	<-long.reached
	for attempts := 1; attempts <= 3; attempts++ {
		k.settle()
		require.Equal(t, attempts, k.calls("try"))
		require.NoError(t, k.e.Resume(t.Context(), h.Run()))
	}
	k.linger()
	require.Contains(t, k.journal(h.Run()), "step try done: 3")
	close(long.open)
	returns(k, h, 1)
}
