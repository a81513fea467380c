package admin

import (
	"bytes"
	"errors"
	"io"
	"net/http/httptest"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/bolt/offline"
	"github.com/gopawl/pawl/workflow"
)

// The engines of this repository have every operation.
var (
	_ FileStore = (*bolt.Queue)(nil)
	_ interface {
		Checker
		Backuper
		Listener
		workflow.Store
	} = (*bolt.Queue)(nil)
	_ OfflineFile = (*offline.File)(nil)
	_ interface {
		Checker
		Backuper
		workflow.Store
	} = (*offline.File)(nil)
)

// bare is a store that has only what every store has.
type bare struct{ Store }

// Rule: an operation that the engine lacks is refused by its name, in the
// process and through a client. Everything else works, and an export has no runs.
func TestMissingOperationIsRefusedByName(t *testing.T) {
	f := newFixture(t, everyState)
	server := httptest.NewServer(handlerFor(t, Of(bare{f.q}), &HandlerOptions{Token: "t", Logger: hclog.NewNullLogger()}))
	t.Cleanup(server.Close)
	remote, err := Dial(t.Context(), server.URL, &DialOptions{Token: "t"})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, remote.Close()) })

	for name, a := range map[string]Admin{"Of": Of(bare{f.q}), "Dial": remote} {
		t.Run(name, func(t *testing.T) {
			for operation, calls := range map[string][]func() error{
				"check":  {func() error { return a.Check(t.Context()) }},
				"backup": {func() error { return a.Backup(t.Context(), io.Discard) }},
				"events": {func() error {
					for _, err := range a.Events(t.Context()) {
						return err
					}
					return nil
				}},
				"workflows": {
					func() error { _, err := a.Workflows().List(t.Context(), WorkflowQuery{}); return err },
					func() error { _, err := a.Workflows().Fork(t.Context(), f.ids["ready"], "1", "new"); return err },
					func() error { return a.Workflows().Verify(t.Context(), f.ids["ready"]) },
				},
			} {
				for _, call := range calls {
					err := call()
					require.ErrorIs(t, err, errors.ErrUnsupported)
					var lacks *UnsupportedError
					require.ErrorAs(t, err, &lacks)
					require.Equal(t, operation, lacks.Operation)
				}
			}
			require.Len(t, readPages(t, a, Query{}), len(suiteStates))
			stats, err := a.Stats(t.Context())
			require.NoError(t, err)
			require.Len(t, stats.Queues, 3)
			errs, err := a.Do(t.Context(), Action{Verb: Cancel, DryRun: true}, f.ids["ready"])
			require.NoError(t, err)
			require.Equal(t, []error{nil}, errs)
			var all bytes.Buffer
			exported, err := Export(t.Context(), a, &all, nil)
			require.NoError(t, err)
			require.EqualValues(t, len(suiteStates), exported.Jobs)
		})
	}
}

// Rule: on an engine that keeps no runs, a job of the kind of a run is an ordinary job.
func TestJobOfARunWithoutRuns(t *testing.T) {
	f := newFixture(t, nil)
	f.add(pawl.Envelope{Kind: workflow.KindPrefix + "flow"})
	a, id := Of(bare{f.q}), f.ids[workflow.KindPrefix+"flow"]
	var all bytes.Buffer
	exported, err := Export(t.Context(), a, &all, nil)
	require.NoError(t, err)
	require.EqualValues(t, 1, exported.Jobs)
	errs, err := a.Do(t.Context(), Action{Verb: Cancel}, id)
	require.NoError(t, err)
	require.Equal(t, []error{nil}, errs)
	job, err := a.Job(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, pawl.Dead, job.State)
}
