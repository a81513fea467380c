package power

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/internal/need"
	"github.com/gopawl/pawl/internal/torture/harness"
	"github.com/gopawl/pawl/internal/torture/trace"
)

func TestMain(m *testing.M) {
	harness.Main()
	os.Exit(m.Run())
}

// run tries a family until it has counted so many units.
func run(t *testing.T, f *harness.Family, seed uint64, goal int) {
	t.Helper()
	r := f.Run(context.Background(), harness.Plan{Goal: goal, Seed: seed})
	if r.Missing != "" {
		t.Skip(r.Missing)
	}
	for _, v := range r.First {
		t.Errorf("seed %d: %v", v.Seed, v.Err)
	}
	require.GreaterOrEqual(t, r.Tried, goal)
}

func TestPower(t *testing.T)      { run(t, Power, 0, 2*report) }
func TestFailedSync(t *testing.T) { run(t, FailedSync, 0, 3) }
func TestDevice(t *testing.T)     { run(t, Device, 0, 2) }

// record runs a workload in this process, with its steps in a child.
func record(t *testing.T, f flavour) (*recording, story) {
	t.Helper()
	need.Server(t, trace.Missing())
	dir, err := harness.MemoryFolder()
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	r, err := newRecording(t.Context(), dir, rand.New(rand.NewPCG(1, 0)))
	require.NoError(t, err)
	if f == concurrent {
		require.NoError(t, r.run("power-concurrent", f, 40, 0, 0))
		return r, new(concurrentStory)
	}
	steps := 8
	if f == copies {
		steps = 25
	}
	require.NoError(t, r.run("power-steps", f, steps, 0, 0))
	s, err := newStates(r.log)
	require.NoError(t, err)
	return r, s
}

// look cuts the power at about that many moments of a log, in this process.
func look(t *testing.T, l *trace.Log, s story, images int) error {
	t.Helper()
	dir, err := harness.MemoryFolder()
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	c := cuts{
		log: l, story: s, rand: rand.New(rand.NewPCG(1, 0)), folder: filepath.Join(dir, "image"), rounds: 1, least: images,
		onImage: func(string) {}, after: func() {},
	}
	require.NoError(t, os.Mkdir(c.folder, 0o700))
	return c.run(t.Context())
}

// without takes ops of some kinds out of a log, as if they had not been done.
func without(l *trace.Log, kinds ...trace.Kind) *trace.Log {
	changed := *l
	changed.Events = slices.DeleteFunc(slices.Clone(l.Events), func(e trace.Event) bool { return slices.Contains(kinds, e.Kind) })
	return &changed
}

// sooner moves each reported line before the operation that precedes it.
func sooner(l *trace.Log) *trace.Log {
	changed := *l
	changed.Events = slices.Clone(l.Events)
	for i, e := range changed.Events {
		if e.Kind != trace.Say || !e.Begin {
			continue
		}
		for n := i; n > 0 && changed.Events[n-1].Kind != trace.Say; n-- {
			changed.Events[n], changed.Events[n-1] = changed.Events[n-1], changed.Events[n]
		}
	}
	return &changed
}

// The family finds each fault that is planted in the log of a queue that has none.
func TestPowerFinds(t *testing.T) {
	for _, f := range []flavour{plain, concurrent} {
		r, s := record(t, f)
		again := func() story {
			if f == concurrent {
				return new(concurrentStory)
			}
			s, err := newStates(r.log)
			require.NoError(t, err)
			return s
		}
		require.NoError(t, look(t, r.log, s, 60))
		for name, planted := range map[string]*trace.Log{
			"no sync":                            without(r.log, trace.Sync, trace.DataSync),
			"no sync of the folder":              without(r.log, trace.SyncFolder),
			"an acknowledgement before commit":   sooner(r.log),
			"no sync of a file that has no name": without(r.log, trace.Sync, trace.DataSync, trace.SyncFolder),
		} {
			t.Run(string(f)+": "+name, func(t *testing.T) {
				require.Error(t, look(t, planted, again(), 1<<20))
			})
		}
	}
}

// A state that no step can have left is a violation, even if nothing else is wrong with
// it.
func TestPowerFindsAnotherState(t *testing.T) {
	r, s := record(t, plain)
	s.(*states).digests[3] = "another"
	require.Error(t, look(t, r.log, s, 1<<20))
}

// A copy that was acknowledged exists, and a copy that exists is whole.
func TestPowerFindsBrokenCopies(t *testing.T) {
	r, s := record(t, copies)
	require.NoError(t, look(t, r.log, s, 200))
	main, folders := r.log.Number(queueFile), 0
	for name, gone := range map[string]func(e trace.Event) bool{
		"not synced": func(e trace.Event) bool {
			return (e.Kind == trace.Sync || e.Kind == trace.DataSync) && e.File != main
		},
		"no name": func(e trace.Event) bool {
			if e.Kind == trace.SyncFolder {
				folders++
			}
			return e.Kind == trace.SyncFolder && folders > 2 // begin and end of that by Open
		},
	} {
		planted := *r.log
		planted.Events = slices.DeleteFunc(slices.Clone(r.log.Events), gone)
		s, err := newStates(r.log)
		require.NoError(t, err)
		require.ErrorContains(t, look(t, &planted, s, 1<<20), "copy-", name)
	}
}

// Nothing is acknowledged after a sync of the queue's file has failed.
func TestFailedSyncFindsAcknowledgements(t *testing.T) {
	r, _ := record(t, plain)
	opened := func(i int) bool { // before event i, by the step after that
		return slices.ContainsFunc(r.log.Story(i), func(line string) bool { return strings.HasPrefix(line, "begin 4 ") })
	}
	for i, e := range r.log.Events {
		if e.Kind != trace.DataSync || e.Begin || !opened(i) {
			continue
		}
		require.NoError(t, silent(r.log, len(r.log.Events)-1))
		require.ErrorContains(t, silent(r.log, i), "after the failed sync")
		return
	}
	t.Fatal("there is no sync")
}

// A queue that continued after a failed sync would lose what it acknowledged.
func TestFailedSyncFindsLosses(t *testing.T) {
	r, s := record(t, plain)
	for _, e := range r.log.Events {
		if e.Kind == trace.DataSync && !e.Begin {
			e.Failed = true
		}
	}
	s.(*states).failing = true
	require.Error(t, look(t, r.log, s, 1<<20))
}

// If a process reported a change as done, and a copy of the device lacks it, that is a
// violation.
func TestDeviceFindsLosses(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, within(filepath.Join(dir, queueFile), func(*bolt.Queue) error { return nil }))
	s := new(concurrentStory)
	require.NoError(t, s.hear(harness.Up))
	require.NoError(t, s.judgeFolder(t.Context(), dir))
	id := pawl.NewID(time.Now()).String()
	require.NoError(t, s.hear("begin enqueue 0 "+id))
	require.NoError(t, s.judgeFolder(t.Context(), dir))
	require.NoError(t, s.hear("done enqueue 0 "+id))
	require.ErrorContains(t, s.judgeFolder(t.Context(), dir), "is lost")
	require.ErrorContains(t, s.judgeFolder(t.Context(), t.TempDir()), "absent")
}

// A file that ends before its pages do is a violation, and no fault in a goroutine of bbolt's check.
func TestInspectFindsShortFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), queueFile)
	require.NoError(t, within(path, func(*bolt.Queue) error { return nil }))
	_, err := inspect(path, true)
	require.NoError(t, err)
	const metas = 2 * 4096
	require.NoError(t, os.Truncate(path, metas))
	_, err = inspect(path, true)
	require.ErrorContains(t, err, "8192 bytes of")
}

func init() {
	harness.Role("test-dies", role(func(*tried) error {
		harness.Emit("image", "7-lost")
		panic(errors.New("a page of its own"))
	}))
	harness.Role("test-hangs", role(func(*tried) error {
		harness.Emit("image", "8-lost")
		select {}
	}))
}

// An image that kills or hangs the process which looks at it is a violation that names the
// image, and leaves the family alive.
func TestWatched(t *testing.T) {
	for name, test := range map[string]struct {
		imageTimeout time.Duration
		want         string
	}{
		"test-dies":  {imageTimeout, "image 7-lost"},
		"test-hangs": {time.Second / 10, "no end in"},
	} {
		f := &harness.Family{Name: name, Parallel: 1, Prepare: func(*harness.Env) (func(*harness.Try) error, error) {
			return func(t *harness.Try) error { return watched(t, name, test.imageTimeout) }, nil
		}}
		r := f.Run(t.Context(), harness.Plan{Goal: 1, Once: true})
		require.Equal(t, 1, r.Violations)
		require.ErrorContains(t, r.First[0].Err, test.want)
		require.NoError(t, os.RemoveAll(filepath.Dir(r.First[0].Dir)))
	}
}
