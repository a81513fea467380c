package workflow

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

var flows = []Definition{note}

// Runs that another build has blocked are tried again, however many there are. Runs that this
// build has blocked are not.
func TestAnotherBuildTriesBlockedRuns(t *testing.T) {
	d := newDesk(t)
	const n = 2*portion + portion/2
	var theirs []pawl.ID
	for i := range n {
		run := d.start(fmt.Sprint(i))
		d.block(run, "1")
		theirs = append(theirs, run)
	}
	ours := d.start("ours")
	d.block(ours, deskBuild)

	require.NoError(t, d.unblock(t.Context(), flows))
	for _, run := range theirs {
		row := d.read(run)
		require.Equal(t, Running, row.Status)
		require.Empty(t, row.Error)
		require.Empty(t, d.blocked(run))
		require.Equal(t, pawl.Ready, d.jobState(run))
	}
	require.Equal(t, Blocked, d.read(ours).Status)
	require.Equal(t, deskBuild, d.blocked(ours))
	require.Equal(t, pawl.Delayed, d.jobState(ours))
}

// Runs that this build cannot try, or that are held back for another reason, stay blocked.
func TestBlockedRunsThatAreLeftAlone(t *testing.T) {
	other := Define("other", func(*Run, int) (int, error) { return 0, nil })
	cases := map[string]func(*desk, pawl.ID){
		"paused": func(d *desk, run pawl.ID) { d.edit(run, func(row *runRow) { row.Paused = true }) },
		"dead":   func(d *desk, run pawl.ID) { require.NoError(d.t, d.file.Cancel(d.t.Context(), run)) },
		"gone": func(d *desk, run pawl.ID) {
			require.NoError(d.t, d.file.Cancel(d.t.Context(), run))
			require.NoError(d.t, d.file.Delete(d.t.Context(), run))
		},
		"of another flow": nil,
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			run := d.start("a")
			d.block(run, "1")
			flows := flows
			if change == nil {
				flows = []Definition{other}
			} else {
				change(d, run)
			}
			state := d.jobState(run)
			require.NoError(t, d.unblock(t.Context(), flows))
			require.Equal(t, Blocked, d.read(run).Status)
			require.Equal(t, "1", d.blocked(run))
			require.Equal(t, state, d.jobState(run))
		})
	}
}

// Damaged rows keep neither the worker from starting nor other runs from being tried.
func TestDamageDoesNotKeepRunsBlocked(t *testing.T) {
	d := newDesk(t)
	var runs []pawl.ID
	for _, id := range []string{"row", "blocked", "sound"} {
		run := d.start(id)
		d.block(run, "1")
		runs = append(runs, run)
	}
	d.spoil(tableRuns, runs[0][:])
	d.spoil(tableBlocked, runs[1][:])
	d.write(func(r rows) error { return r.w.Put(tableBlocked, []byte("stray"), []byte("x")) })

	require.NoError(t, d.unblock(t.Context(), flows))
	require.Equal(t, pawl.Delayed, d.jobState(runs[0]))
	for _, run := range runs[1:] {
		require.Equal(t, pawl.Ready, d.jobState(run))
		require.Equal(t, Running, d.read(run).Status)
	}
}

// Rows that list an ended or missing run as blocked are removed.
func TestBlockedRowsWithoutARunGo(t *testing.T) {
	d := newDesk(t)
	ended, nobody := d.start("a"), pawl.NewID(d.now())
	d.block(ended, "1")
	d.end(ended, Failed)
	d.write(func(r rows) error { return r.put(tableBlocked, nobody[:], []byte("1")) })
	require.NoError(t, d.unblock(t.Context(), flows))
	require.Empty(t, d.blocked(ended))
	require.Empty(t, d.blocked(nobody))
	require.Equal(t, Failed, d.read(ended).Status)
	require.Equal(t, pawl.Delayed, d.jobState(ended))
}

// Without any workflow there is nothing to do.
func TestUnblockNothing(t *testing.T) {
	require.NoError(t, newDesk(t).unblock(t.Context(), flows))
}
