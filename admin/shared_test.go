package admin

import (
	"errors"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/withid"
	"github.com/gopawl/pawl/workflow"
)

// Rule: the queue that other processes have open too has running jobs, which are asked to end, but
// neither events nor the code of flows.
func TestShared(t *testing.T) {
	q := openLive(t)
	a := Shared(q)
	job := &pawl.Envelope{Kind: "k"}
	require.NoError(t, withid.Enqueue(t.Context(), a, job))
	_, err := q.Fetch(t.Context(), pawl.Request{Max: 1})
	require.NoError(t, err)
	errs, err := a.Do(t.Context(), Action{Verb: Cancel}, job.ID)
	require.NoError(t, err)
	require.ErrorIs(t, errs[0], ErrCancelRequested)
	for _, err := range a.Events(t.Context()) {
		require.True(t, errors.As(err, new(*UnsupportedError)))
	}
	run, err := suiteNap.Start(t.Context(), workflow.Open(q, &workflow.Options{Logger: hclog.NewNullLogger()}), "1", time.Hour)
	require.NoError(t, err)
	require.ErrorIs(t, a.Workflows().Verify(t.Context(), run.Run()), ErrNotLive)
	stats, err := a.Stats(t.Context())
	require.NoError(t, err)
	require.Nil(t, stats.Process)
}
