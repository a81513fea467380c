package admin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// faulty is an Admin with one failing call.
type faulty struct {
	Admin
	left    int   // calls before it
	failure error // of that call
	after   int   // changes that were tried after it
}

func (a *faulty) call(change bool) error {
	a.left--
	switch {
	case a.left == -1:
		return a.failure
	case a.left < -1 && change:
		a.after++
	}
	return nil
}

func (a *faulty) Stats(ctx context.Context) (Stats, error) {
	if err := a.call(false); err != nil {
		return Stats{}, err
	}
	return a.Admin.Stats(ctx)
}

func (a *faulty) List(ctx context.Context, q Query) (Page, error) {
	if err := a.call(false); err != nil {
		return Page{}, err
	}
	return a.Admin.List(ctx, q)
}

func (a *faulty) Job(ctx context.Context, id pawl.ID) (*pawl.Envelope, error) {
	if err := a.call(false); err != nil {
		return nil, err
	}
	return a.Admin.Job(ctx, id)
}

func (a *faulty) Effects(ctx context.Context, after string) ([]driver.Effect, string, error) {
	if err := a.call(false); err != nil {
		return nil, "", err
	}
	return a.Admin.Effects(ctx, after)
}

func (a *faulty) Pause(ctx context.Context, queue string) error {
	if err := a.call(true); err != nil {
		return err
	}
	return a.Admin.Pause(ctx, queue)
}

func (a *faulty) Restore(ctx context.Context, jobs []*pawl.Envelope, effects []driver.Effect) error {
	if err := a.call(true); err != nil {
		return err
	}
	return a.Admin.Restore(ctx, jobs, effects)
}

// Rule: whichever call fails, an export returns the error and has no last line.
func TestExportWithFaults(t *testing.T) {
	q := simpleQueue(t, MaxLimit+1, nil)
	require.NoError(t, q.Restore(t.Context(), nil, []driver.Effect{{Kind: "k", Key: "x", Until: time.Now().Add(time.Hour)}}))
	calls := 0
	for ; ; calls++ {
		var b bytes.Buffer
		a := &faulty{Admin: Of(q), left: calls, failure: errWatched}
		_, err := Export(t.Context(), a, &b, nil)
		if err == nil {
			break
		}
		require.ErrorIs(t, err, errWatched)
		require.NotContains(t, b.String(), `{"end"`)
	}
	require.GreaterOrEqual(t, calls, 4, "statistics, two pages, keys")
}

// Rule: unreadable keys without a next position do not silently end an export.
func TestExportOfDamagedKeys(t *testing.T) {
	q := simpleQueue(t, 1, nil)
	var b bytes.Buffer
	exported, err := Export(t.Context(), &faulty{Admin: Of(q), left: 2, failure: pawl.ErrCorrupt}, &b, nil)
	require.NoError(t, err)
	require.EqualValues(t, 1, exported.Damaged)
	require.ErrorContains(t, exported.Damage[0].Err, "keys behind it may be missing")
}

// Rule: whichever call fails, an import ends there, and repeating it continues: finally
// everything is there once.
func TestImportWithFaults(t *testing.T) {
	for _, n := range []int{2, MaxLimit + 1} {
		from := simpleQueue(t, n, nil)
		require.NoError(t, from.Pause(t.Context(), "default"))
		require.NoError(t, from.Restore(t.Context(), nil, []driver.Effect{{Kind: "k", Key: "x", Until: time.Now().Add(time.Hour)}}))
		export := exportOf(t, Of(from))
		calls := 0
		for ; ; calls++ {
			to := transferQueue(t)
			a := &faulty{Admin: Of(to), left: calls, failure: errWatched}
			imported, err := Import(t.Context(), a, strings.NewReader(export), &ImportOptions{KeepIDs: true})
			require.Len(t, jobsIn(t, to), int(imported.Jobs))
			if err != nil {
				require.ErrorIs(t, err, errWatched)
				require.Zero(t, a.after, "nothing is tried behind it")
				require.Contains(t, err.Error(), "stored")
				_, err = Import(t.Context(), Of(to), strings.NewReader(export), &ImportOptions{KeepIDs: true, SkipExisting: true})
				require.NoError(t, err)
			}
			requireSameJobs(t, from, to)
			require.Equal(t, pausedIn(t, from), pausedIn(t, to))
			if a.left >= 0 {
				break
			}
		}
		require.GreaterOrEqual(t, calls, 4, "%d jobs: look, pause, keys, jobs", n)
	}
}

// Rule: an unreadable job of the target counts as existing.
func TestImportOfAJobThatIsDamagedInTheTarget(t *testing.T) {
	w := &watched{}
	a := &faulty{Admin: w, left: 0, failure: fmt.Errorf("x: %w", pawl.ErrCorrupt)}
	imported, err := Import(t.Context(), a, strings.NewReader(exportLines(jobLine(simpleJob(1, nil)))), &ImportOptions{KeepIDs: true, SkipExisting: true})
	require.NoError(t, err)
	require.EqualValues(t, 1, imported.Skipped)
	require.Empty(t, w.changes)
}

// Rule: an unknown outcome is not reported as a refusal, whatever else the error matches.
func TestImportOfUnknownOutcome(t *testing.T) {
	w := &watched{before: func([]*pawl.Envelope) error { return errors.Join(pawl.ErrUnknownOutcome, pawl.ErrPoisoned) }}
	_, err := Import(t.Context(), w, strings.NewReader(exportLines(jobLine(simpleJob(1, nil)))), nil)
	require.ErrorIs(t, err, pawl.ErrUnknownOutcome)
	require.ErrorContains(t, err, "line 2: job 01000000-0000-7000-8000-000000000001: perhaps not stored")
	require.ErrorContains(t, err, "importing again would store these twice")
}

// broken is a disk that is unreadable after some bytes.
type broken struct {
	*strings.Reader
	sound int64
}

func (b *broken) Read(p []byte) (int, error) {
	if at, _ := b.Reader.Seek(0, io.SeekCurrent); at >= b.sound {
		return 0, errWatched
	}
	return b.Reader.Read(p[:min(len(p), 100)])
}

// Rule: unreadable input is not mistaken for an invalid export.
func TestImportFromABrokenDisk(t *testing.T) {
	export := exportLines(mixedLines()...)
	for _, sound := range []int64{0, 500} {
		w := &watched{}
		_, err := Import(t.Context(), w, &broken{strings.NewReader(export), sound}, nil)
		require.ErrorIs(t, err, errWatched)
		require.NotErrorIs(t, err, pawl.ErrInvalid)
		require.ErrorContains(t, err, "nothing was stored")
		require.Empty(t, w.changes)
	}
}
