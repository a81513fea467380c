package scenario

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/race"
	"github.com/gopawl/pawl/workflow"
)

var (
	changePairs = flag.Int("change.pairs", 500, "how many pairs of versions ChangedCode tries")
	changeFirst = flag.Uint64("change.first", 1, "the seed of the first of them")
)

// tally counts the outcomes of all pairs.
type tally struct{ same, ended, blocked, may, other int }

// Rule: if a run that one version of a flow began has reached a suspension or a crash, another
// version either completes it or blocks it, as the order of the calls in each scope requires.
// Nothing is done twice, and nothing under two keys. The same code never blocks it, and neither
// does a change after the end of the journal. A dry run finds every mismatch that it can see.
//
// It tries 500 pairs. For more, use go test -run TestScenarios/ChangedCode ./workflow -args
// -change.pairs 10000. A failure names its seed. To repeat it, use -change.first SEED
// -change.pairs 1.
func (suite) ChangedCode(t *testing.T) {
	var all tally
	pairs := race.Fewer(*changePairs)
	for n := range uint64(pairs) {
		seed := *changeFirst + n
		if !t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			bubble(t, func(t *testing.T, k *kit) { changed(t, k, seed, &all) })
		}) {
			t.Logf("repeat it by -args -change.first %d -change.pairs 1", seed)
		}
	}
	t.Logf("%+v", all)
	if pairs >= 200 { // otherwise it proves nothing
		require.Greater(t, all.blocked, pairs/10)
		require.Greater(t, all.ended, pairs/10)
		require.Greater(t, all.same, pairs/20)
		require.Less(t, all.may, pairs/3)
	}
}

// changed tries one pair.
func changed(t *testing.T, k *kit, seed uint64, all *tally) {
	m := &maker{Rand: rand.New(rand.NewPCG(seed, 13))}
	old := m.version()
	now, what := version{copied(old.Body), old.Fails}, "nothing"
	for range m.IntN(3) {
		var how string
		now, how = m.change(now)
		what = strings.TrimPrefix(what+", "+how, "nothing, ")
	}
	w := &world{k: k, done: make(map[string][]string), tried: make(map[string]bool)}
	if m.IntN(3) == 0 {
		w.deathIn = 1 + m.IntN(8)
	}
	f, child := w.flows(old)
	k.maxCrashes = -1
	k.open(f, child)
	run := start(k, f, "1", 0).Run()
	steps := m.IntN(8)
	if old.Fails && m.IntN(2) == 0 {
		steps = 60 // up to the point where it undoes
	}
	for range steps {
		if goAhead(k, run); k.ending.Load() || undoes(k, run) {
			break
		}
	}
	k.settle()

	w.deathIn = 0 // only in this life
	next, child := w.flows(now)
	k.build, k.slots = "2", -1
	if k.ending.Load() {
		k.over()
		k.again(next, child)
	} else {
		k.restart("2", next, child)
	}
	journal, before := k.entries(run), maps(w.done)
	require.NoError(t, k.e.Check(t.Context()))
	if k.info(run).Status.Ended() {
		return
	}
	verified := k.e.Verify(t.Context(), run)
	dry, live := modelOf(journal, true), modelOf(journal, false)
	dry.walk(now)
	live.walk(now)
	report := fmt.Sprintf("seed %d: %s\nold %+v\nnew %+v\njournal\n  %s\nmodel: %q, %q, dry: %q\nVerify: %v", seed, what, old, now,
		strings.Join(k.journal(run), "\n  "), live.why, live.may, dry.why, verified)
	require.Equal(t, before, maps(w.done), "a dry run does nothing\n%s", report)
	var mismatch *workflow.DeterminismError
	if verified != nil {
		require.ErrorAs(t, verified, &mismatch, report)
	}
	if what == "nothing" {
		require.NoError(t, verified, report)
	}
	if dry.may == "" {
		require.Equal(t, dry.why != "", verified != nil, report)
	}

	k.slots = 8
	k.restart("2", next, child)
	for range 100 {
		if s := k.info(run).Status; s.Ended() || s == workflow.Blocked {
			break
		}
		goAhead(k, run)
	}
	info := k.info(run)
	report += fmt.Sprintf("\nthen: %s %s\n  %s\ndone %v, before %v", info.Status, info.Error, strings.Join(k.journal(run), "\n  "), w.done, before)
	require.True(t, info.Status.Ended() || info.Status == workflow.Blocked, report)
	blocked := info.Status == workflow.Blocked
	switch {
	case what == "nothing":
		all.same++
		require.Empty(t, live.why, report)
		require.False(t, blocked, report)
		if info.Status == workflow.Done {
			require.NoError(t, k.e.Replay(t.Context(), run), report)
		}
	case live.may != "" && live.why == "":
		all.may++
	default:
		require.Equal(t, live.why != "", blocked, report)
	}
	if verified != nil && live.may == "" {
		require.True(t, blocked, report)
	}
	if blocked {
		all.blocked++
	} else {
		all.ended++
	}
	if live.other {
		all.other++
	}
	require.NoError(t, k.e.Check(t.Context()))
	w.judge(t, live, journal, before, blocked, report)
}

// goAhead sends what the run waits for, or lets time pass.
func goAhead(k *kit, run pawl.ID) {
	k.settle()
	if k.ending.Load() {
		return
	}
	for _, name := range k.info(run).Waits {
		if err := workflow.DefineSignal[int](name).Send(k.t.Context(), k.e, run, 1, ""); err != nil && !k.ending.Load() {
			require.ErrorIs(k.t, err, workflow.ErrNotRunning)
		}
		k.settle()
	}
	k.pass(time.Hour)
}

// undoes reports whether an undo step has begun.
func undoes(k *kit, run pawl.ID) bool {
	return slices.ContainsFunc(k.entries(run), func(e workflow.Entry) bool { return e.Kind == workflow.KindUndo })
}

func maps(done map[string][]string) map[string]int {
	n := make(map[string]int)
	for label, keys := range done {
		n[label] = len(keys)
	}
	return n
}

// judge checks all effects. If a step had not ended in the journal at a crash, its effect may
// take place again, as at any crash.
func (w *world) judge(t *testing.T, m *model, journal []workflow.Entry, before map[string]int, blocked bool, report string) {
	t.Helper()
	ended := make(map[string]bool)
	for _, e := range journal {
		if e.State == workflow.EntryDone {
			ended[e.Step()] = true
		}
	}
	for label, keys := range w.done {
		inDoubt := before[label] > 0 && !ended[keys[0][strings.IndexByte(keys[0], '/')+1:]]
		if !strings.HasSuffix(label, "in child") && !inDoubt && !m.other {
			require.Len(t, slices.Compact(slices.Sorted(slices.Values(keys))), 1, "%s took place under two keys\n%s", label, report)
			require.Len(t, keys, 1, "%s took place twice\n%s", label, report)
		}
		if before[label] == 0 && !strings.HasSuffix(label, "in child") { // a child continues by itself
			require.True(t, m.can[label], "%s was not to take place\n%s", label, report)
		}
	}
	for label := range m.must {
		if !blocked && m.may == "" {
			require.NotEmpty(t, w.done[label], "%s did not take place\n%s", label, report)
		}
	}
}
