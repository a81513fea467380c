package workflow

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// bigResult does not fit into its entry.
var bigResult = bytes.Repeat([]byte("r"), 3*maxInline)

// forked is a journal with two branches, of which one waits, and an undo step with a call.
func forked() []*entry {
	return []*entry{
		{Name: "reserve", At: 0, Kind: KindStep, State: EntryDone, Result: []byte("1")},
		{Name: "tax", At: -1, Kind: KindVersion, State: EntryDone, Result: []byte("2")},
		{Name: "eu", At: 1, Kind: KindBranch, State: EntryBegun},
		{Name: "us", At: 2, Kind: KindBranch, State: EntryBegun},
		{Scope: "eu", Name: "fetch", At: 0, Kind: KindStep, State: EntryDone, Result: bigResult},
		{Scope: "us", Name: "fetch", At: 0, Kind: KindStep, State: EntryPending},
		{Scope: "us", Name: "fetch", At: 1, Kind: KindStep, State: EntryDone, Occurrence: 2}, // behind a call that waits
		{Scope: "eu", Name: "fetch", At: 1, Kind: KindStep, State: EntryFailed, Occurrence: 2, Error: "no route", Attempts: 3,
			Chain: []errorText{{Type: "*errors.errorString", Text: "no route"}}},
		{Name: "ledger", At: 3, Kind: KindStepTx, State: EntryDone, Result: []byte("7")},
		{Scope: undoScope, Name: "release", At: 0, Kind: KindUndo, State: EntryBegun},
		{Scope: undoScope + "/release", Name: "call", At: 0, Kind: KindStep, State: EntryDone},
		{Name: "ship", At: 4, Kind: KindStep, State: EntryPending},
	}
}

func (d *desk) steps(run pawl.ID) (steps []string) {
	d.t.Helper()
	journal, err := d.Journal(d.t.Context(), run, false)
	require.NoError(d.t, err)
	for _, e := range journal {
		steps = append(steps, e.Step())
	}
	return steps
}

// A fork has the calls that began before the step and have ended, unchanged, and nothing later:
// neither the step itself, nor undo steps, nor a call behind a waiting one.
func TestForkTakesOverWhatWasBefore(t *testing.T) {
	cases := map[string][]string{
		"":           nil,
		"reserve":    nil,
		"tax":        {"reserve"},
		"eu":         {"reserve", "tax"},
		"us":         {"reserve", "tax", "eu"},
		"eu/fetch":   {"reserve", "tax", "eu", "us"},
		"us/fetch":   {"reserve", "tax", "eu", "us", "eu/fetch"},
		"eu/fetch#2": {"reserve", "tax", "eu", "us", "eu/fetch"},
		"ledger":     {"reserve", "tax", "eu", "us", "eu/fetch", "eu/fetch#2"},
		"ship":       {"reserve", "tax", "eu", "us", "eu/fetch", "eu/fetch#2", "ledger"},
	}
	d := newDesk(t)
	old := d.start("a")
	d.journal(old, forked()...)
	require.NoError(t, d.Send(t.Context(), old, "news", []byte("x"), ""))
	d.write(func(r rows) error { return r.put(tablePublished, runAnd(old, "percent"), []byte("40")) })
	before := d.read(old)
	for from, want := range cases {
		t.Run("from "+from, func(t *testing.T) {
			run, err := d.Fork(t.Context(), old, from, "fork of "+from)
			require.NoError(t, err)
			require.Equal(t, want, d.steps(run))
			row := d.read(run)
			require.Equal(t, len(want), row.Steps)
			require.Zero(t, row.Unread)
			signals, err := d.Signals(t.Context(), run)
			require.NoError(t, err)
			require.Empty(t, signals)
			published, err := d.Published(t.Context(), run)
			require.NoError(t, err)
			require.Empty(t, published)
		})
	}
	require.Equal(t, before, d.read(old))
	require.Len(t, d.steps(old), len(forked()))
}

// The entries of a fork equal those of the other run, with their results and errors, even if a
// result is stored apart.
func TestForkCopiesResults(t *testing.T) {
	d := newDesk(t)
	old := d.start("a")
	d.journal(old, forked()...)
	run, err := d.Fork(t.Context(), old, "ship", "b")
	require.NoError(t, err)
	read := func(run pawl.ID) (all []*entry) {
		require.NoError(t, d.file.ViewRows(t.Context(), func(tx driver.Reader) (err error) {
			if all, err = rowsOf(tx).entries(run, 0); err != nil {
				return err
			}
			for _, e := range all {
				if e.Result, err = rowsOf(tx).value(run, e); err != nil {
					return err
				}
			}
			return nil
		}))
		return all
	}
	was := read(old)
	require.Equal(t, []*entry{was[0], was[1], was[2], was[3], was[4], was[7], was[8]}, read(run))
	failed := len("no route") + len("*errors.errorString") + len("no route")
	require.EqualValues(t, 3+len(bigResult)+failed, d.read(run).Bytes)
}

// A fork is like a run that was just started, and says where it comes from.
func TestForkStartsARun(t *testing.T) {
	for _, status := range []Status{Running, Done} {
		d := newDesk(t)
		old := d.start("a")
		d.edit(old, func(row *runRow) {
			row.Parent, row.ParentSeq, row.Restarts, row.Cancel = pawl.NewID(d.now()), 3, 2, "why"
		})
		if status.Ended() {
			d.end(old, status)
		}
		d.pass(1)
		run, err := d.Fork(t.Context(), old, "", "b")
		require.NoError(t, err)

		started := d.read(d.start("c"))
		started.ID, started.Forked, started.Input, started.Fingerprint = "b", old, d.read(old).Input, d.read(old).Fingerprint
		require.Equal(t, started, d.read(run))
		found, err := d.Find(t.Context(), "note", "b")
		require.NoError(t, err)
		require.Equal(t, run, found)
		require.Equal(t, pawl.Ready, d.jobState(run))
		mine, err := d.Input(t.Context(), run)
		require.NoError(t, err)
		his, err := d.Input(t.Context(), old)
		require.NoError(t, err)
		require.Equal(t, his, mine)
		info, err := d.Info(t.Context(), run)
		require.NoError(t, err)
		require.Equal(t, old, info.Forked)
	}
}

// A refused fork leaves nothing: neither rows nor a job.
func TestForksThatAreRefused(t *testing.T) {
	d := newDesk(t)
	old := d.start("a")
	d.journal(old, forked()...)

	_, err := d.Fork(t.Context(), old, "ledgre", "b")
	require.ErrorIs(t, err, pawl.ErrInvalid)
	require.ErrorContains(t, err, "reserve, tax, eu, us, eu/fetch, us/fetch, us/fetch#2, eu/fetch#2, ledger, ship")
	require.NotContains(t, err.Error(), "release")
	_, err = d.Fork(t.Context(), old, undoScope+"/release", "b")
	require.ErrorIs(t, err, pawl.ErrInvalid)
	_, err = d.Fork(t.Context(), old, "", "a")
	require.ErrorIs(t, err, ErrConflict)
	_, err = d.Fork(t.Context(), old, "", "")
	require.ErrorIs(t, err, pawl.ErrInvalid)
	_, err = d.Fork(t.Context(), pawl.NewID(d.now()), "", "b")
	require.ErrorIs(t, err, ErrNotFound)

	d.spoil(tableBlobs, seqKey(old, 5))
	_, err = d.Fork(t.Context(), old, "ship", "b")
	require.ErrorIs(t, err, pawl.ErrCorrupt)

	stats, err := d.file.Stats(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 1, stats.Queues[0].Ready)
	listing, err := d.List(t.Context(), Filter{}, "", 10)
	require.NoError(t, err)
	require.Len(t, listing.Runs, 1)
}

// The error for an unknown step is short, however long the journal is.
func TestForkListsSomeSteps(t *testing.T) {
	d := newDesk(t)
	old := d.start("a")
	var all []*entry
	for i := range maxSteps + 7 {
		all = append(all, &entry{Name: fmt.Sprintf("s%d", i), At: i, Kind: KindStep, State: EntryDone})
	}
	d.journal(old, all...)
	_, err := d.Fork(t.Context(), old, strings.Repeat("s", 1<<10), "b")
	require.ErrorContains(t, err, ", s49, and 7 more")
	require.Less(t, len(err.Error()), 1<<10)
}
