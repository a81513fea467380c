package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// Rule: no command creates a file in a place that belongs to the queue, even through a path that
// leaves a link by "..".
func TestNewFileThroughALinkAndBack(t *testing.T) {
	build(t, everyState)
	require.NoError(t, os.Mkdir("inner", 0o700))
	require.NoError(t, os.Mkdir("other", 0o700))
	require.NoError(t, os.Symlink("../inner", "other/link"))
	const path = "other/link/../app.db-failed-sync" // the system follows link first
	for _, args := range [][]string{
		{"--db", "app.db", "export", "--to", path}, {"--db", "app.db", "db", "backup", path},
		{"--db", "app.db", "db", "compact", path}, {"db", "salvage", "app.db", path},
	} {
		require.Equal(t, exitUsage, jobctl(t, args...).code, args)
		require.NoFileExists(t, "app.db-failed-sync")
	}
}
