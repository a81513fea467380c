package client

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/torture/oracle"
)

// TestJobsAreAsGiven requires that the check of a job passes for each job that a client makes, and that its queues in
// order are not queues of the oracle, since jobs there have keys that several clients use.
func TestJobsAreAsGiven(t *testing.T) {
	for _, name := range inOrder {
		require.NotContains(t, oracle.Queues, name)
	}
	for range 1000 {
		id := pawl.NewID(time.Now())
		require.NoError(t, sameJob(oracle.JobOf(id)))
		e := jobInOrder(id, InOrderFair, "key")
		require.NoError(t, sameJob(e))
		e.Priority++
		require.Error(t, sameJob(e))
	}
}
