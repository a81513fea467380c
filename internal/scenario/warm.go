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

// echo is a flow that waits for a word and acts on it, n times. It counts the calls of its function.
func echo(k *kit) *workflow.Flow[int, int] {
	return workflow.Define("echo", func(r *workflow.Run, n int) (int, error) {
		k.called("echo " + r.ID())
		defer k.called("echo returned")
		for i := range n {
			if _, err := word.Wait(r, workflow.Forever); err != nil {
				return i, err
			}
			if _, err := act(k, r, "tell", i); err != nil {
				return i, err
			}
		}
		return n, nil
	})
}

// Rule: a run in memory continues in the call that waits: however many rounds it makes, its
// function is called once in a life. Another life continues it from its journal, which is the same.
func (suite) WarmLoop(t *testing.T, k *kit) {
	const rounds = 50
	k.warm = 1
	f := echo(k)
	k.open(f)
	h := startAndSettle(k, f, "1", 2*rounds)
	talk := func() {
		for range rounds {
			say(k, h.Run(), "hello", "")
			k.settle()
		}
	}
	talk()
	require.Equal(t, 1, k.calls("echo 1"))
	require.Zero(t, k.calls("echo returned"))
	require.Len(t, k.entries(h.Run()), 2*rounds+1)
	k.crash()
	talk()
	require.Equal(t, 1, k.calls("echo 1"))
	returns(k, find(k, f, "1"), 2*rounds)
	require.Len(t, k.keys(), 2*rounds)
	require.Len(t, k.entries(h.Run()), 4*rounds)
}

// Rule: beyond the bound, the run that was suspended first leaves memory. Its function returns,
// and the run continues from its journal.
func (suite) WarmBound(t *testing.T, k *kit) {
	k.warm = 2
	f := echo(k)
	k.open(f)
	runs := make(map[string]*workflow.Handle[int])
	for _, id := range []string{"1", "2", "3"} {
		runs[id] = startAndSettle(k, f, id, 2)
	}
	require.Equal(t, 1, k.calls("echo returned"))
	for _, id := range []string{"3", "2", "1"} {
		say(k, runs[id].Run(), "hello", "")
		k.settle()
	}
	require.Equal(t, 2, k.calls("echo 1"))
	require.Equal(t, 1, k.calls("echo 2"))
	require.Equal(t, 1, k.calls("echo 3"))
	for _, h := range runs {
		say(k, h.Run(), "hello", "")
		returns(k, h, 2)
	}
}

// Rule: when the queue closes, the functions of the runs in memory return, and no goroutine stays.
func (suite) WarmClose(t *testing.T, k *kit) {
	k.warm = 10
	f := echo(k)
	k.slots = 1
	k.open(f)
	k.settle()
	before := len(goroutines())
	for n := range 5 {
		startAndSettle(k, f, fmt.Sprint(n), 1)
	}
	require.Greater(t, len(goroutines()), before)
	k.close()
	k.settle()
	require.Equal(t, 5, k.calls("echo returned"))
	require.Less(t, len(goroutines()), before)
	k.again()
}

// Rule: a step that follows a wait in memory has the context of the lease that runs it: it is
// alive, and it ends when the run is cancelled. The run then undoes its steps.
func (suite) WarmCancel(t *testing.T, k *kit) {
	k.warm = 1
	f := workflow.Define("f", func(r *workflow.Run, _ int) (int, error) {
		r.Undo("untell", func(context.Context) error { k.effect(r); return nil })
		for {
			if _, err := word.Wait(r, workflow.Forever); err != nil {
				return 0, err
			}
			_, err := workflow.Step(r, "tell", func(ctx context.Context) (int, error) {
				if k.called("tell") == 1 {
					return 0, ctx.Err()
				}
				<-ctx.Done()
				return 0, context.Cause(ctx)
			})
			if err != nil {
				return 0, err
			}
		}
	})
	k.open(f)
	h := startAndSettle(k, f, "1", 0)
	say(k, h.Run(), "hello", "")
	k.settle()
	say(k, h.Run(), "hello", "")
	k.settle()
	require.Equal(t, 2, k.calls("tell"))
	require.NoError(t, k.e.Cancel(t.Context(), h.Run(), "enough"))
	_, err := outcome(k, h)
	require.ErrorIs(t, err, workflow.ErrCancelled)
	require.Equal(t, []string{"_undo/untell"}, k.effects())
}

// Rule: whatever a run in memory waits for, a request to it has the same effect as on a run that is
// not in memory.
func (suite) WarmRequests(t *testing.T) {
	waits := map[string]func(r *workflow.Run) error{
		"sleep":  func(r *workflow.Run) error { return workflow.Sleep(r, "night", time.Hour) },
		"signal": func(r *workflow.Run) error { _, err := word.Wait(r, time.Hour); return err },
		"retry": func(r *workflow.Run) error {
			_, err := workflow.Step(r, "try", func(context.Context) (int, error) { return 0, errors.New("not today") },
				workflow.MaxRetries(2), workflow.Backoff(pawl.Fixed(time.Hour)))
			return err
		},
		"branches": func(r *workflow.Run) error {
			b := workflow.Go(r, "side", func(r *workflow.Run) (int, error) { return 0, workflow.Sleep(r, "night", time.Hour) })
			_, err := b.Wait(r)
			return err
		},
	}
	for name, wait := range waits {
		journal := make(map[int][]string)
		for _, warm := range []int{cold, 1} {
			sub(t, fmt.Sprintf("%s/%d", name, warm), func(t *testing.T, k *kit) {
				k.warm = warm
				f := errand(k, wait)
				k.open(f)
				begin := time.Now()
				h := startAndSettle(k, f, "1", 0)
				require.NoError(t, k.e.Resume(t.Context(), h.Run())) // looks again, and tries failed steps now
				k.settle()
				require.NoError(t, k.e.Pause(t.Context(), h.Run()))
				k.pass(2 * time.Hour)
				require.NoError(t, k.e.Resume(t.Context(), h.Run()))
				_, err := outcome(k, h)
				journal[warm] = append(k.journal(h.Run()), fmt.Sprint(err), fmt.Sprint(time.Since(begin)))
				journal[warm] = append(journal[warm], k.effects()...)
			})
		}
		require.Equal(t, journal[cold], journal[1], name)
	}
}
