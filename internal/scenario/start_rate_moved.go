package scenario

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/workflow"
)

// Rule: a run that gets the place of its key while the rate of its flow is used up begins as soon as the rate lets it.
func (suite) PlaceComesBeforeTheRate(t *testing.T, k *kit) {
	f := desk(k, workflow.MaxOpenPerKey(1), workflow.StartRate(every(time.Minute)))
	k.open(f)
	runs := queueUp(k, f, "a", "a")
	k.pass(time.Minute)
	_, err := f.Start(t.Context(), k.e, "2", 2, workflow.Key("b"))
	require.NoError(t, err)
	served(k, 0, 2)
	require.Equal(t, "key a", k.info(runs[1].Run()).Place)
	k.pass(time.Second)
	bye(k, runs[0])
	require.Equal(t, "flow desk", k.info(runs[1].Run()).Rate)
	k.pass(59*time.Second - 1)
	served(k, 0, 2)
	k.pass(1)
	served(k, 0, 2, 1)
}

// Rule: a run that waits for a place of its flow, and whose key has a rate from now on, begins as soon as that rate lets it.
func (suite) RateOfKeysIsAdded(t *testing.T, k *kit) {
	old := desk(k, workflow.MaxOpen(1))
	k.open(old)
	runs := queueUp(k, old, "x", "a", "a")
	k.restart("2", desk(k, workflow.MaxOpen(1), workflow.StartRatePerKey(every(time.Minute))))
	bye(k, runs[0])
	served(k, 0, 1)
	bye(k, runs[1])
	require.Equal(t, "key a", k.info(runs[2].Run()).Rate)
	k.pass(time.Minute - 1)
	served(k, 0, 1)
	k.pass(1)
	served(k, 0, 1, 2)
}

// Rule: a paused run that misses its turn waits until it is resumed, also if the run that gets its place waits for the
// rate.
func (suite) PausedRunGivesItsPlace(t *testing.T, k *kit) {
	f := desk(k, workflow.MaxOpenPerKey(1), workflow.StartRate(every(time.Minute)))
	k.open(f)
	runs := queueUp(k, f, "a", "b", "c", "b")
	require.Equal(t, "key b", k.info(runs[3].Run()).Place)
	require.NoError(t, k.e.Pause(t.Context(), runs[1].Run()))
	k.pass(time.Minute)
	served(k, 0, 2)
	require.Equal(t, "flow desk", k.info(runs[3].Run()).Rate)
	job, err := k.q.Job(t.Context(), runs[1].Run())
	require.NoError(t, err)
	require.Equal(t, pawl.Delayed, job.State)
	require.Greater(t, job.NotBefore.Sub(k.now()), 24*time.Hour, "nothing but a resume wakes it")
	k.pass(time.Minute)
	served(k, 0, 2, 3)
	bye(k, runs[3])
	require.NoError(t, k.e.Resume(t.Context(), runs[1].Run()))
	k.pass(time.Minute)
	served(k, 0, 2, 3, 1)
}
