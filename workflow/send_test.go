package workflow

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// payloads returns the payloads of a run's unconsumed signals of one name, in order.
func (d *desk) payloads(run pawl.ID, name string) (payloads []string) {
	d.t.Helper()
	signals, err := d.Signals(d.t.Context(), run)
	require.NoError(d.t, err)
	for _, s := range signals {
		if s.Name == name {
			require.Equal(d.t, len(s.Payload), s.Bytes)
			payloads = append(payloads, string(s.Payload))
		}
	}
	return payloads
}

// Signals of one name stay in order of arrival, beside those of other names, and their payloads
// are returned unchanged.
func TestSignalsStayInTheirOrder(t *testing.T) {
	d := newDesk(t)
	run, other := d.start("a"), d.start("b")
	want := []string{"first", "\x00\xff", "", strings.Repeat("x", MaxValue), "last"}
	for _, p := range want {
		require.NoError(t, d.Send(t.Context(), run, "news", []byte(p), ""))
		require.NoError(t, d.Send(t.Context(), run, "newsletter", []byte("of "+p[:min(len(p), 9)]), ""))
	}
	require.NoError(t, d.Send(t.Context(), other, "news", nil, ""))
	require.Equal(t, want, d.payloads(run, "news"))
	require.Len(t, d.payloads(run, "newsletter"), len(want))
	require.Equal(t, []string{""}, d.payloads(other, "news"))

	row := d.read(run)
	require.EqualValues(t, 2*len(want), row.Signals)
	require.Equal(t, 2*len(want), row.Unread)
	info, err := d.Info(t.Context(), run)
	require.NoError(t, err)
	require.Equal(t, 2*len(want), info.Unread)
}

// The number of a signal is never reused, even after earlier signals were consumed.
func TestSignalsAreNumberedOnce(t *testing.T) {
	d := newDesk(t)
	run := d.start("a")
	require.NoError(t, d.Send(t.Context(), run, "news", []byte("1"), ""))
	d.write(func(r rows) error { return r.delete(tableSignals, signalKey(run, "news", 1)) })
	d.edit(run, func(row *runRow) { row.Unread = 0 })
	require.NoError(t, d.Send(t.Context(), run, "news", []byte("2"), ""))
	signals, err := d.Signals(t.Context(), run)
	require.NoError(t, err)
	require.Equal(t, []Pending{{Name: "news", N: 2, Bytes: 1, Payload: []byte("2")}}, signals)
}

// A signal wakes a run that waits for it, and no other. A paused or blocked run sees it when it
// continues.
func TestASignalWakesWhoWaitsForIt(t *testing.T) {
	cases := map[string]struct {
		status Status
		change func(*runRow)
		after  pawl.State
	}{
		"waits":            {Waiting, func(row *runRow) { row.Waits = []string{"else", "news"} }, pawl.Ready},
		"sleeps and waits": {Sleeping, func(row *runRow) { row.Waits = []string{"news"} }, pawl.Ready},
		"waits for others": {Waiting, func(row *runRow) { row.Waits = []string{"new", "newsletter"} }, pawl.Delayed},
		"sleeps":           {Sleeping, nil, pawl.Delayed},
		"is paused":        {Waiting, func(row *runRow) { row.Waits, row.Paused = []string{"news"}, true }, pawl.Delayed},
		"is blocked":       {Blocked, func(row *runRow) { row.Waits = []string{"news"} }, pawl.Delayed},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			run := d.start("a")
			d.suspend(run, c.status, c.change)
			require.NoError(t, d.Send(t.Context(), run, "news", []byte("x"), ""))
			require.Equal(t, c.after, d.jobState(run))
			require.Equal(t, []string{"x"}, d.payloads(run, "news"))
			require.Equal(t, c.status, d.read(run).Status)
		})
	}
}

// A signal is stored whatever the state of the job, and moves only a delayed job.
func TestASignalToAnyJob(t *testing.T) {
	for state, bring := range jobIn {
		if state == pawl.Delayed {
			continue
		}
		d := newDesk(t)
		run := d.start("a")
		bring(d, run)
		d.edit(run, func(row *runRow) { row.Waits = []string{"news"} })
		require.NoError(t, d.Send(t.Context(), run, "news", []byte("x"), ""))
		require.Equal(t, state, d.jobState(run))
		require.Equal(t, []string{"x"}, d.payloads(run, "news"))
	}
}

// Of signals with one deduplication ID a run receives the first, even from many concurrent
// senders, after that was consumed, and after the run has ended. Runs do not share the IDs.
func TestSignalsAreSentOnce(t *testing.T) {
	d := newDesk(t)
	run, other := d.start("a"), d.start("b")
	var all sync.WaitGroup
	errs := make(chan error, 50)
	for range cap(errs) {
		all.Go(func() { errs <- d.Send(t.Context(), run, "news", []byte("x"), "order/1") })
	}
	all.Wait()
	for range cap(errs) {
		require.NoError(t, <-errs)
	}
	require.NoError(t, d.Send(t.Context(), run, "news", []byte("y"), "order/2"))
	require.NoError(t, d.Send(t.Context(), other, "news", []byte("z"), "order/1"))
	require.Equal(t, []string{"x", "y"}, d.payloads(run, "news"))
	require.Equal(t, []string{"z"}, d.payloads(other, "news"))
	require.Equal(t, 2, d.read(run).Unread)

	d.write(func(r rows) error { return r.delete(tableSignals, signalKey(run, "news", 1)) })
	require.NoError(t, d.Send(t.Context(), run, "news", []byte("x"), "order/1"))
	require.Equal(t, []string{"y"}, d.payloads(run, "news"))

	d.end(run, Done)
	require.NoError(t, d.Send(t.Context(), run, "news", []byte("x"), "order/1"))
	require.ErrorIs(t, d.Send(t.Context(), run, "news", []byte("x"), "order/3"), ErrNotRunning)
	require.ErrorIs(t, d.Send(t.Context(), run, "news", []byte("x"), ""), ErrNotRunning)
	require.Equal(t, []string{"y"}, d.payloads(run, "news"))
}

// A refused signal is not stored, and wakes no run.
func TestSignalsThatAreRefused(t *testing.T) {
	d := newDesk(t)
	run := d.start("a")
	d.suspend(run, Waiting, func(row *runRow) { row.Waits = []string{"news"} })
	for _, name := range []string{"", "_news", "a/b", "a#2", "a\x00", strings.Repeat("n", MaxName+1)} {
		require.ErrorIs(t, d.Send(t.Context(), run, name, nil, ""), pawl.ErrInvalid)
	}
	require.ErrorIs(t, d.Send(t.Context(), run, "news", nil, strings.Repeat("d", MaxID+1)), pawl.ErrInvalid)
	require.ErrorIs(t, d.Send(t.Context(), run, "news", make([]byte, MaxValue+1), ""), ErrTooLarge)
	require.ErrorIs(t, d.Send(t.Context(), pawl.NewID(d.now()), "news", nil, ""), ErrNotFound)
	d.edit(run, func(row *runRow) { row.Unread = MaxSignals })
	require.ErrorIs(t, d.Send(t.Context(), run, "news", nil, "order/1"), ErrTooMany)
	require.Empty(t, d.payloads(run, "news"))
	require.Equal(t, pawl.Delayed, d.jobState(run))

	d.edit(run, func(row *runRow) { row.Unread = MaxSignals - 1 })
	require.NoError(t, d.Send(t.Context(), run, "news", nil, "order/1"), "what was refused may be sent again")
	require.Equal(t, pawl.Ready, d.jobState(run))
}

// The documented number of deduplication IDs is known, and older ones are forgotten some time
// later: a signal with a forgotten ID is a new one. If older builds have left many, a send
// removes only some of them.
func TestDeduplicationIsForgotten(t *testing.T) {
	d := newDesk(t)
	run, other := d.start("a"), d.start("b")
	d.write(func(r rows) error {
		for n := range 2 * seenPortion {
			if err := r.put(tableSeen, runAnd(run, fmt.Sprint("old ", n)), []byte("1")); err != nil {
				return err
			}
		}
		return r.put(tableSeen, runAnd(other, "old"), []byte("1"))
	})
	known := func() (n int) {
		require.NoError(t, d.file.ViewRows(t.Context(), func(tx driver.Reader) error {
			return rowsOf(tx).each(tableSeen, run[:], func(_, _ []byte, damage error) error {
				n++
				return damage
			})
		}))
		return n
	}
	send := func(at uint64, dedup string) {
		d.edit(run, func(row *runRow) { row.Signals = at - 1 })
		require.NoError(t, d.Send(t.Context(), run, "news", []byte(dedup), dedup))
	}
	send(2, "second")
	send(2*seenPortion+1, "kept")
	send(seenPortion, "early") // nothing is forgotten before there are MaxSeen
	require.Equal(t, 2*seenPortion+3, known())
	send(MaxSeen+seenPortion, "last")
	require.Equal(t, 4, known(), "the old ones are gone: as many as a portion removes")
	send(MaxSeen+2*seenPortion, "next")
	require.Equal(t, 3, known(), "and what is further back than MaxSeen")
	d.edit(run, func(row *runRow) { row.Unread = 0 })

	send(MaxSeen+2*seenPortion+1, "kept")
	require.EqualValues(t, 0, d.read(run).Unread, "it is known")
	send(MaxSeen+2*seenPortion+1, "second")
	require.EqualValues(t, 1, d.read(run).Unread)
	require.NoError(t, d.Send(t.Context(), other, "news", nil, "old"))
	require.Zero(t, d.read(other).Unread)
}

// Rule: a branch that has lost a race takes no signal, even if it was about to when the race was
// decided. The decision has already looked at what the branch received.
func TestLoserTakesNoSignal(t *testing.T) {
	d := newDesk(t)
	run := d.start("a")
	require.NoError(t, d.Send(t.Context(), run, "word", []byte("hello"), ""))
	x := newExecution(t.Context(), d.Engine, note, run, d.lease(run))
	take := &takeSignal{signals: []string{"word"}, ready: -1, timer: -1, x: x, scope: x.newScope("loser", nil), e: &entry{Scope: "loser", Name: "word", Occurrence: 1, Kind: KindWait, seq: 1}}
	take.scope.abandoned = true
	require.ErrorIs(t, d.file.Mutate(t.Context(), take, 0), ErrAbandoned)
	require.Equal(t, []string{"hello"}, d.payloads(run, "word"))
	take.scope.abandoned = false
	require.NoError(t, d.file.Mutate(t.Context(), take, 0))
	require.Empty(t, d.payloads(run, "word"))
}
