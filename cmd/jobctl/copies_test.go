package main

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
)

// Rule: a job that cannot be exported is named, and the exit code reports it.
func TestExportNamesDamage(t *testing.T) {
	build(t, everyState)
	spoil(t, "app.db", id(2))
	got := jobctl(t, words("--db app.db export --to jobs.jsonl")...)
	require.Equal(t, exitDamaged, got.code)
	require.Contains(t, got.stderr, "error: 1 damaged job could not be read and was skipped:\n  job "+id(2).String())
	require.FileExists(t, "jobs.jsonl")
}

// Rule: a dry run of an import leaves nothing behind, even if the import would create the file.
func TestImportDryRunLeavesNothing(t *testing.T) {
	build(t, everyState)
	require.Equal(t, exitOK, jobctl(t, words("--db app.db export --to jobs.jsonl")...).code)
	scratch := t.TempDir()
	for _, name := range []string{"TMPDIR", "TMP", "TEMP"} {
		t.Setenv(name, scratch)
	}
	got := jobctl(t, words("--db new.db import jobs.jsonl --create --dry-run")...)
	require.Equal(t, outcomeOf{exitOK, "would be imported: 6, skipped: 0; nothing was changed\n", ""}, got)
	require.False(t, exists("new.db"))
	left, err := os.ReadDir(scratch)
	require.NoError(t, err)
	require.Empty(t, left)
}

// Rule: a check of pages distinguishes a damaged file from a file of another program.
func TestCheckPages(t *testing.T) {
	t.Chdir(t.TempDir())
	damaged(t, "bad.db")
	require.ErrorIs(t, checkPages(t.Context(), "bad.db"), pawl.ErrCorrupt)
	require.NoError(t, os.WriteFile("text", bytes.Repeat([]byte("no queue\n"), 9999), 0o600))
	require.ErrorIs(t, checkPages(t.Context(), "text"), bolt.ErrNotQueue)
	buildAt(t, "good.db", everyState)
	require.NoError(t, checkPages(t.Context(), "good.db"))
}
