package scenario

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/workflow"
)

// taxed is a plan of steps a and end, with the signal between them, and a tax that depends on a
// version: it is before the wait, or after it.
func taxed(k *kit, low, high int, behind bool) code {
	return func(r *workflow.Run) (string, error) {
		if _, err := calls(k, "a")(r); err != nil {
			return "", err
		}
		paid := ""
		tax := func() error {
			v, err := workflow.Version(r, "tax", low, high)
			if err != nil {
				return err
			}
			if v > 1 { // version 1 had no tax
				_, err = calls(k, fmt.Sprintf("tax-%d", v))(r)
			}
			paid = fmt.Sprintf("version %d", v)
			return err
		}
		if !behind {
			if err := tax(); err != nil {
				return "", err
			}
		}
		if _, err := calls(k, "wait")(r); err != nil {
			return "", err
		}
		if behind {
			if err := tax(); err != nil {
				return "", err
			}
		}
		_, err := calls(k, "end")(r)
		return paid, err
	}
}

// untaxed is the code from before there was a tax.
func untaxed(k *kit) code { return calls(k, "a", "wait", "end") }

// Rule: a run that had passed the place of a version before the version was added has the
// oldest, a run that comes to it has the newest, and so does a run that is right before it.
// Each keeps its version when there are newer ones.
func (suite) Scenario19Version(t *testing.T) {
	for _, c := range []struct {
		name    string
		old     func(k *kit) code
		behind  bool
		version int
		effects []string
	}{
		{"older", untaxed, false, 1, []string{"a", "end"}},
		{"newer", func(k *kit) code { return taxed(k, 1, 2, false) }, false, 2, []string{"a", "tax-2", "end"}},
		{"at the frontier", untaxed, true, 2, []string{"a", "tax-2", "end"}},
	} {
		sub(t, c.name, func(t *testing.T, k *kit) {
			second := func(r *workflow.Run) (string, error) {
				out, err := taxed(k, 1, 2, c.behind)(r)
				if err == nil {
					err = workflow.Sleep(r, "night", time.Hour)
				}
				return out, err
			}
			third := func(r *workflow.Run) (string, error) {
				out, err := taxed(k, 1, 3, c.behind)(r)
				if err == nil {
					err = workflow.Sleep(r, "night", time.Hour)
				}
				return out, err
			}
			h := change(k, c.old(k), second)
			require.Equal(t, workflow.Sleeping, k.info(h.Run()).Status, k.info(h.Run()).Error)
			h = rebuild(k, "3", third)
			returns(k, h, fmt.Sprintf("version %d", c.version))
			require.Equal(t, c.effects, k.effects())
			require.Contains(t, k.journal(h.Run()), fmt.Sprintf("version tax done: %d", c.version))
		})
	}
}

// Rule: the place of a version in the code does not matter: when it is moved after the end of
// the journal, it keeps its value.
func (suite) Scenario19VersionMoved(t *testing.T, k *kit) {
	marked := func(behind bool) code {
		return func(r *workflow.Run) (string, error) {
			out := ""
			for i, name := range []string{"a", "wait", "b"} {
				if (i == 0) != behind && i != 1 {
					v, err := workflow.Version(r, "tax", 1, 2)
					if err != nil {
						return "", err
					}
					out = fmt.Sprint(v)
				}
				if _, err := calls(k, name)(r); err != nil {
					return "", err
				}
			}
			return out, nil
		}
	}
	h := change(k, marked(false), marked(true))
	returns(k, h, "2")
	require.Len(t, k.entries(h.Run()), 4)
}

// Rule: a death after a version that nobody has acted upon yet does not change it, even if the
// next build has a newer one.
func (suite) Scenario19VersionSurvivesDeath(t *testing.T) {
	flow := func(k *kit, high int) *workflow.Flow[int, string] {
		return plan(func(r *workflow.Run) (string, error) {
			v, err := workflow.Version(r, "tax", 1, high)
			if err != nil {
				return "", err
			}
			k.at("marked")
			return workflow.Step(r, "pay", func(context.Context) (string, error) { return fmt.Sprint(v), nil })
		})
	}
	story{
		first: func(k *kit) {
			g := k.gate("marked")
			k.open(flow(k, 2))
			start(k, flow(k, 2), "1", 0)
			<-g.reached
			_ = k.endLife()
		},
		then: func(k *kit) {
			f := flow(k, 3)
			k.build = "2"
			k.open(f)
			returns(k, find(k, f, "1"), "2")
		},
	}.run(t)
}

// Rule: a run whose version the code no longer has is blocked, and continues where the version
// is restored.
func (suite) Scenario20VersionBelowMin(t *testing.T) {
	for _, c := range []struct {
		name      string
		old       func(k *kit) code
		low, high int
		why       []string
	}{
		{"recorded", func(k *kit) code { return taxed(k, 1, 2, false) }, 3, 4,
			[]string{`the journal has version 2 of "tax"`, `build 2 has versions 3 to 4`, "keep the code of a version until no run has it"}},
		{"above max", func(k *kit) code { return taxed(k, 1, 2, false) }, 1, 1,
			[]string{`the journal has version 2 of "tax"`, `build 2 has versions 1 to 1`}},
	} {
		sub(t, c.name, func(t *testing.T, k *kit) {
			h := change(k, c.old(k), taxed(k, c.low, c.high, false))
			blocked(k, h.Run(), "2", k.journal(h.Run()), c.why...)
			f := plan(taxed(k, 2, 4, false))
			k.restart("3", f)
			returns(k, find(k, f, "1"), "version 2")
		})
	}
}

// Rule: when the oldest version is removed from the code, a run that had passed the place
// before the version was added, and has none recorded, does not silently get code that it did
// not run: it has the oldest remaining version, and its later calls do not match.
func (suite) Scenario20NeverMarked(t *testing.T, k *kit) {
	h := change(k, untaxed(k), taxed(k, 2, 3, false))
	info := k.info(h.Run())
	require.Equal(t, workflow.Blocked, info.Status)
	require.Contains(t, info.Error, `the journal has wait "proceed"`)
	require.Contains(t, info.Error, `build 2 has step "tax-2"`)
	require.Equal(t, []string{"a"}, k.effects())
}
