package admin

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/dlq"
	"github.com/gopawl/pawl/internal/withid"
)

// A dead job that changed while it was being forwarded is not restored, and one that was already
// forwarded counts as forwarded.
func TestForwardOfADeadJobThatMoved(t *testing.T) {
	f := newFixture(t, everyState)
	deadJob, err := f.q.Job(t.Context(), f.ids["dead"])
	require.NoError(t, err)
	sink := dlq.ToQueue(inPlace{q: f.q}, "letters")
	require.NoError(t, sink.Store(t.Context(), deadJob))
	require.NoError(t, sink.Store(t.Context(), deadJob), "the second of two at a time")

	deadJob, err = f.q.Job(t.Context(), f.ids["dead twice"])
	require.NoError(t, err)
	require.NoError(t, f.q.Retry(t.Context(), deadJob.ID, false))
	require.ErrorIs(t, sink.Store(t.Context(), deadJob), pawl.ErrConflict)
	require.NoError(t, f.q.Cancel(t.Context(), deadJob.ID))
	require.NoError(t, f.q.Delete(t.Context(), deadJob.ID))
	require.ErrorIs(t, sink.Store(t.Context(), deadJob), pawl.ErrNotFound)
	_, err = f.q.Job(t.Context(), deadJob.ID)
	require.ErrorIs(t, err, pawl.ErrNotFound)
}

// Rule: an action that stops after a part of its jobs has an unknown outcome, except a dry run;
// one that stops before the first has not.
func TestActionThatStopsInTheMiddle(t *testing.T) {
	ids := []pawl.ID{pawl.NewID(time.Now()), pawl.NewID(time.Now())}
	do := func(dry bool, errs ...error) error {
		_, err := Action{Verb: Forward, DryRun: dry}.on(ids, MaxIDs, func(*pawl.Change, pawl.Condition, []pawl.ID) ([]error, error) { return errs, nil })
		return err
	}
	require.NoError(t, do(false, nil, pawl.ErrNotFound))
	for _, end := range []error{pawl.ErrClosed, pawl.ErrPoisoned, pawl.ErrNotAccepted} {
		require.ErrorIs(t, do(false, nil, end), pawl.ErrUnknownOutcome)
		require.ErrorIs(t, do(false, nil, end), end)
		require.NotErrorIs(t, do(false, end, end), pawl.ErrUnknownOutcome)
		require.NotErrorIs(t, do(true, nil, end), pawl.ErrUnknownOutcome)
	}
}

// breaking is a store whose connection breaks during a change.
type breaking struct {
	*bolt.Queue
	errs []error
	err  error
}

func (b *breaking) Change(context.Context, pawl.Change, ...pawl.ID) ([]error, error) {
	return b.errs, b.err
}

// Rule: an unknown outcome alone does not end an action. It is the result of each job that it
// concerns, and the caller goes on with others.
func TestActionOfUnknownOutcome(t *testing.T) {
	ids := []pawl.ID{pawl.NewID(time.Now()), pawl.NewID(time.Now())}
	broken := fmt.Errorf("connection reset: %w", pawl.ErrUnknownOutcome)
	do := func(errs []error, err error) ([]error, error) {
		return direct{q: &breaking{errs: errs, err: err}}.do(t.Context(), Action{Verb: Retry}, ids)
	}
	errs, err := do([]error{nil, broken}, nil)
	require.NoError(t, err)
	require.Equal(t, []error{nil, broken}, errs)
	errs, err = do(nil, broken)
	require.NoError(t, err)
	require.Equal(t, []error{broken, broken}, errs, "of the transaction of both")
	for _, over := range []error{pawl.ErrPoisoned, pawl.ErrClosed} {
		_, err = do(nil, errors.Join(broken, over))
		require.ErrorIs(t, err, over)
		require.ErrorIs(t, err, pawl.ErrUnknownOutcome)
	}
}

// Rule: a cancel of unknown outcome concerns the jobs that it tried. The job of a workflow run that
// was refused before stays refused.
func TestCancelOfUnknownOutcome(t *testing.T) {
	f := newFixture(t, someRuns)
	broken := fmt.Errorf("connection reset: %w", pawl.ErrUnknownOutcome)
	job := &pawl.Envelope{Kind: "k"}
	require.NoError(t, withid.Enqueue(t.Context(), f.q, job))
	errs, err := direct{q: &breaking{Queue: f.q, err: broken}}.do(t.Context(), Action{Verb: Cancel}, []pawl.ID{runsByName["order:1"], job.ID})
	require.NoError(t, err)
	require.ErrorIs(t, errs[0], ErrWorkflowJob)
	require.NotErrorIs(t, errs[0], pawl.ErrUnknownOutcome)
	require.Equal(t, broken, errs[1])
}
