package workflow

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/race"
)

// Every read of a missing run returns that error, whether there are other runs or not.
func TestARunThatThereIsNot(t *testing.T) {
	d := newDesk(t)
	for range 2 {
		ctx, nobody := t.Context(), pawl.NewID(d.now())
		_, err := d.Find(ctx, "note", "nobody")
		require.ErrorIs(t, err, ErrNotFound)
		_, err = d.Info(ctx, nobody)
		require.ErrorIs(t, err, ErrNotFound)
		_, err = d.Journal(ctx, nobody, true)
		require.ErrorIs(t, err, ErrNotFound)
		_, err = d.Input(ctx, nobody)
		require.ErrorIs(t, err, ErrNotFound)
		_, err = d.Output(ctx, nobody)
		require.ErrorIs(t, err, ErrNotFound)
		_, err = d.Signals(ctx, nobody)
		require.ErrorIs(t, err, ErrNotFound)
		_, err = d.Published(ctx, nobody)
		require.ErrorIs(t, err, ErrNotFound)
		d.start("a")
	}
}

// Input and output are what was stored. A run that is not done has no output.
func TestInputAndOutput(t *testing.T) {
	d := newDesk(t)
	run := d.start("a")
	input, err := d.Input(t.Context(), run)
	require.NoError(t, err)
	var text string
	require.NoError(t, driver.DecodePayload(input, &text))
	require.Equal(t, "input of a", text)

	output, err := d.Output(t.Context(), run)
	require.NoError(t, err)
	require.Nil(t, output)
	d.end(run, Failed)
	output, err = d.Output(t.Context(), run)
	require.NoError(t, err)
	require.Nil(t, output)

	d.end(run, Done)
	_, err = d.Output(t.Context(), run)
	require.ErrorIs(t, err, pawl.ErrCorrupt, "it should be there")
	d.write(func(r rows) error { return r.put(tableBlobs, seqKey(run, outputSeq), []byte("out")) })
	output, err = d.Output(t.Context(), run)
	require.NoError(t, err)
	require.Equal(t, []byte("out"), output)
}

// A journal is in the order in which the calls began. It always has sizes, and results on
// request, even if they are stored apart.
func TestJournal(t *testing.T) {
	d := newDesk(t)
	run, other := d.start("a"), d.start("b")
	d.journal(run, forked()...)
	d.journal(other, forked()[:1]...)
	for _, values := range []bool{false, true} {
		journal, err := d.Journal(t.Context(), run, values)
		require.NoError(t, err)
		require.Len(t, journal, len(forked()))
		for i, want := range forked() {
			got := journal[i]
			require.EqualValues(t, i+1, got.Seq)
			require.Equal(t, stepName(want.Scope, want.Name, max(1, want.Occurrence)), got.Step())
			require.Equal(t, want.Kind, got.Kind)
			require.Equal(t, want.State, got.State)
			require.Equal(t, want.Error, got.Error)
			require.Equal(t, len(want.Result), got.Bytes)
			if values && want.State == EntryDone {
				require.Equal(t, want.Result, got.Result)
			} else {
				require.Nil(t, got.Result)
			}
		}
	}
	d.start("c")
	none, err := d.Find(t.Context(), "note", "c")
	require.NoError(t, err)
	journal, err := d.Journal(t.Context(), none, true)
	require.NoError(t, err)
	require.Empty(t, journal)
}

// A damaged row hides no other: an unreadable entry is listed, and the journal of a run whose
// own row is damaged can be read.
func TestJournalWithDamage(t *testing.T) {
	d := newDesk(t)
	run := d.start("a")
	d.journal(run, forked()...)
	d.spoil(tableSteps, seqKey(run, 2))
	d.spoil(tableBlobs, seqKey(run, 5))
	d.spoil(tableRuns, run[:])
	d.write(func(r rows) error {
		return r.put(tableSteps, append(run[:], 1), []byte("stray"))
	})
	journal, err := d.Journal(t.Context(), run, true)
	require.NoError(t, err)
	require.Len(t, journal, len(forked())+1)
	require.Equal(t, "reserve", journal[0].Step())
	require.EqualValues(t, 2, journal[1].Seq)
	require.Contains(t, journal[1].Error, "checksum")
	require.Empty(t, journal[1].State)
	require.Equal(t, "eu/fetch", journal[4].Step())
	require.Equal(t, EntryDone, journal[4].State)
	require.Contains(t, journal[4].Error, "checksum")
	require.Equal(t, "ship", journal[len(forked())-1].Step())
	require.Contains(t, journal[len(forked())].Error, "corrupt")

	journal, err = d.Journal(t.Context(), run, false)
	require.NoError(t, err)
	require.Empty(t, journal[4].Error, "nobody asked for the result")

	_, err = d.Input(t.Context(), run)
	require.ErrorContains(t, err, "table runs")
	d.write(func(r rows) error { return r.put(tableBlobs, seqKey(run, inputSeq), []byte("in")) })
	input, err := d.Input(t.Context(), run)
	require.NoError(t, err)
	require.Equal(t, []byte("in"), input, "a large input is not in the damaged row")
}

// The published values of a run are its own, by key.
func TestPublished(t *testing.T) {
	d := newDesk(t)
	run, other := d.start("a"), d.start("b")
	d.write(func(r rows) error {
		return firstError(
			r.put(tablePublished, runAnd(run, "percent"), []byte("40")),
			r.put(tablePublished, runAnd(run, "stage"), []byte{}),
			r.put(tablePublished, runAnd(other, "percent"), []byte("80")),
		)
	})
	published, err := d.Published(t.Context(), run)
	require.NoError(t, err)
	require.Equal(t, map[string][]byte{"percent": []byte("40"), "stage": {}}, published)
	d.spoil(tablePublished, runAnd(run, "stage"))
	_, err = d.Published(t.Context(), run)
	require.ErrorIs(t, err, pawl.ErrCorrupt)
}

// However many signals wait, their payloads are read only up to the promised amount of memory.
// The other signals have only their sizes.
func TestSignalsAreReadWithinBounds(t *testing.T) {
	race.SkipLone(t)
	d := newDesk(t)
	run := d.start("a")
	const each = MaxJournal / 4
	d.write(func(r rows) error {
		for i := range uint64(6) {
			if err := r.put(tableSignals, signalKey(run, "s", i), make([]byte, each)); err != nil {
				return err
			}
		}
		return nil
	})
	signals, err := d.Signals(t.Context(), run)
	require.NoError(t, err)
	require.Len(t, signals, 6)
	for i, s := range signals {
		require.Equal(t, each, s.Bytes)
		require.Equal(t, i < 4, s.Payload != nil)
	}
	d.spoil(tableSignals, signalKey(run, "s", 5))
	_, err = d.Signals(t.Context(), run)
	require.ErrorIs(t, err, pawl.ErrCorrupt)
}
