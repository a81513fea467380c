package scenario

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/workflow"
)

// Rule: the replay of a run that is done runs no step and changes nothing. It returns nil if the
// function returns the same result from the same calls, whatever calls it makes, and a
// DeterminismError if it does not. A run that is not done is not eligible.
func (suite) Replay(t *testing.T, k *kit) {
	chance, word := "", workflow.DefineSignal[string]("word")
	child := workflow.Define("child", func(r *workflow.Run, n int) (int, error) { return act(k, r, "double", 2*n) })
	f := workflow.Define("mixed", func(r *workflow.Run, round int) (string, error) {
		if err := workflow.Publish(r, "round", round); err != nil {
			return "", err
		}
		if _, err := workflow.Version(r, "tax", 1, 2); err != nil {
			return "", err
		}
		fast := workflow.Go(r, "fast", func(r *workflow.Run) (string, error) { return act(k, r, "fast", "fast") })
		slow := workflow.Go(r, "slow", func(r *workflow.Run) (string, error) { return "", workflow.Sleep(r, "night", time.Hour) })
		_, first, err := workflow.Race(r, "first", fast, slow)
		if err != nil {
			return "", err
		}
		n, err := workflow.Call(r, "child", child, round)
		if err != nil {
			return "", err
		}
		said := ""
		selected, err := workflow.Select(r, "next", word.Case(&said), workflow.After(time.Hour))
		if err != nil {
			return "", err
		}
		if round == 0 {
			return "", workflow.Restart(r, 1)
		}
		return fmt.Sprint(first, n, said, selected, chance), nil
	})
	fails := workflow.Define("fails", func(*workflow.Run, int) (int, error) { return 0, fmt.Errorf("broken") })
	k.open(f, child, fails)

	h := startAndSettle(k, f, "1", 0)
	require.ErrorIs(t, k.e.Replay(t.Context(), h.Run()), pawl.ErrNotEligible)
	require.NoError(t, word.Send(t.Context(), k.e, h.Run(), "a", ""))
	k.pass(3 * time.Hour)
	returns(k, h, "fast21")
	effects := k.effects()
	require.NoError(t, k.e.Replay(t.Context(), h.Run()))
	chance = " by chance"
	err := k.e.Replay(t.Context(), h.Run())
	var mismatch *workflow.DeterminismError
	require.ErrorAs(t, err, &mismatch)
	require.ErrorContains(t, err, `the journal has the result "fast21", build 1 has the result "fast21 by chance"`)
	require.Equal(t, effects, k.effects(), "no step runs")

	broken := startAndSettle(k, fails, "1", 0)
	require.ErrorIs(t, k.e.Replay(t.Context(), broken.Run()), pawl.ErrNotEligible)
	require.ErrorIs(t, k.e.Replay(t.Context(), pawl.ID{1}), workflow.ErrNotFound)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, k.e.Replay(ctx, h.Run()), context.Canceled)
}
