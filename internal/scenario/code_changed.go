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

// Rule: the code must request a version in the journal before the scope makes a new call, or
// the run is blocked: it would continue with code of another version.
func (suite) Scenario19MarkerRemoved(t *testing.T) {
	versioned := func(k *kit, marker string, after ...string) code {
		return func(r *workflow.Run) (string, error) {
			if marker != "" {
				if _, err := workflow.Version(r, marker, 1, 2); err != nil {
					return "", err
				}
			}
			return calls(k, append([]string{"a", "wait"}, after...)...)(r)
		}
	}
	for _, marker := range []string{"tax", "", "vat"} {
		bubble(t, func(t *testing.T, k *kit) {
			h := change(k, versioned(k, "tax", "b"), versioned(k, marker, "b"))
			if marker == "tax" {
				succeeds(k, h)
				return
			}
			require.Equal(t, workflow.Blocked, k.info(h.Run()).Status)
			require.Contains(t, k.info(h.Run()).Error, `the journal has version "tax"`)
			require.Equal(t, []string{"a"}, k.effects())
			var mismatch *workflow.DeterminismError
			require.ErrorAs(t, k.e.Verify(t.Context(), h.Run()), &mismatch)
		})
	}
}

// Rule: once a run undoes its steps, neither its calls nor its undo steps may change: a new
// call, an undo step with another name, a missing one, and a function that does not fail now
// block it, and a dry run finds each.
func (suite) Scenario13ChangedWhileItUndoes(t *testing.T) {
	failing := func(k *kit, undo string, err error, steps ...string) code {
		return func(r *workflow.Run) (string, error) {
			if undo != "" {
				r.Undo(undo, func(context.Context) error {
					k.effect(r)
					return pawl.RetryAfter(time.Hour, errors.New("not yet"))
				}, workflow.MaxRetries(3))
			}
			if _, err := calls(k, steps...)(r); err != nil {
				return "", err
			}
			return "", err
		}
	}
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		new func(k *kit) code
		why string
	}{
		"as it was": {func(k *kit) code { return failing(k, "u", broken, "a") }, ""},
		"a call":    {func(k *kit) code { return failing(k, "u", broken, "a", "b") }, `build 2 has step "b"`},
		"a branch": {func(k *kit) code {
			return func(r *workflow.Run) (string, error) {
				_, err := failing(k, "u", broken, "a")(r)
				_, _ = leg(k, r, "b", "x").Wait(r)
				return "", err
			}
		}, `build 2 has branch "b"`},
		"renamed": {func(k *kit) code { return failing(k, "v", broken, "a") }, `build 2 has undo "_undo/v"`},
		"gone":    {func(k *kit) code { return failing(k, "", broken, "a") }, "build 2 has nothing more"},
		"no fail": {func(k *kit) code { return failing(k, "u", nil, "a") }, "the function had failed, and now it has not"},
	} {
		sub(t, name, func(t *testing.T, k *kit) {
			f := plan(failing(k, "u", broken, "a"))
			k.open(f)
			h := startAndSettle(k, f, "1", 0)
			journal := k.journal(h.Run())
			require.Contains(t, journal[1], "undo _undo/u pending")
			f = plan(c.new(k))
			k.restart("2", f)
			h = find(k, f, "1")
			require.NoError(t, k.e.Resume(t.Context(), h.Run()))
			k.settle()
			if c.why == "" {
				require.NoError(t, k.e.Verify(t.Context(), h.Run()))
				_, err := outcome(k, h)
				require.ErrorContains(t, err, "broken; and not all was undone")
				return
			}
			require.Equal(t, workflow.Blocked, k.info(h.Run()).Status)
			require.Contains(t, k.info(h.Run()).Error, c.why)
			require.Equal(t, []string{"a", "_undo/u"}, k.effects())
			var mismatch *workflow.DeterminismError
			require.ErrorAs(t, k.e.Verify(t.Context(), h.Run()), &mismatch)
		})
	}
}
