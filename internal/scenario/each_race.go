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

// Rule: a dry run stops a branch that has lost a race where the run itself does, even at a
// version: it names no undo step that the run has not named.
func (suite) Scenario34VerifyStopsLosersAtVersions(t *testing.T, k *kit) {
	undo := func(context.Context) error { return pawl.RetryAfter(time.Hour, errors.New("not yet")) }
	f := plan(func(r *workflow.Run) (string, error) {
		r.Undo("first", undo, workflow.MaxRetries(5))
		slow := workflow.Go(r, "slow", func(r *workflow.Run) (string, error) {
			if _, err := calls(k, "x")(r); err != nil {
				return "", err
			}
			k.at("behind x")
			if _, err := workflow.Version(r, "v", 1, 2); err != nil {
				return "", err
			}
			r.Undo("late", undo)
			return "", nil
		})
		quick := workflow.Go(r, "quick", func(r *workflow.Run) (string, error) {
			k.at("quick")
			return "", nil
		})
		if _, _, err := workflow.Race(r, "first", quick, slow); err != nil {
			return "", err
		}
		k.at("decided")
		return "", errPlanned
	})
	behind, quick, decided := k.gate("behind x"), k.gate("quick"), k.gate("decided")
	k.open(f)
	h := start(k, f, "1", 0)
	<-behind.reached
	close(quick.open)
	<-decided.reached
	close(behind.open)
	k.settle()
	close(decided.open)
	k.settle()
	require.Contains(t, k.journal(h.Run()), "undo _undo/first pending: not yet")
	require.NoError(t, k.e.Verify(t.Context(), h.Run()))
}

// Rule: a race waits for scopes that have not reached the end of the journal, and for nothing
// that cannot happen: neither for the list of an Each, which makes no calls, nor for a function
// that waits for the race itself, as in an item that a deploy has added.
func (suite) Scenario34RaceBesideEach(t *testing.T) {
	code := func(k *kit, raced string, items ...string) code {
		return func(r *workflow.Run) (string, error) {
			itself := func(item string) string { return item }
			_, err := workflow.Each(r, "item", items, itself, 2, func(r *workflow.Run, item string) (string, error) {
				if item != raced {
					return calls(k, "pay")(r)
				}
				_, out, err := workflow.Race(r, "first", leg(k, r, "quick", "pay", "sleep q"), leg(k, r, "slow", "sleep a", "sleep b"))
				return out, err
			})
			if err != nil {
				return "", err
			}
			return calls(k, "wait")(r)
		}
	}
	sub(t, "after a wake", func(t *testing.T, k *kit) {
		f := plan(code(k, "b", "a", "b"))
		k.open(f)
		h := start(k, f, "1", 0)
		k.crash()
		k.pass(3 * time.Hour)
		require.Equal(t, workflow.Waiting, k.info(h.Run()).Status, k.info(h.Run()).Error)
	})
	sub(t, "in a new item", func(t *testing.T, k *kit) {
		f := plan(code(k, "new", "a"))
		k.open(f)
		startAndSettle(k, f, "1", 0)
		h := rebuild(k, "2", code(k, "new", "a", "new"))
		k.pass(3 * time.Hour)
		require.Equal(t, workflow.Done, k.info(h.Run()).Status, k.info(h.Run()).Error)
	})
}
