package workflow

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/worker"
)

// leased makes the execution of a run whose lease the test holds.
func leased(d *desk) *execution {
	run := d.start("1")
	return newExecution(context.Background(), d.Engine, note, run, d.lease(run))
}

// Rule: if one scope left an entry to another's write, that write does not overwrite the
// entry's later state, however late it happens.
func TestReviewLateCheckpointOverwritesNothing(t *testing.T) {
	for name, goOn := range map[string]func(*entry, time.Time){
		"done":          func(e *entry, now time.Time) { e.finish([]byte{1}, now) },
		"failed":        func(e *entry, now time.Time) { e.fail(ErrTimeout, now) },
		"tried once":    func(e *entry, _ time.Time) { e.Attempts++ },
		"nothing of it": nil,
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			x := leased(d)
			e := &entry{seq: 1, Name: "a", Occurrence: 1, Kind: KindStep, State: EntryPending, Attempts: 1, Due: 7}
			x.later(e)
			late := &checkpoint{x.lease, x.take()}
			if goOn != nil {
				goOn(e, d.now())
				require.NoError(t, x.save(e))
			}
			require.NoError(t, d.file.Mutate(t.Context(), late, 0))
			require.NoError(t, d.file.ViewRows(t.Context(), func(tx driver.Reader) error {
				got, err := rowsOf(tx).entry(x.run, 1)
				require.NoError(t, err)
				require.Equal(t, e, got)
				return nil
			}))
		})
	}
}

// Rule: a slow reader of a run's row undoes no newer request.
func TestReviewOldRowIsNotObserved(t *testing.T) {
	x := leased(newDesk(t))
	x.observe(&runRow{Paused: true, Changes: 7})
	x.observe(&runRow{Changes: 6})
	require.True(t, x.paused)
	x.observe(&runRow{Changes: 8})
	require.False(t, x.paused)
}

// Rule: a run that was suspended while its worker stopped is not a failure of the handler.
func TestReviewSuspendedWhileTheWorkerStops(t *testing.T) {
	x := leased(newDesk(t))
	require.ErrorIs(t, x.stoppedBy(worker.ErrStopping), worker.ErrStopping)
	driver.MarkSettled(x.lease)
	require.NoError(t, x.stoppedBy(worker.ErrStopping))
}
