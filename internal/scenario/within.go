package scenario

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/workflow"
)

// Rule: a run starts another run and sends it a signal, each once, also after a crash. A refusal
// fails the step at once, and says why.
func (suite) SendAndStartFromARun(t *testing.T, k *kit) {
	asked := workflow.DefineSignal[string]("asked")
	other := workflow.Define("other", func(r *workflow.Run, n int) (string, error) { return asked.Wait(r, workflow.Forever) })
	first := workflow.Define("first", func(r *workflow.Run, n int) (pawl.ID, error) {
		run, err := other.StartFrom(r, "1", n)
		if err != nil {
			return run, err
		}
		if err := asked.SendFrom(r, run, "a"); err != nil {
			return run, err
		}
		_, err = word.Wait(r, workflow.Forever)
		if err != nil {
			return run, err
		}
		return run, asked.SendFrom(r, run, "late")
	})
	k.open(first, other)
	h := startAndSettle(k, first, "1", 7)
	k.crash()
	k.settle()
	started := find(k, other, "1")
	returns(k, started, "a")
	require.Zero(t, k.info(started.Run()).Unread, "it was sent once")
	require.Zero(t, k.info(started.Run()).Parent, "it is no child")
	say(k, h.Run(), "go on", "")
	_, err := outcome(k, find(k, first, "1"))
	require.ErrorIs(t, err, workflow.ErrNotRunning)
	require.Equal(t, 1, k.entries(h.Run())[len(k.entries(h.Run()))-1].Attempts)

	again := startAndSettle(k, first, "2", 8)
	_, err = outcome(k, again)
	require.ErrorIs(t, err, workflow.ErrConflict, "the ID has another input")
}

// Rule: a signal or a start from a run is durable together with the end of its step, in one commit.
func (suite) FromARunInOneCommit(t *testing.T, k *kit) {
	const times = 10
	other := workflow.Define("other", func(r *workflow.Run, n int) (string, error) { return word.Wait(r, workflow.Forever) })
	flow := func(name string, each func(r *workflow.Run, to pawl.ID, i int) error) *workflow.Flow[pawl.ID, int] {
		return workflow.Define(name, func(r *workflow.Run, to pawl.ID) (int, error) {
			for i := range times {
				if err := each(r, to, i); err != nil {
					return 0, err
				}
			}
			return 0, workflow.Sleep(r, "nap", time.Hour)
		})
	}
	nothing := flow("nothing", func(*workflow.Run, pawl.ID, int) error { return nil })
	sends := flow("sends", func(r *workflow.Run, to pawl.ID, _ int) error { return last.SendFrom(r, to, "a") })
	starts := flow("starts", func(r *workflow.Run, _ pawl.ID, i int) error {
		_, err := other.StartFrom(r, fmt.Sprint("started ", i), i)
		return err
	})
	k.open(nothing, sends, starts) // and nobody takes the other runs
	h := startAndSettle(k, other, "1", 0)
	cost := func(f *workflow.Flow[pawl.ID, int]) int {
		before := commits(k)
		startAndSettle(k, f, "1", h.Run())
		return commits(k) - before
	}
	without := cost(nothing)
	require.LessOrEqual(t, cost(sends), without+times)
	require.LessOrEqual(t, cost(starts), without+times)
	require.Equal(t, times, k.info(h.Run()).Unread)
}

// Rule: a signal in an app's transaction follows the transaction. A run that is at work receives it right
// after the commit.
func (suite) SendInATransaction(t *testing.T, k *kit) {
	f := k.busy()
	k.open(f)
	work, got := k.gate("at work"), k.gate("got it")
	h := start(k, f, "1", 0)
	<-work.reached
	k.settle() // the branch waits
	undone := errors.New("undone")
	send := func(end error) error {
		return k.q.Update(t.Context(), func(tx Tx) error {
			if err := workflow.SendTx(tx, k.e, word, h.Run(), fmt.Sprint("hello ", end), "key"); err != nil {
				return err
			}
			return end
		})
	}
	require.ErrorIs(t, send(undone), undone)
	require.NoError(t, send(nil))
	<-got.reached
	close(got.open)
	close(work.open)
	returns(k, h, "hello <nil>")
	require.NoError(t, send(nil), "the run has received the key")
	err := k.q.Update(t.Context(), func(tx Tx) error { return workflow.SendTx(tx, k.e, word, h.Run(), "late", "") })
	require.ErrorIs(t, err, workflow.ErrNotRunning)
}

// Rule: an error of middleware cannot undo a signal that is sent, so the step has succeeded and is not repeated.
func (suite) SendThatMiddlewareFails(t *testing.T, k *kit) {
	k.around = []workflow.Middleware{func(next workflow.StepFunc) workflow.StepFunc {
		return func(ctx context.Context, s workflow.StepInfo) (any, error) {
			v, err := next(ctx, s)
			return v, errors.Join(err, errors.New("no"))
		}
	}}
	other := workflow.Define("other", func(r *workflow.Run, n int) (string, error) { return word.Wait(r, workflow.Forever) })
	f := workflow.Define("sends", func(r *workflow.Run, to pawl.ID) (int, error) { return 1, last.SendFrom(r, to, "a") })
	k.open(f, other)
	h := startAndSettle(k, other, "1", 0)
	sent := start(k, f, "1", h.Run())
	returns(k, sent, 1)
	require.Equal(t, 1, k.info(h.Run()).Unread)
	require.Equal(t, []string{"step send last done: map[]"}, k.journal(sent.Run()))
	require.Equal(t, 1, k.entries(sent.Run())[0].Attempts)
}

// busy is a flow that waits for a word while a step is at work. Its gates are "at work" and "got it".
func (k *kit) busy() *workflow.Flow[int, string] {
	return workflow.Define("busy", func(r *workflow.Run, _ int) (string, error) {
		ear := workflow.Go(r, "ear", func(r *workflow.Run) (string, error) {
			w, err := word.Wait(r, workflow.Forever)
			k.at("got it")
			return w, err
		})
		_, err := workflow.Step(r, "work", func(context.Context) (int, error) { k.at("at work"); return 0, nil })
		if err != nil {
			return "", err
		}
		return ear.Wait(r)
	})
}
