package scenario

import (
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/workflow"
)

// judge compares the final file with the oracle's knowledge.
func (o *oracle) judge() {
	k, t := o.k, o.k.t
	t.Helper()
	o.sound()
	require.NoError(t, k.e.Check(t.Context()))
	for _, run := range o.runs() {
		o.judgeEnd(run)
		o.judgeUndone(run)
		o.judgeJournal(run)
	}
	for id, n := range k.counters() {
		require.EqualValues(t, 1, n, "transactions of %s", id)
	}
}

// behindSignalGivenBack reports whether an undo step was named by a branch that gave back a
// signal, or by one that waited for such a branch or was begun by it: an undo step named after
// the signal does not run.
func (o *oracle) behindSignalGivenBack(id identity) bool {
	scope := func(step string) string { return step[:strings.LastIndexByte(step, '/')+1] }
	own := scope(strings.TrimPrefix(id.step, "undo "))
	for back := range o.back {
		if of := scope(back.step); back.run == id.run && back.round == id.round && own != "" && (strings.HasPrefix(of, own) || strings.HasPrefix(own, of)) {
			return true
		}
	}
	return false
}

func (o *oracle) someBack(run string) bool {
	for id := range o.back {
		if id.run == run {
			return true
		}
	}
	return false
}

func (o *oracle) judgeEnd(run workflow.Info) {
	k, t := o.k, o.k.t
	t.Helper()
	parents := strings.Contains(run.ID, "/")
	returned := outcomeOf{} // of a run that ended before it began
	if x := o.last[run.ID]; x != nil {
		returned = x.returned
	}
	h, err := o.program.Handle(t.Context(), k.e, run.ID)
	require.NoError(t, err)
	out, err := h.Result(t.Context())
	require.Equal(t, run.Status == workflow.Done, err == nil)
	require.Equal(t, o.terminated[run.ID], run.Status == workflow.Terminated, "%+v", run)
	switch run.Status {
	case workflow.Done:
		require.Equal(t, outcomeOf{v: out}, returned, run.ID)
	case workflow.Failed:
		require.True(t, strings.HasPrefix(run.Error, returned.err), "%s: %s, and the function returned %s", run.ID, run.Error, returned.err)
	case workflow.Cancelled:
		require.True(t, o.cancelled[run.ID] || parents, "nobody has asked for it: %+v", run)
	}
}

// judgeUndone checks what was undone: all named undo steps, the last of each scope first, or
// none.
func (o *oracle) judgeUndone(run workflow.Info) {
	t := o.k.t
	t.Helper()
	done := o.undone[run.ID]
	var undos []identity
	if x := o.last[run.ID]; x != nil {
		undos = slices.DeleteFunc(slices.Clone(x.undos), func(id identity) bool {
			return !slices.Contains(done, id) && o.behindSignalGivenBack(id)
		})
	}
	switch run.Status {
	case workflow.Done:
		require.Empty(t, done, "%+v", run)
	case workflow.Failed, workflow.Cancelled:
		require.ElementsMatch(t, undos, done, "%+v", run)
		root := func(all []identity) []identity {
			return slices.DeleteFunc(slices.Clone(all), func(id identity) bool { return strings.Contains(id.step, "/") })
		}
		named := root(undos)
		slices.Reverse(named)
		require.Equal(t, len(named), len(root(done)))
		for i, id := range root(done) {
			require.Equal(t, named[i], id, "%+v", run)
		}
	}
}

// judgeJournal compares the journal of the last round, and the signals.
func (o *oracle) judgeJournal(run workflow.Info) {
	k, t := o.k, o.k.t
	t.Helper()
	o.gaveBack(run.Run, run.ID, run.Restarts)
	got := make(map[string]map[int]bool) // received signals, by name
	for id, known := range o.known {
		for _, name := range []string{word.Name(), last.Name()} {
			if own, _, _ := strings.Cut(id.step[strings.LastIndexByte(id.step, '/')+1:], "#"); id.run == run.ID && own == name && known.err == "" {
				if got[name] == nil {
					got[name] = make(map[int]bool)
				}
				require.False(t, got[name][known.v], "%s got signal %d twice", id, known.v)
				got[name][known.v] = true
			}
		}
	}
	for _, e := range k.entries(run.Run) {
		switch e.Kind {
		case workflow.KindUndo, workflow.KindRace, workflow.KindSleep, workflow.KindChange, workflow.KindCondition:
			continue
		}
		if e.State == workflow.EntryPending {
			continue
		}
		var v int
		if e.State == workflow.EntryDone {
			require.NoError(t, driver.DecodePayload(e.Result, &v))
		}
		if e.Kind == workflow.KindWait && e.State == workflow.EntryDone {
			if got[e.Name] == nil {
				got[e.Name] = make(map[int]bool)
			}
			got[e.Name][v] = true
		}
		if known, ok := o.known[identity{run.ID, run.Restarts, e.Step()}]; ok {
			require.Equal(t, known.v, v, e.Step())
			require.Equal(t, known.err == "", e.State == workflow.EntryDone, e.Step())
		}
	}
	unread, err := k.e.Signals(t.Context(), run.Run)
	require.NoError(t, err)
	left := make(map[string]int)
	for _, s := range unread {
		left[s.Name]++
	}
	for _, name := range []string{word.Name(), last.Name()} {
		sent := o.sent[run.ID+" "+name]
		require.Equal(t, len(sent), len(got[name])+left[name], "%s: %d of %q were sent, %d got, %d not", run.ID, len(sent), name, len(got[name]), left[name])
		for v := range got[name] {
			if o.someBack(run.ID) { // others may have received later ones before
				break
			}
			require.LessOrEqual(t, v, len(got[name]), "the first were got first")
		}
	}
}
