package client

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/torture/oracle"
)

// TestJobsAreAsGiven requires that the check of a job passes for each job that a client makes, and that its queue in order
// is none of the oracle's, whose jobs have keys of several clients.
func TestJobsAreAsGiven(t *testing.T) {
	require.NotContains(t, oracle.Queues, InOrder)
	for range 1000 {
		id := pawl.NewID(time.Now())
		require.NoError(t, sameJob(oracle.JobOf(id)))
		e := jobInOrder(id, "key")
		require.NoError(t, sameJob(e))
		e.Priority++
		require.Error(t, sameJob(e))
	}
}
