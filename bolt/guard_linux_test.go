package bolt

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/kills"
	"github.com/gopawl/pawl/internal/withid"
)

// Rule: a queue continues when its process is chrooted after it opened the file: the path then
// leads nowhere, but the file is unchanged.
func TestChrootIsNoReplacement(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can change the root folder")
	}
	path := filepath.Join(memoryFolder(t), "jobs.db")
	c := kills.Start(t, "chroot", path, t.TempDir())
	require.Equal(t, "true <nil>", c.Line(t))
	require.Len(t, fetch(t, openAt(t, path, nil), 9), 1)
}

// chrootRole opens a queue, changes the root folder, and enqueues a job.
func chrootRole(args []string) error {
	q, err := Open(args[0], quiet())
	if err != nil {
		return err
	}
	if err := syscall.Chroot(args[1]); err != nil {
		return err
	}
	err = withid.Enqueue(context.Background(), q, &pawl.Envelope{Kind: "k"})
	if err == nil {
		err = q.Close()
	}
	kills.Say(err == nil, err)
	return err
}

// Rule: a queue continues when another file system is mounted over a folder of its path, and
// logs once that it cannot watch the file. It still notices the removal of the file there.
func TestMountIsNoReplacement(t *testing.T) {
	for _, over := range []string{".", "queue"} {
		outer := t.TempDir()
		folder := filepath.Join(outer, "queue")
		require.NoError(t, os.Mkdir(folder, 0o700))
		path := filepath.Join(folder, "jobs.db")
		lines, opts := warnings()
		q, err := Open(path, opts)
		require.NoError(t, err)
		hidden, err := os.Open(folder)
		require.NoError(t, err)
		mountOver(t, filepath.Join(outer, over), "1m")
		add(t, q, nil)
		add(t, q, nil)
		require.Len(t, lines, 1)
		require.Contains(t, <-lines, "cannot watch the file any more")

		require.NoError(t, syscall.Unlinkat(int(hidden.Fd()), "jobs.db"))
		require.NoError(t, hidden.Close())
		require.ErrorIs(t, withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "k"}), ErrReplaced)
		require.ErrorIs(t, q.Close(), ErrReplaced)
	}
}

// mountOver mounts an empty file system over a folder until the test ends.
func mountOver(t *testing.T, folder, size string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can mount a file system")
	}
	if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("no file system can be mounted here: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(folder, 0)) })
}

// Rule: a folder replaced by a link to another disk is no mount: the file was replaced.
func TestFolderThatBecameALink(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "data")
	require.NoError(t, os.Mkdir(folder, 0o700))
	disk := memoryFolder(t)
	q := guarded(t, filepath.Join(folder, "jobs.db"))
	require.NoError(t, os.Rename(folder, folder+".old"))
	copied, err := os.ReadFile(filepath.Join(folder+".old", "jobs.db"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(disk, "jobs.db"), copied, 0o600))
	require.NoError(t, os.Symlink(disk, folder))
	require.ErrorIs(t, withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "lost"}), ErrReplaced)
}
