package workflow

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/worker"
)

// leased is the execution of a run that a test holds the lease of.
func leased(d *desk) *execution {
	run := d.start("1")
	return newExecution(context.Background(), d.Engine, note, run, d.lease(run))
}

// Rule: an entry that one scope left and another takes along does not overwrite what became of
// it meanwhile, however late that other comes to write.
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

// Rule: who read the row of a run and is slow takes nothing back of what was heeded since.
func TestReviewOldRowIsNotHeeded(t *testing.T) {
	x := leased(newDesk(t))
	x.heed(&runRow{Paused: true, Changes: 7})
	x.heed(&runRow{Changes: 6})
	require.True(t, x.paused)
	x.heed(&runRow{Changes: 8})
	require.False(t, x.paused)
}

// Rule: a run that was suspended while its worker stopped is no failure of the handler.
func TestReviewSuspendedWhileTheWorkerStops(t *testing.T) {
	x := leased(newDesk(t))
	require.ErrorIs(t, x.stoppedBy(worker.ErrStopping), worker.ErrStopping)
	x.lease.MarkSettled()
	require.NoError(t, x.stoppedBy(worker.ErrStopping))
}
