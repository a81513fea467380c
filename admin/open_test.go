//go:build unix

package admin

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/bolt/offline"
)

// processOf returns the process that serves the queue that Open finds, nil for the file.
func processOf(t *testing.T, a Admin, err error) *Process {
	t.Helper()
	require.NoError(t, err)
	defer a.Close()
	stats, err := a.Stats(context.Background())
	require.NoError(t, err)
	return stats.Process
}

// Open finds the app while it runs, and the file before and after.
func TestOpenFindsAppOrFile(t *testing.T) {
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "jobs.db")
	_, err := Open(ctx, offline.New(path, nil), nil)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, path)

	app := startApp(t, "serve", path)
	a, err := openTest(path)
	require.Equal(t, app.cmd.Process.Pid, processOf(t, a, err).PID)

	app.end(t)
	require.NoError(t, app.cmd.Wait())
	require.NoDirExists(t, path+".admin")
	a, err = Open(ctx, offline.New(path, nil), nil)
	require.Nil(t, processOf(t, a, err))
}

// A file that another process has open without serving it is locked, and the error names the
// process.
func TestOpenNamesWhoLocksTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	app := startApp(t, "hold", path)
	_, err := Open(context.Background(), offline.New(path, nil), nil)
	require.ErrorIs(t, err, bolt.ErrLocked)
	if _, e := os.Stat("/proc/locks"); e == nil {
		require.ErrorContains(t, err, fmt.Sprintf("pid %d", app.cmd.Process.Pid))
	}
}

// If an app has the file and cannot be reached, the error has the reason.
func TestOpenReportsWhyTheAppCannotBeAsked(t *testing.T) {
	q := openLive(t)
	s := serveTest(t, q)
	require.NoError(t, os.Chmod(s.place.folder, 0o755))
	_, err := openTest(q.Path())
	require.ErrorIs(t, err, bolt.ErrLocked)
	require.ErrorIs(t, err, ErrDistrusted)
	require.ErrorContains(t, err, "others may enter the folder")
	require.NoError(t, os.Chmod(s.place.folder, 0o700))
}

// An app that is starting takes the file first, and is found anyway.
func TestOpenFindsAppThatStarts(t *testing.T) {
	q := openLive(t)
	a, err := open(context.Background(), offline.New(q.Path(), nil), nil, time.Minute, func() { serveTest(t, q) })
	require.NotNil(t, processOf(t, a, err))
}

// The file of an app that has just ended can be opened.
func TestOpenFindsFileOfAppThatEnds(t *testing.T) {
	q := openLive(t)
	a, err := open(context.Background(), offline.New(q.Path(), nil), nil, time.Minute, func() { require.NoError(t, q.Close()) })
	require.Nil(t, processOf(t, a, err))
}
