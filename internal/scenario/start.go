package scenario

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/workflow"
)

type orderOld struct {
	Item  string
	Notes map[string]int
}

type orderNew struct {
	Item    string
	Notes   map[string]int
	Gift    bool
	Coupons []string
	Address *struct{ Street string }
	Total   struct{ Cents int64 }
}

// napping is a flow with an input that starts over as often as requested.
func napping[In any](anew int) *workflow.Flow[In, int] {
	return workflow.Define("nap", func(r *workflow.Run, in In) (int, error) {
		if err := workflow.Sleep(r, "nap", time.Hour); err != nil {
			return 0, err
		}
		if anew--; anew >= 0 {
			return 0, workflow.Restart(r, in)
		}
		return 7, nil
	})
}

// Rule: a start by a build whose input has a new field, or lacks one, finds the run that
// another build started, as long as that field is zero.
func (suite) Scenario25StartAfterAFieldWasAdded(t *testing.T) {
	for _, anew := range []int{0, 1} { // the file does not have the original input of a restarted run
		bubble(t, func(t *testing.T, k *kit) {
			k.open(napping[orderOld](anew))
			h := startAndSettle(k, napping[orderOld](anew), "1", orderOld{Item: "lamp"})
			k.restart("2", napping[orderNew](0))
			k.pass(time.Hour)
			f := napping[orderNew](0)
			again, err := f.Start(t.Context(), k.e, "1", orderNew{Item: "lamp"})
			require.NoError(t, err)
			require.Equal(t, h.Run(), again.Run())
			for _, other := range []orderNew{{Item: "desk"}, {Item: "lamp", Gift: true}, {Item: "lamp", Coupons: []string{""}}, {Item: "lamp", Total: struct{ Cents int64 }{1}}} {
				_, err = f.Start(t.Context(), k.e, "1", other)
				require.ErrorIs(t, err, workflow.ErrConflict, "%+v", other)
			}

			fresh := startAndSettle(k, f, "2", orderNew{Item: "lamp"})
			k.restart("1", napping[orderOld](0))
			back, err := napping[orderOld](0).Start(t.Context(), k.e, "2", orderOld{Item: "lamp"})
			require.NoError(t, err)
			require.Equal(t, fresh.Run(), back.Run())
		})
	}
}

// Rule: an entry of a map is not a field: a map that has it with a zero value is another input.
func (suite) Scenario25StartWithAnotherMap(t *testing.T, k *kit) {
	f := napping[orderOld](0)
	k.open(f)
	start(k, f, "1", orderOld{Item: "lamp", Notes: map[string]int{"red": 1, "blue": 0}})
	start(k, f, "1", orderOld{Item: "lamp", Notes: map[string]int{"blue": 0, "red": 1}})
	_, err := f.Start(t.Context(), k.e, "1", orderOld{Item: "lamp", Notes: map[string]int{"red": 1}})
	require.ErrorIs(t, err, workflow.ErrConflict)
	require.ErrorIs(t, err, pawl.ErrConflict, "one word has one meaning in both packages")
}

// Rule: a step keeps its fingerprint after a deploy that adds a field with its zero value.
func (suite) Scenario22FingerprintAfterAFieldWasAdded(t *testing.T, k *kit) {
	k.open(printing(orderOld{Item: "lamp"}))
	h := startAndSettle(k, printing(nil), "1", 0)
	k.restart("2", printing(orderNew{Item: "lamp"}))
	require.NoError(t, k.e.Verify(t.Context(), h.Run()))
	k.restart("3", printing(orderNew{Item: "lamp", Gift: true}))
	require.ErrorContains(t, k.e.Verify(t.Context(), h.Run()), "another fingerprint")
}

func printing(x any) *workflow.Flow[int, int] {
	return workflow.Define("print", func(r *workflow.Run, _ int) (int, error) {
		if _, err := workflow.Step(r, "print", func(context.Context) (int, error) { return 1, nil }, workflow.Fingerprint(x)); err != nil {
			return 0, err
		}
		return 0, workflow.Sleep(r, "night", time.Hour)
	})
}
