package scenario

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/workflow"
)

// damageJob flips the last byte of the row of a job.
func (k *kit) damageJob(id pawl.ID) {
	k.t.Helper()
	require.NoError(k.t, k.q.Damage(k.t.Context(), id))
}

// repairJob undoes damageJob, unless the engine has found the damage and removed the job.
func (k *kit) repairJob(id pawl.ID) {
	k.t.Helper()
	if err := k.q.Damage(k.t.Context(), id); !errors.Is(err, pawl.ErrNotFound) {
		require.NoError(k.t, err)
	}
}

// Rule: a child with a damaged job keeps neither its parent from ending, nor a race from being
// decided that the waiting branch has lost. A damaged job of the parent does not keep its child
// from ending.
func (suite) ReviewDamagedJobOfARelative(t *testing.T) {
	sub(t, "race", func(t *testing.T, k *kit) {
		_, c := family()
		f := workflow.Define("f", func(r *workflow.Run, _ int) (int, error) {
			loser := workflow.Go(r, "loser", func(r *workflow.Run) (int, error) { return workflow.Call(r, "c", c, 0) })
			winner := workflow.Go(r, "winner", func(r *workflow.Run) (int, error) { return 2, workflow.Sleep(r, "s", time.Minute) })
			_, out, err := workflow.Race(r, "first", winner, loser)
			return out, err
		})
		k.open(f, c)
		h := startAndSettle(k, f, "1", 0)
		child := find(k, c, "1/loser/c").Run()
		k.damageJob(child)
		k.pass(2 * time.Minute)
		require.Equal(t, workflow.Done, k.info(h.Run()).Status, k.info(h.Run()).Error)
		k.repairJob(child)
	})
	sub(t, "end", func(t *testing.T, k *kit) {
		p, c := family()
		k.open(p, c)
		h := startAndSettle(k, p, "1", 0)
		child := find(k, c, "1/c").Run()
		k.damageJob(child)
		require.NoError(t, h.Cancel(t.Context(), "enough"))
		k.pass(time.Minute)
		require.Equal(t, workflow.Cancelled, k.info(h.Run()).Status)
		k.repairJob(child)
	})
	sub(t, "parent", func(t *testing.T, k *kit) {
		p, c := family()
		k.open(p, c)
		h := startAndSettle(k, p, "1", 0)
		child := find(k, c, "1/c").Run()
		k.damageJob(h.Run())
		k.pass(2 * time.Hour)
		require.Equal(t, workflow.Done, k.info(child).Status)
		k.repairJob(h.Run())
	})
}
