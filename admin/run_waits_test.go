package admin

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/workflow"
)

// Rule: what a run waits for has the names that 'jobctl wf signal' takes, and the time of a later begin.
func TestWaitsForNamesSignals(t *testing.T) {
	moment := func(at time.Time) string { return at.UTC().Format("15:04") }
	noon := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	pending := func(kind workflow.EntryKind, scope, name string, occurrence int, due time.Time) workflow.Entry {
		return workflow.Entry{Kind: kind, Scope: scope, Name: name, Occurrence: occurrence, State: workflow.EntryPending, Due: due}
	}
	for _, test := range []struct {
		run  workflow.Info
		all  []workflow.Entry
		want []string
	}{
		{workflow.Info{Status: workflow.Waiting, Waits: []string{"approved"}}, []workflow.Entry{pending(workflow.KindWait, "", "approved", 1, noon)},
			[]string{"signal approved until 12:00"}},
		{workflow.Info{Status: workflow.Waiting, Waits: []string{"approved"}}, []workflow.Entry{pending(workflow.KindWait, "", "approved", 2, time.Time{})},
			[]string{"signal approved (approved#2)"}},
		{workflow.Info{Status: workflow.Waiting, Waits: []string{"gave up", "reserve"}}, []workflow.Entry{pending(workflow.KindSelect, "", "next", 1, noon)},
			[]string{"select next until 12:00", "any of these signals: gave up, reserve"}},
		{workflow.Info{Status: workflow.Waiting, Waits: []string{"approved"}},
			[]workflow.Entry{pending(workflow.KindSelect, "", "next", 1, noon), pending(workflow.KindWait, "side", "approved", 1, time.Time{})},
			[]string{"select next until 12:00", "signal approved (side/approved)"}},
		{workflow.Info{Status: workflow.Sleeping}, []workflow.Entry{pending(workflow.KindSelect, "", "next", 1, noon)}, []string{"select next until 12:00"}},
		{workflow.Info{Status: workflow.Sleeping, Due: noon}, nil, []string{"its begin at 12:00; 'jobctl wf resume' lets it begin at once"}},
		{workflow.Info{Status: workflow.Sleeping, Due: noon, Error: "its job is tried again: no room"}, nil, nil},
	} {
		w := &WorkflowRun{Info: test.run, Journal: test.all}
		require.Equal(t, test.want, w.WaitsFor(JobOfRun{}, moment))
	}
}

// atWork is an Admin of one leased job, whose progress was noted at a time.
type atWork struct {
	scripted
	at time.Time
}

func (a *atWork) Job(_ context.Context, id pawl.ID) (*pawl.Envelope, error) {
	return &pawl.Envelope{ID: id, State: pawl.Leased, LeasedSince: time.Unix(100, 0)}, nil
}

func (a *atWork) Progress(context.Context, ...pawl.ID) ([]JobProgress, error) {
	if a.at.IsZero() {
		return nil, &UnsupportedError{"logs"}
	}
	return []JobProgress{{Progress: pawl.Progress{Text: "charge", At: a.at}}}, nil
}

// Rule: a run works on what its job has noted since its lease began. Nothing else is known where no progress is kept.
func TestStepsOfThisLease(t *testing.T) {
	for at, want := range map[time.Time]string{time.Unix(100, 0): "charge", time.Unix(99, 0): "", {}: ""} {
		j, err := LookAtJob(t.Context(), &atWork{at: at}, &workflow.Info{Status: workflow.Running})
		require.NoError(t, err)
		require.Equal(t, want, j.Steps)
	}
}
