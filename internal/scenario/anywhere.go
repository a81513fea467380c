package scenario

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/internal/memdir"
	"github.com/gopawl/pawl/workflow"
)

// journey is a flow with calls of all kinds, and the flow of its children.
func journey(k *kit) (parent, child *workflow.Flow[int, int]) {
	step := func(r *workflow.Run, name string) (int, error) {
		return act(k, r, name, 1)
	}
	child = workflow.Define("leg", func(r *workflow.Run, n int) (int, error) { return step(r, fmt.Sprintf("walk %d", n)) })
	parent = workflow.Define("journey", func(r *workflow.Run, _ int) (sum int, err error) {
		add := func(n int, e error) {
			if sum += n; err == nil {
				err = e
			}
		}
		add(step(r, "pack"))
		r.Undo("unpack", func(context.Context) error { k.effect(r); return nil })
		add(workflow.StepTx(r, "book", func(tx Tx) (int, error) {
			n, err := tx.Count("ledger")
			return int(n), err
		}))
		add(0, workflow.Sleep(r, "night", 5*time.Minute))
		legs, e := workflow.Each(r, "leg", []int{1, 2}, strconv.Itoa, 2, func(r *workflow.Run, n int) (int, error) {
			return workflow.Call(r, "leg", child, n)
		})
		add(len(legs), e)
		add(proceed.Wait(r, workflow.Forever))
		add(step(r, "arrive"))
		if err == nil {
			err = errors.New("lost the luggage")
		}
		return sum, err
	})
	return parent, child
}

// journeyEnds brings the journey to its end, whether it has begun or not.
func journeyEnds(k *kit) {
	k.t.Helper()
	f, child := journey(k)
	k.open(f, child)
	h := start(k, f, "1", 0)
	require.NoError(k.t, proceed.Send(k.t.Context(), k.e, h.Run(), 1, "once"))
	_, err := outcome(k, h)
	require.ErrorContains(k.t, err, "lost the luggage")
	k.counted("ledger", 1)
}

// Rule: wherever a process is killed, the run ends in the next life as it would have otherwise.
// Each step takes effect; those in progress take effect twice, under one key; transactions take
// effect exactly once. A repeated start and a repeated signal exist once.
func (suite) Scenario05KilledAnywhere(t *testing.T) {
	const most, every = 400, 7 // reads of the clock
	path := os.Getenv(lifeVariable)
	over := false
	for look := 1; !over; look += every {
		require.Less(t, look, most, "it does not end")
		t.Run(fmt.Sprintf("look %d", look), func(t *testing.T) {
			if path != "" {
				synctest.Test(t, func(t *testing.T) {
					k := newKit(t, path)
					k.mortal = true
					k.looks.Store(int64(look))
					journeyEnds(k)
					k.looks.Store(-1)
				})
				return
			}
			path := filepath.Join(memdir.New(t), "jobs.db")
			over = life(t, path) == "PASS"
			synctest.Test(t, func(t *testing.T) {
				k := newKit(t, path)
				if !over {
					k = k.reborn()
				}
				journeyEnds(k)
				keys := k.keys()
				slices.Sort(keys)
				require.LessOrEqual(t, len(keys), 5+2, "two children are under way at a time")
				require.Len(t, slices.Compact(keys), 5)
			})
		})
		over = over || path != "" && look+every >= most
	}
}
