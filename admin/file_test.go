package admin

import (
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/bolt/offline"
	"github.com/gopawl/pawl/internal/withid"
)

// stoppedApp returns the file of an app that does not run.
func stoppedApp(t *testing.T, fill func(*fixture)) *fixture {
	t.Helper()
	f := newFixture(t, fill)
	require.NoError(t, f.q.Close())
	f.q = nil
	return f
}

// noticed collects the notices of an offline file.
type noticed struct {
	mu    sync.Mutex
	texts []string
}

func (n *noticed) hear(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.texts = append(n.texts, text)
}

// Nothing is opened before the first call, and no file is ever created.
func TestFileMakesNoFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none.db")
	a := offlineFile(path, nil)
	_, err := a.Stats(t.Context())
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorIs(t, withid.Enqueue(t.Context(), a, &pawl.Envelope{Kind: "x"}), fs.ErrNotExist)
	require.NoError(t, a.Close())
	require.False(t, fileExists(path))
}

// A file that a process has open is locked, for reads and for changes, and a failed call does
// not keep others from opening it later.
func TestFileOfARunningApp(t *testing.T) {
	f := newFixture(t, everyState)
	a := offlineFile(f.path, nil)
	_, err := a.Stats(t.Context())
	require.ErrorIs(t, err, bolt.ErrLocked)
	require.ErrorIs(t, a.Pause(t.Context(), "email"), bolt.ErrLocked)
	require.NoError(t, f.q.Close())
	_, err = a.Stats(t.Context())
	require.NoError(t, err)
	require.NoError(t, a.Pause(t.Context(), "email"))
	require.NoError(t, a.Close())
	f.open()
	stats, err := f.q.Stats(t.Context())
	require.NoError(t, err)
	require.True(t, stats.Queues[0].Paused)
}

// A read does not change a byte in the file.
func TestFileLooksChangeNothing(t *testing.T) {
	f := stoppedApp(t, everyState)
	before, err := os.ReadFile(f.path)
	require.NoError(t, err)
	a := offlineFile(f.path, &offline.Options{Notice: func(text string) { t.Error(text) }})
	require.Len(t, readPages(t, a, Query{}), len(suiteStates))
	require.NoError(t, a.Check(t.Context()))
	require.NoError(t, a.Backup(t.Context(), io.Discard))
	_, _, err = a.Effects(t.Context(), "")
	require.NoError(t, err)
	require.NoError(t, a.Close())
	after, err := os.ReadFile(f.path)
	require.NoError(t, err)
	require.Equal(t, before, after)
}

// After Close every call fails, and the file is unlocked.
func TestFileClosed(t *testing.T) {
	f := stoppedApp(t, everyState)
	for _, use := range []func(Admin) error{
		func(a Admin) error { _, err := a.Stats(t.Context()); return err },
		func(a Admin) error { return a.Pause(t.Context(), "email") },
		func(Admin) error { return nil },
	} {
		a := offlineFile(f.path, &offline.Options{Now: f.now})
		require.NoError(t, use(a))
		require.NoError(t, a.Close())
		require.NoError(t, a.Close())
		_, err := a.Stats(t.Context())
		require.ErrorIs(t, err, pawl.ErrClosed)
		require.ErrorIs(t, a.Pause(t.Context(), "email"), pawl.ErrClosed)
		q, err := bolt.Open(f.path, &bolt.Options{Now: f.now})
		require.NoError(t, err)
		require.NoError(t, q.Close())
	}
}

// The first change makes the jobs of ended processes ready, and reports it. None becomes dead by
// that, however often it crashed, except jobs that were asked to end.
func TestFileReportsRecoveredJobs(t *testing.T) {
	f := stoppedApp(t, func(f *fixture) {
		for _, kind := range []string{"one", "two", "cancelled"} {
			f.run(pawl.Envelope{Kind: kind, Queue: "email"})
		}
		require.NoError(f.t, f.q.Cancel(context.Background(), f.ids["cancelled"]))
	})
	var said noticed
	a := offlineFile(f.path, &offline.Options{Now: f.now, Notice: said.hear})
	_, err := a.Stats(t.Context())
	require.NoError(t, err)
	require.Empty(t, said.texts, "a look recovers nothing")
	require.NoError(t, a.Pause(t.Context(), "other"))
	require.NoError(t, a.Pause(t.Context(), "email"))
	require.Equal(t, []string{
		"2 leased jobs whose process had ended: ready again too",
		"1 leased job whose process had ended: dead now (cancelled, or past a deadline)",
	}, said.texts)
	require.NoError(t, a.Close())

	// Repeat beyond any default limit on crashes.
	for crashes := 2; crashes < 8; crashes++ {
		q, err := bolt.Open(f.path, &bolt.Options{Now: f.now, MaxCrashes: bolt.NoMaxCrashes})
		require.NoError(t, err)
		require.NoError(t, q.Resume(t.Context(), "email"))
		_, err = q.Fetch(t.Context(), pawl.Request{Queues: []string{"email"}, Max: 1, Wait: pawl.WaitNot})
		require.NoError(t, err)
		require.NoError(t, q.Close())
		a := offlineFile(f.path, &offline.Options{Now: f.now})
		n, err := a.Reap(t.Context())
		require.NoError(t, err)
		require.Equal(t, 1, n)
		stats, err := a.Stats(t.Context())
		require.NoError(t, err)
		require.Equal(t, pawl.Counts{Ready: 2, Dead: 1}, stats.Queues[0].Counts)
		require.NoError(t, a.Close())
	}
}

// The first change repairs a file whose last sync failed, and reports it.
func TestFileReportsARepairedFile(t *testing.T) {
	if runtime.GOOS == "windows" || runtime.GOOS == "solaris" {
		t.Skip("needs flock: without it a file is not repaired")
	}
	f := stoppedApp(t, everyState)
	mark := f.path + "-failed-sync"
	require.NoError(t, os.WriteFile(mark, []byte("pawl: a sync failed in transaction 0, behind one of root 0 and 0 pages\n"), 0o600))
	var said noticed
	a := offlineFile(f.path, &offline.Options{Now: f.now, Notice: said.hear})
	require.Len(t, readPages(t, a, Query{}), len(suiteStates))
	require.True(t, fileExists(mark), "a look repairs nothing")
	require.NoError(t, a.Resume(t.Context(), "email"))
	require.False(t, fileExists(mark))
	require.Equal(t, "a sync had failed when the file was last open: it was replaced by a copy of all that was acknowledged", said.texts[0])
	require.NoError(t, a.Close())
}

// A file that others could write to is not changed unless the options permit it; reading is
// allowed.
func TestFileOfOthers(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs modes of files, which this system does not have")
	}
	f := stoppedApp(t, everyState)
	require.NoError(t, os.Chmod(f.path, 0o666))
	a := offlineFile(f.path, nil)
	_, err := a.Stats(t.Context())
	require.NoError(t, err)
	require.ErrorIs(t, a.Pause(t.Context(), "email"), bolt.ErrInsecure)
	_, err = a.Stats(t.Context())
	require.NoError(t, err, "and can go on")
	require.NoError(t, a.Close())
	a = offlineFile(f.path, &offline.Options{Insecure: true, Now: f.now})
	require.NoError(t, a.Pause(t.Context(), "email"))
	require.NoError(t, a.Close())
}

// Reads and changes report a file that is not a queue, and leave it unchanged.
func TestFileThatIsNone(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "text.db")
	require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("no queue ", 5000)), 0o600))
	for _, path := range []string{path, folder} {
		a := offlineFile(path, nil)
		_, err := a.Stats(t.Context())
		require.ErrorIs(t, err, bolt.ErrNotQueue)
		require.ErrorIs(t, a.Pause(t.Context(), "email"), bolt.ErrNotQueue)
		require.NoError(t, a.Close())
	}
}

// Reads and the first change come from several goroutines at once.
func TestFileIsSharedByGoroutines(t *testing.T) {
	f := stoppedApp(t, everyState)
	a := offlineFile(f.path, &offline.Options{Now: f.now})
	errs := make(chan error, 40)
	for i := range cap(errs) {
		go func() {
			if i%10 == 5 {
				errs <- a.Pause(context.Background(), "email")
				return
			}
			_, err := a.List(context.Background(), Query{})
			errs <- err
		}()
	}
	for range cap(errs) {
		require.NoError(t, <-errs)
	}
	require.NoError(t, a.Close())
}

// A job that became due while its app was stopped is ready once the file is open for writing.
func TestFileHasAClock(t *testing.T) {
	f := stoppedApp(t, everyState)
	f.pass(90 * time.Minute)
	a := offlineFile(f.path, &offline.Options{Now: f.now})
	_, err := a.Do(t.Context(), Action{Verb: Delete}, f.ids["dead"])
	require.NoError(t, err)
	job, err := a.Job(t.Context(), f.ids["retry"])
	require.NoError(t, err)
	require.Equal(t, pawl.Ready, job.State)
	require.NoError(t, a.Close())
}

// The app's limit on payloads is unknown here: a payload that one queue accepted is accepted in
// any file.
func TestFileTakesLargePayloads(t *testing.T) {
	f := stoppedApp(t, nil)
	a := offlineFile(f.path, &offline.Options{Now: f.now})
	payload := packOf(t, make([]byte, 3<<20))
	require.NoError(t, a.Restore(t.Context(), []*pawl.Envelope{{ID: pawl.ID{1}, Kind: "big", State: pawl.Ready, Payload: payload}}, nil))
	require.NoError(t, withid.Enqueue(t.Context(), a, &pawl.Envelope{Kind: "big", Payload: payload}))
	require.ErrorIs(t, withid.Enqueue(t.Context(), a, &pawl.Envelope{Kind: "big", Payload: make([]byte, pawl.MaxBatchBytes+1)}), pawl.ErrPayloadTooLarge)
	job, err := a.Job(t.Context(), pawl.ID{1})
	require.NoError(t, err)
	require.Equal(t, payload, job.Payload)
	require.NoError(t, a.Close())
}
