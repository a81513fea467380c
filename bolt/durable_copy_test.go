package bolt

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/atomicfile"
)

// watchSyncs calls fn for each sync of a file or a folder, before the sync. The sync returns
// fn's error.
func watchSyncs(t *testing.T, fn func(f *os.File) error) {
	t.Helper()
	sync := atomicfile.Sync
	t.Cleanup(func() { atomicfile.Sync = sync })
	atomicfile.Sync = func(f *os.File) error { return errors.Join(fn(f), sync(f)) }
}

// leadsElsewhere reports whether path leads to another file than before.
func leadsElsewhere(t *testing.T, path string, before os.FileInfo) bool {
	t.Helper()
	now, err := os.Stat(path)
	require.NoError(t, err)
	return !os.SameFile(before, now)
}

// Rule: a copy that replaces the queue's file is synced before it gets the name, and its folder
// after that. Otherwise a power failure leaves a name that leads to nothing.
func TestCopyIsDurableBeforeItHasTheName(t *testing.T) {
	for _, test := range []struct {
		rule string
		make func(t *testing.T, path string)
		do   func(t *testing.T, path string) error
	}{
		{"repaired after a failed sync", func(t *testing.T, path string) { failSync(t, path, failedSyncs[0].commit) },
			func(t *testing.T, path string) error {
				q, err := Open(path, quiet())
				if err != nil {
					return err
				}
				return q.Close()
			}},
		{"compacted in place", func(t *testing.T, path string) { closedQueue(t, path) },
			func(t *testing.T, path string) error { return CompactInPlace(t.Context(), path, quiet()) }},
	} {
		t.Run(test.rule, func(t *testing.T) {
			path := filepath.Join(memoryFolder(t), "jobs.db")
			test.make(t, path)
			before, err := os.Stat(path)
			require.NoError(t, err)
			var copySynced, folderSynced bool
			watchSyncs(t, func(f *os.File) error {
				info, err := f.Stat()
				require.NoError(t, err)
				switch {
				case info.IsDir():
					folderSynced = folderSynced || copySynced && leadsElsewhere(t, path, before)
				case strings.HasPrefix(filepath.Base(f.Name()), ".pawl-new-"):
					require.False(t, leadsElsewhere(t, path, before), "it has the name before it is synced")
					require.Positive(t, info.Size())
					require.Equal(t, before.Mode(), info.Mode(), "its mode is durable too")
					copySynced = true
				}
				return nil
			})
			require.NoError(t, test.do(t, path))
			require.True(t, leadsElsewhere(t, path, before))
			require.True(t, copySynced, "the copy was not synced")
			require.True(t, folderSynced, "its name was not synced")
		})
	}
}

// closedQueue makes a queue with a job and closes it.
func closedQueue(t *testing.T, path string) pawl.ID {
	t.Helper()
	q, err := Open(path, quiet())
	require.NoError(t, err)
	id := add(t, q, nil).ID
	require.NoError(t, q.Close())
	return id
}

// Rule: when a backup or a compaction returns, its name is durable: the folder was synced after
// the file got its name. If that fails, the file is removed.
func TestNewCopyHasADurableName(t *testing.T) {
	path := filepath.Join(memoryFolder(t), "jobs.db")
	closedQueue(t, path)
	r, err := OpenReader(path)
	require.NoError(t, err)
	defer r.Close()
	for name, copy := range map[string]func(context.Context, string) error{"Backup": r.Backup, "Compact": r.Compact} {
		t.Run(name, func(t *testing.T) {
			for _, fails := range []bool{false, true} {
				to, synced := filepath.Join(memoryFolder(t), "copy.db"), false
				watchSyncs(t, func(f *os.File) error {
					info, err := f.Stat()
					require.NoError(t, err)
					if _, err := os.Stat(to); err == nil && info.IsDir() && f.Name() == filepath.Dir(to) {
						if synced = true; fails {
							return errBoom
						}
					}
					return nil
				})
				err := copy(t.Context(), to)
				require.True(t, synced, "the name was not synced")
				if fails {
					require.ErrorIs(t, err, errBoom)
					require.NoFileExists(t, to)
				} else {
					require.NoError(t, err)
					checkFile(t, to)
				}
			}
		})
	}
}

// Rule: a compaction in place keeps all content, the mode, and the lock. It leaves nothing
// beside the file. A file that it cannot replace is unchanged.
func TestCompactInPlace(t *testing.T) {
	t.Parallel()
	path := filepath.Join(memoryFolder(t), "jobs.db")
	q, err := Open(path, quiet())
	require.NoError(t, err)
	fillEverything(t, q)
	large := add(t, q, func(e *pawl.Envelope) { e.Payload = make([]byte, 1<<20) })
	require.NoError(t, q.Cancel(t.Context(), large.ID))
	require.ErrorIs(t, CompactInPlace(t.Context(), path, quiet()), ErrLocked, "an app has it")
	require.NoError(t, q.Close())
	require.NoError(t, os.Chmod(path, 0o640))
	before, want := mustStat(t, path), everything(t, path)

	link := path + ".link"
	require.NoError(t, os.Link(path, link))
	require.ErrorIs(t, CompactInPlace(t.Context(), path, quiet()), pawl.ErrInvalid)
	require.NoError(t, os.Remove(link))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, CompactInPlace(ended, path, quiet()), context.Canceled)
	require.False(t, leadsElsewhere(t, path, before))

	require.NoError(t, CompactInPlace(t.Context(), path, quiet()))
	after := mustStat(t, path)
	require.Less(t, after.Size(), before.Size())
	require.Equal(t, before.Mode(), after.Mode())
	require.Equal(t, want, everything(t, path))
	require.Len(t, snapshot(t, filepath.Dir(path)), 1, "nothing else is left in the folder")
	lockFree(t, path)
	checkFile(t, path)

	require.NoError(t, os.Symlink("jobs.db", link))
	require.ErrorIs(t, CompactInPlace(t.Context(), link, quiet()), ErrInsecure)
	require.NoError(t, CompactInPlace(t.Context(), link, &Options{Logger: quiet().Logger, Insecure: true}))
	info, err := os.Lstat(link)
	require.NoError(t, err)
	require.NotZero(t, info.Mode()&os.ModeSymlink, "the link stays a link")
	require.ErrorIs(t, CompactInPlace(t.Context(), "", quiet()), pawl.ErrInvalid)
}

func mustStat(t *testing.T, path string) os.FileInfo {
	t.Helper()
	info, err := os.Stat(path)
	require.NoError(t, err)
	return info
}
