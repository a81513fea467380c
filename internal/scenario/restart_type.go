package scenario

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/workflow"
)

type order struct{ Item string }

// Rule: a Restart with a type other than the flow's blocks the run at the call and keeps its
// journal, so that a corrected build continues from there.
func (suite) RestartWithAnotherType(t *testing.T) {
	for name, again := range map[string]func(r *workflow.Run) error{
		"fields": func(r *workflow.Run) error { return workflow.Restart(r, struct{ Name string }{"lamp"}) },
		"kind":   func(r *workflow.Run) error { return workflow.Restart(r, "lamp") },
		"any":    func(r *workflow.Run) error { return workflow.Restart[any](r, "lamp") },
		"alone":  func(r *workflow.Run) error { _ = workflow.Restart(r, 7); return errors.New("not it") },
	} {
		sub(t, name, func(t *testing.T, k *kit) {
			flow := func(again func(r *workflow.Run) error) *workflow.Flow[order, string] {
				return workflow.Define("f", func(r *workflow.Run, o order) (string, error) {
					if _, err := act(k, r, "s", 1); err != nil || o.Item == "lamp" {
						return o.Item, err
					}
					return "", again(r)
				})
			}
			k.open(flow(again))
			h := startAndSettle(k, flow(again), "1", order{"chair"})
			info := k.info(h.Run())
			require.Equal(t, workflow.Blocked, info.Status)
			require.Contains(t, info.Error, "Restart has to be called with the type of the flow")
			require.Equal(t, []string{"step s done: 1"}, k.journal(h.Run()))

			fixed := flow(func(r *workflow.Run) error { return workflow.Restart(r, order{"lamp"}) })
			k.restart("2", fixed)
			returns(k, find(k, fixed, "1"), "lamp")
			require.Equal(t, []string{"s", "s"}, k.effects())
		})
	}
}

// Rule: a plain value that the flow's type can hold is accepted, like an untyped constant. A
// value that it cannot hold blocks the run.
func (suite) RestartWithAPlainValue(t *testing.T) {
	type name string
	type switched bool
	restarts(t, int64(1), int64(7), func(r *workflow.Run) error { return workflow.Restart(r, 7) })
	restarts(t, time.Hour, time.Duration(7), func(r *workflow.Run) error { return workflow.Restart(r, 7) })
	restarts(t, uint8(1), 255, func(r *workflow.Run) error { return workflow.Restart(r, 255) })
	restarts(t, float32(1), 0.5, func(r *workflow.Run) error { return workflow.Restart(r, 0.5) })
	restarts(t, name("a"), "lamp", func(r *workflow.Run) error { return workflow.Restart(r, "lamp") })
	restarts(t, switched(false), true, func(r *workflow.Run) error { return workflow.Restart(r, true) })

	blocks(t, uint8(1), func(r *workflow.Run) error { return workflow.Restart(r, 256) })
	blocks(t, uint64(1), func(r *workflow.Run) error { return workflow.Restart(r, -1) })
	blocks(t, int64(1), func(r *workflow.Run) error { return workflow.Restart(r, uint64(1<<63)) })
	blocks(t, float32(1), func(r *workflow.Run) error { return workflow.Restart(r, 0.1) })
	blocks(t, int64(1), func(r *workflow.Run) error { return workflow.Restart(r, 7.0) })
	blocks(t, name("a"), func(r *workflow.Run) error { return workflow.Restart(r, 65) })
}

// again is a flow that restarts until its input differs from the first.
func again[In comparable](first In, restart func(r *workflow.Run) error) *workflow.Flow[In, In] {
	return workflow.Define("again", func(r *workflow.Run, in In) (In, error) {
		if in == first {
			return in, restart(r)
		}
		return in, nil
	})
}

func restarts[In comparable](t *testing.T, first, want In, restart func(r *workflow.Run) error) {
	t.Helper()
	bubble(t, func(t *testing.T, k *kit) {
		f := again(first, restart)
		k.open(f)
		returns(k, start(k, f, "1", first), want)
	})
}

func blocks[In comparable](t *testing.T, first In, restart func(r *workflow.Run) error) {
	t.Helper()
	bubble(t, func(t *testing.T, k *kit) {
		f := again(first, restart)
		k.open(f)
		h := startAndSettle(k, f, "1", first)
		info := k.info(h.Run())
		require.Equal(t, workflow.Blocked, info.Status)
		require.Contains(t, info.Error, "Restart has to be called with the type of the flow")
	})
}

// Rule: values that are stored in the same way have the same type: a pointer, and a value in an
// interface.
func (suite) RestartByPointer(t *testing.T, k *kit) {
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
	returns(k, start(k, f, "1", order{"chair"}), "lamp")
	returns(k, start[any](k, of, "1", "chair"), "7")
}
