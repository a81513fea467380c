package hostile

import (
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/internal/race"
	"github.com/gopawl/pawl/internal/torture/harness"
	"github.com/gopawl/pawl/workflow"
)

// withStories is a sound file that has runs.
func withStories(t *testing.T) *base {
	t.Helper()
	all, _ := bases(t)
	for _, b := range all {
		if len(b.runs) > 0 {
			return b
		}
	}
	require.Fail(t, "no sound file has runs")
	return nil
}

// Rule: some of the sound files have runs in every state, with rows in every bucket of
// workflows, and calls of every kind; most have none.
func TestSoundFilesWithRuns(t *testing.T) {
	all, _ := bases(t)
	with := 0
	for _, b := range all {
		if len(b.runs) == 0 {
			continue
		}
		with++
		states, kinds, buckets := make(map[workflow.Status]bool), make(map[workflow.EntryKind]bool), make(map[string]bool)
		lines := make(map[string]int)
		for _, s := range b.stories {
			states[s.info.Status] = true
			if s.info.Place != "" {
				lines["place of "+s.info.Place] += len(s.info.Holders)
			}
			if s.info.Rate != "" {
				lines["rate of "+s.info.Rate]++
			}
			for _, e := range s.journal {
				kinds[e.Kind] = true
			}
		}
		for _, r := range b.rows {
			buckets[r.bucket] = true
		}
		require.Len(t, states, 10)
		require.Len(t, kinds, 9)
		for _, name := range flowBuckets {
			require.Contains(t, buckets, name)
		}
		require.Equal(t, map[string]int{
			"place of key a": 1, "place of flow narrow": 4, "rate of key a": 1, "rate of flow paced": 2,
		}, lines, "what runs wait for in line, and the holders of places")
	}
	require.Equal(t, 2, with)
}

// Rule: every way to forge a row of workflows makes a different file.
func TestEveryFlowForgeryDamages(t *testing.T) {
	b := withStories(t)
	dir, err := harness.MemoryFolder()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	for _, f := range flowForgeries {
		changed := 0
		seeds := max(8, race.Fewer(20))
		for seed := range uint64(seeds) {
			h := blank([]*base{b}, seed, filepath.Join(dir, "scratch"))
			_ = h.store(func(tx *bbolt.Tx) error { return f.put(h, tx.Bucket(flowsName)) }) // some are refused
			if h.changed() {
				changed++
			}
		}
		require.Greater(t, changed, seeds/6, f.name)
	}
}

// Rule: data of a run that is read and differs from what was stored is a violation.
func TestWrongDataOfARunIsSeen(t *testing.T) {
	b := withStories(t)
	var known *storyOf
	for _, s := range b.stories {
		if s.info.ID == "sleeps" {
			known = s
		}
	}
	require.NoError(t, sameInfo(known.info, known))
	info := known.info
	info.Status, info.Error = workflow.Dead, "its job is gone"
	require.NoError(t, sameInfo(info, known), "its job may be lost")
	info.Steps++
	require.ErrorContains(t, sameInfo(info, known), "silently wrong")

	for _, e := range known.journal {
		require.NoError(t, sameEntry(e, known))
		e.Name += "x"
		require.ErrorContains(t, sameEntry(e, known), "silently wrong")
	}
	require.Len(t, known.signals, 3)
	require.NoError(t, sameSignals(known.signals, known))
	other := []workflow.Pending{known.signals[0]}
	other[0].N = 99
	require.ErrorContains(t, sameSignals(other, known), "silently wrong")

	require.NotEmpty(t, known.published)
	require.NoError(t, samePublished(known.published, known))
	published := maps.Clone(known.published)
	published["percent"] = []byte{41}
	require.ErrorContains(t, samePublished(published, known), "silently wrong")

	stream, item := known.streams[printed.Name()], known.items[1]
	require.NoError(t, sameStreams([]workflow.StreamInfo{stream}, known))
	stream.Last++
	require.ErrorContains(t, sameStreams([]workflow.StreamInfo{stream}, known), "silently wrong")
	require.NoError(t, sameItems([]workflow.Item[[]byte]{item}, known))
	item.Value = []byte{0xa0}
	require.ErrorContains(t, sameItems([]workflow.Item[[]byte]{item}, known), "silently wrong")

	for _, s := range b.stories {
		if s.info.ID == "narrow 4" {
			known = s
		}
	}
	require.NoError(t, sameInfo(known.info, known))
	info = known.info
	info.Holders = info.Holders[:1]
	require.NoError(t, sameInfo(info, known), "the row of a place may be lost")
	info.Holders = []pawl.ID{known.info.Run}
	require.ErrorContains(t, sameInfo(info, known), "silently wrong")
}

// Rule: over a sound file, the changes of runs are carried out, not refused: so the
// families try more than errors.
func TestRunsOfASoundFileGoOn(t *testing.T) {
	b := withStories(t)
	path := filepath.Join(t.TempDir(), "sound.db")
	h := &hostile{base: b, file: b.whole}
	require.NoError(t, h.write(path))
	q, err := bolt.Open(path, options())
	require.NoError(t, err)
	defer func() { require.NoError(t, q.Close()) }()
	c, err := newCrew(t.Context(), q, "step", false)
	require.NoError(t, err)
	id := make(map[string]pawl.ID)
	for run, s := range b.stories {
		if id[s.info.ID] = run; !s.info.Parent.IsZero() {
			id["a child"] = run
		}
	}
	require.NoError(t, c.Verify(t.Context(), id["waits"]))
	require.NoError(t, goOn.Send(t.Context(), c.Engine, id["waits"], "on", ""))
	require.NoError(t, c.Cancel(t.Context(), id["calls"], "why"))
	require.NoError(t, goOn.Send(t.Context(), c.Engine, id["narrow 0"], "on", ""))
	for _, r := range requests {
		answer, err := ask.Call(t.Context(), c.Engine, id["asks"], r.number, r.key)
		require.NoError(t, r.same(answer, err))
	}
	require.NoError(t, c.all())
	for name, want := range map[string]workflow.Status{
		"waits": workflow.Done, "calls": workflow.Cancelled, "a child": workflow.Cancelled, "ready": workflow.Done,
		"blocked": workflow.Sleeping, "sleeps": workflow.Sleeping, "paused": workflow.Paused, "dead": workflow.Dead,
		"narrow 0": workflow.Done, "narrow 1": workflow.Waiting, "asks": workflow.Waiting,
	} {
		info, err := c.Info(t.Context(), id[name])
		require.NoError(t, err)
		require.Equal(t, want, info.Status, name)
	}
	require.NoError(t, c.Check(t.Context()))
	require.NoError(t, q.Check(t.Context()))
}
