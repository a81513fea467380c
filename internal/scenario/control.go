package scenario

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/workflow"
)

// errand is a flow that books, does its task, and cancels the booking if the task fails. In any
// case it makes one more call at the end, which a cancelled run is refused.
func errand(k *kit, do func(r *workflow.Run) error) *workflow.Flow[int, string] {
	return workflow.Define("errand", func(r *workflow.Run, _ int) (string, error) {
		step := func(name string) error {
			_, err := act(k, r, name, 1)
			return err
		}
		if err := step("book"); err != nil {
			return "", err
		}
		r.Undo("unbook", func(context.Context) error {
			k.at("unbook")
			k.effect(r)
			return nil
		})
		if err := errors.Join(do(r), step("tell")); err != nil {
			return "", err
		}
		return "booked", nil
	})
}

// places are where a run may be when an operator makes a request.
func places(k *kit) map[string]func(r *workflow.Run) error {
	child := childOf(k)
	return map[string]func(r *workflow.Run) error{
		"step": func(r *workflow.Run) error {
			_, err := workflow.Step(r, "s", func(ctx context.Context) (int, error) {
				k.at("step")
				<-ctx.Done()
				return 0, ctx.Err()
			})
			return err
		},
		"backoff": func(r *workflow.Run) error {
			_, err := workflow.Step(r, "s", func(context.Context) (int, error) { return 0, pawl.RetryAfter(time.Hour, errors.New("not yet")) })
			return err
		},
		"between attempt and backoff": func(r *workflow.Run) error {
			_, err := workflow.Step(r, "s", func(context.Context) (int, error) { return 0, errors.New("not yet") },
				workflow.Backoff(hourAt{k, "backoff"}))
			return err
		},
		"sleep": func(r *workflow.Run) error { return workflow.Sleep(r, "s", time.Hour) },
		"wait": func(r *workflow.Run) error {
			_, err := word.Wait(r, workflow.Forever)
			return err
		},
		"child": func(r *workflow.Run) error {
			_, err := workflow.Call(r, "c", child, 0)
			return err
		},
		"branches": func(r *workflow.Run) error {
			_, err := workflow.Each(r, "b", []int{1, 2, 3}, strconv.Itoa, 2, func(r *workflow.Run, n int) (int, error) {
				if n == 1 {
					return 0, workflow.Sleep(r, "s", time.Hour)
				}
				return word2(r)
			})
			return err
		},
	}
}

func word2(r *workflow.Run) (int, error) {
	_, err := word.Wait(r, workflow.Forever)
	return 0, err
}

func childOf(k *kit) *workflow.Flow[int, string] {
	return workflow.Define("child", func(r *workflow.Run, _ int) (string, error) {
		r.Undo("child's", func(context.Context) error {
			k.effect(r)
			return nil
		})
		return word.Wait(r, workflow.Forever)
	})
}

// Rule: a run that is cancelled, wherever it is, and once or twice, continues at once: its
// current call and all others are refused, its steps are undone once, and it ends as cancelled,
// with the first reason. A crash on the way changes nothing.
func (suite) Scenario37Cancel(t *testing.T) {
	for name := range places(nil) {
		for _, crash := range []bool{false, true} {
			sub(t, fmt.Sprintf("%s/crash=%v", name, crash), func(t *testing.T, k *kit) {
				f := errand(k, places(k)[name])
				step, backoff, unbook := k.gate("step"), k.gate("backoff"), k.gate("unbook")
				close(step.open)
				k.open(f, childOf(k))
				h := startAndSettle(k, f, "1", 0)
				for _, reason := range []string{"first", "second"} {
					require.NoError(t, h.Cancel(t.Context(), reason))
				}
				close(backoff.open)
				<-unbook.reached
				if crash {
					k.crash()
				} else {
					close(unbook.open)
				}
				k.settle()
				info := k.info(h.Run())
				require.Equal(t, workflow.Cancelled, info.Status)
				require.Equal(t, "first", info.Error)
				_, err := outcome(k, find(k, f, "1"))
				require.ErrorIs(t, err, workflow.ErrCancelled)
				want := []string{"book", "_undo/unbook"}
				if name == "child" {
					want = append(want, "_undo/child's")
					require.Equal(t, workflow.Cancelled, k.info(find(k, childOf(k), "1/c").Run()).Status)
				}
				if crash {
					require.Subset(t, want, k.effects()) // the undo step's key may occur twice
				} else {
					require.ElementsMatch(t, want, k.effects())
				}
				require.ErrorIs(t, k.e.Cancel(t.Context(), h.Run(), "third"), workflow.ErrNotRunning)
			})
		}
	}
}

// Rule: a run that is cancelled before it has begun makes no calls.
func (suite) Scenario37CancelBeforeTheFirstClaim(t *testing.T, k *kit) {
	f := errand(k, places(k)["sleep"])
	k.slots = -1
	k.open(f)
	h := start(k, f, "1", 0)
	require.NoError(t, h.Cancel(t.Context(), "changed my mind"))
	require.Equal(t, "changed my mind", k.info(h.Run()).Cancelling)
	k.restartWithSlots(1)
	_, err := outcome(k, find(k, f, "1"))
	require.ErrorIs(t, err, workflow.ErrCancelled)
	require.ErrorContains(t, err, "changed my mind")
	require.Empty(t, k.effects())
	require.Empty(t, k.journal(h.Run()))
}

// Rule: Cancel does not change a run that has failed and undoes its steps: it continues to
// undo, and frees its slot while that waits.
func (suite) Scenario37CancelWhileUndoing(t *testing.T, k *kit) {
	broken := errors.New("broken")
	f := workflow.Define("undoing", func(r *workflow.Run, _ int) (int, error) {
		r.Undo("undo", func(context.Context) error {
			k.effect(r)
			if k.called("undo") == 1 {
				return errors.New("not yet")
			}
			return nil
		}, workflow.Backoff(hourAt{k, "backoff"}))
		return 0, broken
	})
	backoff := k.gate("backoff")
	k.open(f)
	h := start(k, f, "1", 0)
	<-backoff.reached
	g := k.hold()
	cancelled := make(chan error)
	go func() { cancelled <- h.Cancel(context.Background(), "too late") }()
	k.settle()
	close(backoff.open)
	k.settle()
	g.commit()
	require.NoError(t, <-cancelled)
	require.Equal(t, workflow.Sleeping, k.info(h.Run()).Status)
	_, err := outcome(k, h)
	require.ErrorIs(t, err, broken)
	require.Equal(t, []string{"_undo/undo", "_undo/undo"}, k.effects())
	require.Equal(t, workflow.Failed, k.info(h.Run()).Status)
}

// Rule: undo steps run in one order, before and after a crash: the order follows the calls that
// have ended before, and not a refused call.
func (suite) Scenario37UndoInOneOrder(t *testing.T, k *kit) {
	f := workflow.Define("undoing", func(r *workflow.Run, _ int) (int, error) {
		undo := func(r *workflow.Run, name string) {
			r.Undo(name, func(context.Context) error {
				k.effect(r)
				k.at(name)
				return nil
			})
		}
		a := workflow.Go(r, "a", func(r *workflow.Run) (int, error) {
			k.at("a")
			_, err := workflow.Step(r, "s", func(ctx context.Context) (int, error) {
				<-ctx.Done()
				return 0, ctx.Err()
			})
			undo(r, "undo a")
			return 0, err
		})
		_, err := workflow.Step(r, "s", func(context.Context) (int, error) {
			k.at("b")
			return 1, nil
		})
		undo(r, "undo b")
		_, refused := a.Wait(r)
		return 0, errors.Join(err, refused)
	})
	a, b, undo := k.gate("a"), k.gate("b"), k.gate("undo a")
	k.open(f)
	h := start(k, f, "1", 0)
	<-b.reached
	close(a.open) // so that its step is the second
	k.settle()
	close(b.open)
	k.settle()
	require.NoError(t, h.Cancel(t.Context(), "enough"))
	<-undo.reached
	k.crash()
	_, err := outcome(k, find(k, f, "1"))
	require.ErrorIs(t, err, workflow.ErrCancelled)
	require.Equal(t, []string{"_undo/undo b", "_undo/undo a", "_undo/undo a"}, k.effects())
}

// Rule: Terminate ends a run at once, wherever it is, without undoing anything: even while it
// undoes, and when its journal is unreadable.
func (suite) Scenario37Terminate(t *testing.T) {
	for name := range places(nil) {
		sub(t, name, func(t *testing.T, k *kit) {
			f := errand(k, places(k)[name])
			backoff := k.gate("backoff")
			k.open(f, childOf(k))
			step := k.gate("step")
			close(step.open)
			h := startAndSettle(k, f, "1", 0)
			require.NoError(t, k.e.Terminate(t.Context(), h.Run(), "now"))
			close(backoff.open)
			k.settle()
			require.Equal(t, workflow.Terminated, k.info(h.Run()).Status)
			_, err := outcome(k, h)
			require.ErrorIs(t, err, workflow.ErrTerminated)
			require.NotContains(t, k.effects(), "_undo/unbook")
		})
	}
	sub(t, "undo", func(t *testing.T, k *kit) {
		f := workflow.Define("undoing", func(r *workflow.Run, _ int) (int, error) {
			r.Undo("undo", func(ctx context.Context) error {
				<-ctx.Done()
				return ctx.Err()
			})
			return 0, errors.New("broken")
		})
		k.open(f)
		h := startAndSettle(k, f, "1", 0)
		require.NoError(t, k.e.Terminate(t.Context(), h.Run(), "now"))
		k.settle()
		require.Equal(t, workflow.Terminated, k.info(h.Run()).Status)
	})
	sub(t, "damaged", func(t *testing.T, k *kit) {
		k.warm = cold // so that it reads its journal
		f := errand(k, places(k)["sleep"])
		k.open(f)
		h := startAndSettle(k, f, "1", 0)
		require.NoError(t, k.q.Mutate(t.Context(), ride{func(tx driver.Writer) error {
			return tx.Put(tableSteps, firstKey(tx, tableSteps), []byte("this is no entry"))
		}}, 0))
		k.pass(time.Hour)
		require.Equal(t, workflow.Blocked, k.info(h.Run()).Status)
		require.NoError(t, k.e.Terminate(t.Context(), h.Run(), "now"))
		k.settle()
		require.Equal(t, workflow.Terminated, k.info(h.Run()).Status)
	})
}
