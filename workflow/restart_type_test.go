package workflow_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/workflow"
)

type order struct{ Item string }

// Rule: Restart with another type than that of the flow blocks the run at the call, with its
// journal, so that a build that has it right goes on from there.
func TestRestartWithAnotherType(t *testing.T) {
	for name, again := range map[string]func(r *workflow.Run) error{
		"fields": func(r *workflow.Run) error { return workflow.Restart(r, struct{ Name string }{"lamp"}) },
		"kind":   func(r *workflow.Run) error { return workflow.Restart(r, "lamp") },
		"any":    func(r *workflow.Run) error { return workflow.Restart[any](r, "lamp") },
		"alone":  func(r *workflow.Run) error { _ = workflow.Restart(r, 7); return errors.New("not it") },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, k *kit) {
				flow := func(again func(r *workflow.Run) error) *workflow.Flow[order, string] {
					return workflow.Define("f", func(r *workflow.Run, o order) (string, error) {
						if _, err := workflow.Step(r, "s", func(context.Context) (int, error) {
							k.effect(r)
							return 1, nil
						}); err != nil || o.Item == "lamp" {
							return o.Item, err
						}
						return "", again(r)
					})
				}
				k.open(flow(again))
				h := start(k, flow(again), "1", order{"chair"})
				k.settle()
				info := k.info(h.Run())
				require.Equal(t, workflow.Blocked, info.Status)
				require.Contains(t, info.Error, "Restart has to be called with the type of the flow")
				require.Equal(t, []string{"step s done: 1"}, k.journal(h.Run()))

				fixed := flow(func(r *workflow.Run) error { return workflow.Restart(r, order{"lamp"}) })
				k.restart("2", fixed)
				out, err := outcome(k, find(k, fixed, "1"))
				require.NoError(t, err)
				require.Equal(t, "lamp", out)
				require.Equal(t, []string{"s", "s"}, k.effects())
			})
		})
	}
}

// Rule: what is stored alike is no other type: a pointer, and a value in an interface.
func TestRestartByPointer(t *testing.T) {
	bubble(t, func(t *testing.T, k *kit) {
		f := workflow.Define("f", func(r *workflow.Run, o order) (string, error) {
			switch o.Item {
			case "chair":
				return "", workflow.Restart(r, &order{"desk"})
			case "desk":
				return "", workflow.Restart[any](r, order{"lamp"})
			}
			return o.Item, nil
		})
		of := workflow.Define("any", func(r *workflow.Run, v any) (string, error) {
			if v == "chair" {
				return "", workflow.Restart(r, 7)
			}
			return fmt.Sprint(v), nil
		})
		k.open(f, of)
		out, err := outcome(k, start(k, f, "1", order{"chair"}))
		require.NoError(t, err)
		require.Equal(t, "lamp", out)
		out, err = outcome(k, start[any](k, of, "1", "chair"))
		require.NoError(t, err)
		require.Equal(t, "7", out)
	})
}
