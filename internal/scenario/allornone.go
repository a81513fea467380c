package scenario

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/workflow"
)

// allOrNone is a flow of two branches that wait for a word and a last word. The last word "fail" is
// an error. It sleeps afterwards, so that the journal is read again.
func allOrNone(k *kit) *workflow.Flow[int, []string] {
	return workflow.Define("all or none", func(r *workflow.Run, _ int) ([]string, error) {
		a := workflow.Go(r, "a", func(r *workflow.Run) (string, error) {
			w, err := word.Wait(r, workflow.Forever)
			if err != nil {
				return "", err
			}
			return w, workflow.Sleep(r, "long", time.Hour)
		})
		b := workflow.Go(r, "b", func(r *workflow.Run) (string, error) {
			w, err := last.Wait(r, workflow.Forever)
			if w == "fail" {
				k.at("fails")
				err = errPlanned
			}
			return w, err
		})
		all, err := workflow.AllOrNone(r, "both", a, b)
		if errors.Is(err, errPlanned) {
			all, err = []string{err.Error()}, nil
			if _, lost := a.Wait(r); !errors.Is(lost, workflow.ErrAbandoned) {
				return nil, errors.Join(errors.New("not abandoned"), lost)
			}
		}
		if err == nil {
			err = workflow.Sleep(r, "night", time.Hour)
		}
		return all, err
	})
}

// Rule: AllOrNone returns the results of all branches, before a crash and after it, and needs no
// commit of its own.
func (suite) AllOrNoneIsAll(t *testing.T) {
	for _, crash := range []bool{false, true} {
		sub(t, map[bool]string{false: "calm", true: "crash"}[crash], func(t *testing.T, k *kit) {
			k.open(allOrNone(k))
			h := startAndSettle(k, allOrNone(k), "1", 0)
			say(k, h.Run(), "one", "")
			require.NoError(t, last.Send(t.Context(), k.e, h.Run(), "two", ""))
			k.pass(time.Hour)
			require.Contains(t, k.info(h.Run()).Status, workflow.Sleeping)
			if crash {
				k.crash()
			}
			returns(k, find(k, allOrNone(k), "1"), []string{"one", "two"})
			require.NoError(t, k.e.Check(t.Context()))
		})
	}
}

// Rule: the commit that decides that a branch has failed abandons the others, and gives back their
// signals. The error stays the same after a crash.
func (suite) AllOrNoneIsNone(t *testing.T) {
	eachDeath(t, func(at death) story {
		return story{
			first: func(k *kit) {
				fails := k.gate("fails")
				k.open(allOrNone(k))
				h := start(k, allOrNone(k), "1", 0)
				say(k, h.Run(), "one", "")
				require.NoError(k.t, last.Send(k.t.Context(), k.e, h.Run(), "fail", ""))
				<-fails.reached
				g := k.hold()
				require.Empty(k.t, pending(k, h.Run()))
				close(fails.open)
				g.endLife(at)
			},
			then: func(k *kit) {
				k.slots = -1
				k.open(allOrNone(k))
				h := find(k, allOrNone(k), "1")
				require.Len(k.t, pending(k, h.Run()), map[death]int{before: 0, after: 1}[at])
				k.restartWithSlots(8)
				returns(k, find(k, allOrNone(k), "1"), []string{`branch "b": planned`})
				require.Equal(k.t, []string{"one"}, pending(k, h.Run()))
				require.NoError(k.t, k.e.Check(k.t.Context()))
			},
		}
	})
}
