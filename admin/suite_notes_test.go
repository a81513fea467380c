package admin

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Operators see what attempts noted, wherever the queue is.
func TestSuiteNotes(t *testing.T) { runSuite(t, noteCases) }

// noting runs job "first", which noted its progress and logs, and adds job "second".
func noting(f *fixture) {
	l := f.run(pawl.Envelope{Kind: "first", Queue: pawl.DefaultQueue})
	l.Started = f.now()
	notes := driver.NewNotes(f.q)
	ctx := driver.RunContext(f.t.Context(), f.q, l, notes)
	job := &pawl.Job[string]{Envelope: l.Envelope, Lease: l}
	job.Progress(412, 10_000, "page \xff")
	pawl.Log(ctx).Info("begun", "page", 412)
	_, err := notes.Store(ctx)
	require.NoError(f.t, err)
	f.add(pawl.Envelope{Kind: "second"})
}

var noteCases = []suiteCase{
	{"the progress of jobs is read together, without those that noted none", noting, nil, func(t *testing.T, s *suiteTest) {
		all, err := s.Progress(t.Context(), s.ids["second"], s.ids["first"], pawl.ID{1})
		require.NoError(t, err)
		require.Len(t, all, 1)
		require.Equal(t, s.ids["first"], all[0].ID)
		require.Equal(t, fmt.Sprint("412/10000 4% page ", "\xff"), all[0].String())
		_, err = s.Progress(t.Context(), make([]pawl.ID, MaxIDs+1)...)
		require.ErrorIs(t, err, pawl.ErrInvalid)
	}},
	{"the logs of a job are read, and a job that is not there is not found", noting, nil, func(t *testing.T, s *suiteTest) {
		logs, err := s.Logs(t.Context(), s.ids["first"])
		require.NoError(t, err)
		require.Len(t, logs, 1)
		require.Equal(t, 1, logs[0].Attempt)
		require.Contains(t, logs[0].Head, "level=INFO msg=begun page=412\n")
		logs, err = s.Logs(t.Context(), s.ids["second"])
		require.NoError(t, err)
		require.Empty(t, logs)
		_, err = s.Logs(t.Context(), pawl.ID{1})
		require.ErrorIs(t, err, pawl.ErrNotFound)
	}},
}
