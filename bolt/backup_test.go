package bolt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/withid"
)

// copiers are the two ways to copy the file of a queue or a reader.
var copiers = []struct {
	name string
	copy func(r *reader, ctx context.Context, path string) error
}{
	{"Backup", (*reader).Backup},
	{"Compact", (*reader).Compact},
}

// traffic is producers and workers of a queue, with a record of what was stored, and of which
// acks have begun and which were acknowledged.
type traffic struct {
	mu                   sync.Mutex
	stored, begun, acked map[pawl.ID]bool
}

func (w *traffic) note(known map[pawl.ID]bool, id pawl.ID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	known[id] = true
}

func (w *traffic) known(known map[pawl.ID]bool) map[pawl.ID]bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(known)
}

// startTraffic begins the traffic. The function end waits until all of it has ended.
func startTraffic(t *testing.T, q *Queue) (w *traffic, end func()) {
	w = &traffic{stored: make(map[pawl.ID]bool), begun: make(map[pawl.ID]bool), acked: make(map[pawl.ID]bool)}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	run := func(step func() error) {
		all.Go(func() {
			for ctx.Err() == nil {
				if err := step(); err != nil && !errors.Is(err, pawl.ErrNotAccepted) {
					t.Error(err)
					return
				}
			}
		})
	}
	for n := range 3 {
		run(func() error {
			e := &pawl.Envelope{Kind: "k", Payload: make([]byte, n*1500), MaxRetries: 3}
			err := withid.Enqueue(ctx, q, e)
			if err == nil {
				w.note(w.stored, e.ID)
			}
			return err
		})
		run(func() error {
			leases, err := q.Fetch(ctx, pawl.Request{Max: 1 + n})
			for _, l := range leases {
				if l.ID[15]%4 == 0 && l.Attempts == 0 {
					err = errors.Join(err, q.Settle(t.Context(), l.Nack(0, errBoom)))
					continue
				}
				w.note(w.begun, l.ID)
				err = errors.Join(err, q.Settle(t.Context(), l.Ack()))
				w.note(w.acked, l.ID)
			}
			return err
		})
	}
	return w, func() { cancel(); all.Wait() }
}

// A copy made under traffic is the file at one moment: it has every job stored before the copy
// began, unless its ack began before the copy ended, and no job acked before the copy began.
func TestCopyUnderLoad(t *testing.T) {
	for _, c := range copiers {
		t.Run(c.name, func(t *testing.T) {
			folder := memoryFolder(t)
			q := openAt(t, filepath.Join(folder, "jobs.db"), nil)
			for range 8 {
				add(t, q, func(e *pawl.Envelope) { e.Queue, e.Payload = "still", make([]byte, 500_000) })
			}
			w, end := startTraffic(t, q)
			defer end()
			for n := range 4 {
				for busy := len(w.known(w.acked)) + 20; len(w.known(w.acked)) < busy && !t.Failed(); {
					runtime.Gosched()
				}
				stored, acked := w.known(w.stored), w.known(w.acked)
				path := filepath.Join(folder, fmt.Sprint("copy ", n))
				require.NoError(t, c.copy(&q.reader, t.Context(), path))
				begun := w.known(w.begun)

				checkFile(t, path)
				found := make(map[pawl.ID]bool)
				of := openAt(t, path, nil)
				for e, err := range of.Jobs(t.Context(), pawl.Filter{}) {
					require.NoError(t, err)
					require.NotEqual(t, pawl.Leased, e.State, "nobody holds a lease in a copy")
					found[e.ID] = true
				}
				require.NoError(t, of.Close())
				for id := range stored {
					require.True(t, found[id] || begun[id], "a stored job is missing")
				}
				for id := range acked {
					require.False(t, found[id], "an acked job is back")
				}
				require.Equal(t, 8, countsOf(t, q, "still").Ready)
			}
		})
	}
}

// A copy is an ordinary queue file: it is for its owner alone, and it works.
func TestCopyIsAQueue(t *testing.T) {
	for _, c := range copiers {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "copy.db")
			q, _, leased := prepared(t)
			require.NoError(t, c.copy(&q.reader, t.Context(), path))
			info, err := os.Stat(path)
			require.NoError(t, err)
			require.Equal(t, fs.FileMode(0o600), info.Mode())
			require.Len(t, snapshot(t, filepath.Dir(path)), 1, "nothing else is left in the folder")

			of := openAt(t, path, nil)
			require.NotNil(t, find(t, of, leased.ID))
			require.Equal(t, pawl.Ready, find(t, of, add(t, of, nil).ID).State)
			for _, l := range fetch(t, of, 100) {
				require.NoError(t, of.Settle(t.Context(), l.Ack()))
			}
			require.NotNil(t, find(t, q, leased.ID), "the file that was copied does not notice")
		})
	}
}

// A copy that cannot be made leaves nothing behind and changes no existing file.
func TestCopyRefused(t *testing.T) {
	for _, c := range copiers {
		t.Run(c.name, func(t *testing.T) {
			q, _, _ := prepared(t)
			folder := t.TempDir()
			file, link := filepath.Join(folder, "file"), filepath.Join(folder, "link")
			require.NoError(t, os.WriteFile(file, []byte("text"), 0o600))
			require.NoError(t, os.Symlink("nowhere", link))
			cancelled, cancel := context.WithCancel(t.Context())
			cancel()
			before := snapshot(t, folder)
			for _, test := range []struct {
				rule, path string
				ctx        context.Context
				want       error
				says       string
			}{
				{"a file is not replaced", file, t.Context(), fs.ErrExist, file},
				{"a folder is not replaced", folder, t.Context(), fs.ErrExist, folder},
				{"a link that leads nowhere is not replaced", link, t.Context(), fs.ErrExist, link},
				{"the queue's own file is not replaced", q.path, t.Context(), fs.ErrExist, q.path},
				{"a missing folder is not made", filepath.Join(folder, "a", "copy"), t.Context(), fs.ErrNotExist, "make the folder first"},
				{"a path is required", "", t.Context(), pawl.ErrInvalid, "path: is empty"},
				{"a context that has ended makes no copy", filepath.Join(folder, "copy"), cancelled, context.Canceled, ""},
			} {
				err := c.copy(&q.reader, test.ctx, test.path)
				require.ErrorIs(t, err, test.want, test.rule)
				require.ErrorContains(t, err, test.says, test.rule)
				require.NotContains(t, err.Error(), ".pawl-new", test.rule)
				require.Equal(t, before, snapshot(t, folder), test.rule)
			}
			require.NoError(t, q.Close())
			require.ErrorIs(t, c.copy(&q.reader, t.Context(), filepath.Join(folder, "copy")), pawl.ErrClosed)
			require.Equal(t, before, snapshot(t, folder))
		})
	}
}

// endsAfter is a context that ends after a number of calls of Err.
type endsAfter struct {
	context.Context
	left int
}

func (c *endsAfter) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// A copy cancelled at any point leaves nothing behind.
func TestCopyCancelledMidway(t *testing.T) {
	q, err := Open(filepath.Join(memoryFolder(t), "jobs.db"), quiet())
	require.NoError(t, err)
	defer q.Close()
	for range 20 {
		add(t, q, func(e *pawl.Envelope) { e.Payload = make([]byte, 1<<20) })
	}
	for _, c := range copiers {
		folder := memoryFolder(t)
		n := 0
		for ; err == nil || errors.Is(err, context.Canceled); n += 1 + n/4 {
			require.Empty(t, snapshot(t, folder), "%s cancelled at look %d", c.name, n)
			if err = c.copy(&q.reader, &endsAfter{t.Context(), n}, filepath.Join(folder, "copy")); err == nil {
				break
			}
		}
		require.NoError(t, err)
		require.Greater(t, n, 4, "%s looks at its context along the way", c.name)
		checkFile(t, filepath.Join(folder, "copy"))
	}
}

// Several processes may copy a file that no queue has open.
func TestCopyOfAReader(t *testing.T) {
	s := newSample(t)
	path := s.write(t)
	before := snapshot(t, filepath.Dir(path))
	r, err := OpenReader(path)
	require.NoError(t, err)
	defer r.Close()
	for _, c := range copiers {
		to := filepath.Join(t.TempDir(), "copy.db")
		require.NoError(t, c.copy(&r.reader, t.Context(), to))
		checkFile(t, to)
		of, err := OpenReader(to)
		require.NoError(t, err)
		for kind, id := range s.ids {
			want, err := r.Job(t.Context(), id)
			require.NoError(t, err)
			got, err := of.Job(t.Context(), id)
			require.NoError(t, err)
			require.Equal(t, want, got, kind)
		}
		require.NoError(t, of.Close())
	}
	require.Equal(t, before, snapshot(t, filepath.Dir(path)), "the file that is read changed")
}

// A queue stopped by a failed sync can be copied, so that its jobs can leave a failing disk.
// The copy may or may not have the commit in doubt.
func TestCopyOfAPoisonedQueue(t *testing.T) {
	for _, failed := range failedSyncs {
		for _, c := range copiers {
			t.Run(failed.rule+"/"+c.name, func(t *testing.T) {
				q, err := Open(filepath.Join(t.TempDir(), "jobs.db"), quiet())
				require.NoError(t, err)
				defer q.Close()
				before := add(t, q, nil)
				replaceCommit(t, q, failed.commit)
				require.ErrorIs(t, withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "in doubt"}), pawl.ErrUnknownOutcome)
				path := filepath.Join(t.TempDir(), "copy.db")
				require.NoError(t, c.copy(&q.reader, t.Context(), path))
				of := openAt(t, path, nil)
				require.NotNil(t, find(t, of, before.ID))
				if failed.visible {
					require.Equal(t, 2, countsOf(t, of, pawl.DefaultQueue).Ready)
				}
			})
		}
	}
}

// heldWriter waits at its first write.
type heldWriter struct {
	reached, leave chan struct{}
	once           sync.Once
}

func (w *heldWriter) Write(b []byte) (int, error) {
	w.once.Do(func() { close(w.reached); <-w.leave })
	return len(b), nil
}

// A commit that grows the file does not wait for a reader, however long the reader stays.
func TestGrowthBesideAReader(t *testing.T) {
	q := openTest(t, nil)
	add(t, q, nil)
	err := q.View(t.Context(), func(tx *bbolt.Tx) error {
		before := tx.Size()
		for range 8 {
			require.NoError(t, withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "k", Payload: make([]byte, 1<<20)}))
		}
		info, err := os.Stat(q.path)
		require.NoError(t, err)
		require.Greater(t, info.Size(), before+8<<20)
		return nil
	})
	require.NoError(t, err)
}

// In an app's database, a commit that must map a larger file waits for a copy. Nothing can
// block the copy: it finishes or its context ends, and then the commit finishes.
func TestGrowthWaitsForACopy(t *testing.T) {
	for _, ends := range []bool{false, true} {
		q := openOver(t, openApp(t), nil)
		add(t, q, nil)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		w := &heldWriter{reached: make(chan struct{}), leave: make(chan struct{})}
		copied := started(func() error {
			return q.read(ctx, func(tx *bbolt.Tx) error {
				to := contextWriter{ctx: ctx, to: w}
				_, _ = tx.WriteTo(&to)
				return to.err
			})
		})
		<-w.reached
		grown := started(func() error {
			return withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "k", Payload: make([]byte, 1<<20)})
		})
		stacks := make([]byte, 1<<20)
		for !strings.Contains(string(stacks[:runtime.Stack(stacks, true)]), "bbolt.(*DB).mmap(") {
			require.Empty(t, grown, "the file was mapped anew under the reader")
			runtime.Gosched()
		}
		looked := started(func() error { _, err := q.Stats(t.Context()); return err })
		if ends {
			cancel()
		}
		close(w.leave)
		if err := <-copied; ends {
			require.ErrorIs(t, err, context.Canceled)
		} else {
			require.NoError(t, err)
		}
		require.NoError(t, <-grown)
		require.NoError(t, <-looked)
	}
}

// A file that is truncated while it is read returns an error, and leaves no truncated copy.
func TestCopyOfACutFile(t *testing.T) {
	path := filepath.Join(memoryFolder(t), "jobs.db")
	require.NoError(t, os.WriteFile(path, soundFile(t), 0o600))
	r, err := OpenReader(path)
	require.NoError(t, err)
	defer r.Close()
	require.NoError(t, os.Truncate(path, int64(3*os.Getpagesize())))
	for _, c := range copiers {
		folder := t.TempDir()
		require.ErrorIs(t, c.copy(&r.reader, t.Context(), filepath.Join(folder, "copy.db")), pawl.ErrCorrupt, c.name)
		require.Empty(t, snapshot(t, folder))
	}
}
