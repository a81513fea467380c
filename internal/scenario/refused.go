package scenario

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/workflow"
)

// The result that a function received from a call is the same after a crash, even if what the
// call waited for has happened in the meantime. Otherwise the function would take another path,
// and a run that has undone half of its steps would end as if it had not.

// Rule: a run that received its cancellation stays cancelled, even if the child for which it
// waited has ended since, or a branch that ignores interruptions, which would then have won a
// race.
func (suite) Scenario37CancelIsNotTakenBack(t *testing.T) {
	for name, do := range map[string]func(k *kit, r *workflow.Run){
		"child": func(k *kit, r *workflow.Run) { _, _ = workflow.Call(r, "c", childOf(k), 0) },
		"race": func(k *kit, r *workflow.Run) {
			deaf := workflow.Go(r, "deaf", func(r *workflow.Run) (string, error) {
				return workflow.Step(r, "s", func(context.Context) (string, error) {
					k.at("deaf")
					return "", nil
				})
			})
			waits := workflow.Go(r, "waits", func(r *workflow.Run) (string, error) {
				v, err := word.Wait(r, workflow.Forever)
				k.at("told")
				return v, err
			})
			_, _, _ = workflow.Race(r, "first", deaf, waits)
		},
	} {
		sub(t, name, func(t *testing.T, k *kit) {
			f := workflow.Define("undoing", func(r *workflow.Run, _ int) (string, error) {
				r.Undo("undo", func(context.Context) error {
					k.effect(r)
					k.at("undo")
					return nil
				})
				do(k, r)
				return "done", nil
			})
			deaf, notified, undo := k.gate("deaf"), k.gate("told"), k.gate("undo")
			k.open(f, childOf(k))
			h := startAndSettle(k, f, "1", 0)
			require.NoError(t, h.Cancel(t.Context(), "enough"))
			k.settle()
			close(deaf.open)
			k.settle() // it ends before the other does
			close(notified.open)
			<-undo.reached
			k.settle() // the child has ended too
			k.crash()
			_, err := outcome(k, find(k, f, "1"))
			require.ErrorIs(t, err, workflow.ErrCancelled)
			require.Contains(t, k.effects(), "_undo/undo")
		})
	}
}

// Rule: a loser of a race that waited for a child has lost, even if the child, which ignores
// the cancel, ends later with a result.
func (suite) Scenario34LosersChildEndsLater(t *testing.T) {
	for n := range 4 {
		crash, slow := n%2 == 0, n/2 == 0 // it reaches its call when the race is over
		bubble(t, func(t *testing.T, k *kit) {
			deaf := workflow.Define("deaf", func(r *workflow.Run, _ int) (string, error) {
				return workflow.Step(r, "s", func(context.Context) (string, error) {
					k.at("deaf")
					return "late", nil
				})
			})
			f := workflow.Define("race", func(r *workflow.Run, _ int) (string, error) {
				loser := workflow.Go(r, "loser", func(r *workflow.Run) (string, error) {
					k.at("loser")
					return workflow.Call(r, "c", deaf, 0)
				})
				winner := workflow.Go(r, "winner", func(r *workflow.Run) (string, error) { return last.Wait(r, workflow.Forever) })
				if _, _, err := workflow.Race(r, "first", winner, loser); err != nil {
					return "", err
				}
				_, before := loser.Wait(r)
				if err := workflow.Sleep(r, "night", time.Hour); err != nil {
					return "", err
				}
				_, after := loser.Wait(r)
				if !errors.Is(before, workflow.ErrAbandoned) || !errors.Is(after, workflow.ErrAbandoned) {
					return "", fmt.Errorf("the loser: %w, %w", before, after)
				}
				return "won", nil
			})
			child := k.gate("deaf")
			k.warm = cold // the loser passes its gate again
			k.open(f, deaf)
			h := startAndSettle(k, f, "1", 0)
			loser := k.gate("loser")
			if !slow {
				close(loser.open)
			}
			require.NoError(t, last.Send(t.Context(), k.e, h.Run(), "me", ""))
			<-loser.reached
			k.settle()
			if slow {
				close(loser.open)
				k.settle()
			}
			close(child.open)
			k.settle()
			require.Equal(t, workflow.Done, k.info(find(k, deaf, "1/loser/c").Run()).Status)
			if crash {
				k.crash()
			}
			returns(k, find(k, f, "1"), "won")
		})
	}
}

// Rule: undo steps named since a sleep run, even if the run is cancelled in the following step
// and the process dies there.
func (suite) Scenario37CancelAfterASleep(t *testing.T, k *kit) {
	f := workflow.Define("f", func(r *workflow.Run, _ int) (int, error) {
		if err := workflow.Sleep(r, "nap", time.Hour); err != nil {
			return 0, err
		}
		r.Undo("unbook", func(context.Context) error { k.effect(r); return nil })
		return workflow.Step(r, "book", func(ctx context.Context) (int, error) {
			k.at("book")
			return 1, ctx.Err()
		})
	})
	k.open(f)
	g := k.gate("book")
	h := startAndSettle(k, f, "1", 0)
	k.pass(time.Hour)
	<-g.reached
	require.NoError(t, k.e.Cancel(t.Context(), h.Run(), "enough"))
	k.crash()
	k.settle()
	require.Equal(t, workflow.Cancelled, k.info(h.Run()).Status)
	require.Equal(t, []string{"_undo/unbook"}, k.effects())
}
