package dbfile

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
)

// Rule: if a file was replaced while its lock was waited for, the new file is opened, and the
// lock of the old one is not needed.
func TestFileThatIsReplacedWhileItsLockIsWaitedFor(t *testing.T) {
	if !CanLock {
		t.Skip("needs flock: without it the lock is left to bbolt")
	}
	path := filepath.Join(t.TempDir(), "jobs.db")
	require.NoError(t, os.WriteFile(path, []byte("old"), 0o600))
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	require.True(t, named(path, f))
	require.NoError(t, os.Rename(path, path+".old"))
	require.False(t, named(path, f))
	require.NoError(t, os.WriteFile(path, []byte("new"), 0o600))
	require.False(t, named(path, f), "the old file does not have the name any more")
	locked, err := tryLock(f, false)
	require.NoError(t, err)
	require.True(t, locked)
	held, err := hold(path, Access{})
	require.NoError(t, err)
	defer held.Close()
	require.True(t, named(path, held))
}

// Rule: a transaction over an app's database that begins beside Close finds no fault in what the
// next process writes. A read of the file can still be in progress when the file is closed.
func TestNoFaultAfterCloseOver(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.db")
	db, err := bbolt.Open(path, 0o600, nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	g, err := GuardOver(db, hclog.NewNullLogger())
	require.NoError(t, err)
	if g == nil {
		t.Skip("this system has no guard over an app's database")
	}
	g.Close()
	g.file, err = os.Open(path) // open, as it is for a read in progress
	require.NoError(t, err)
	defer func() { require.NoError(t, g.file.Close()) }()
	require.NoError(t, os.Truncate(path, 0))
	require.NoError(t, g.Content())
}
