package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Rule: no command makes a file in a place that belongs to the queue, by whatever path: a file
// where the mark of a failed sync goes would keep the next open from telling what happened, and
// one where the socket's folder goes would keep the app from being served.
func TestNewFileLeavesTheQueuesPlacesAlone(t *testing.T) {
	build(t, everyState)
	require.NoError(t, os.Mkdir("app.db.admin", 0o700))
	require.NoError(t, os.Symlink(".", "link"))
	absolute, err := filepath.Abs("app.db-failed-sync")
	require.NoError(t, err)
	for _, out := range []string{"app.db-failed-sync", "./app.db-failed-sync", "link/app.db-failed-sync", absolute, "app.db.admin/socket", "app.db.admin/new/socket"} {
		for _, args := range [][]string{
			{"--db", "app.db", "export", "--to", out}, {"--db", "link/app.db", "export", "--to", out},
			{"--db", "app.db", "db", "backup", out}, {"--db", "app.db", "db", "compact", out}, {"db", "salvage", "app.db", out},
		} {
			got := jobctl(t, args...)
			require.Equal(t, exitUsage, got.code, "%v: %s", args, got.stderr)
			require.Contains(t, got.stderr, "belongs to the queue in", "%v", args)
			require.NoFileExists(t, out)
		}
	}
	before, err := os.ReadFile("app.db")
	require.NoError(t, err)
	for _, args := range [][]string{{"export", "--to", "app.db"}, {"db", "backup", "app.db"}, {"db", "compact", "link/app.db"}, {"export", "--to", "link"}} {
		require.NotZero(t, jobctl(t, append([]string{"--db", "app.db"}, args...)...).code, args)
	}
	after, err := os.ReadFile("app.db")
	require.NoError(t, err)
	require.Equal(t, before, after)
	require.Equal(t, exitOK, jobctl(t, "--db", "app.db", "export", "--to", "app.db-failed-sync.jsonl").code)
}
