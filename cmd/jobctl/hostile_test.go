package main

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/internal/withid"
)

// reading and retrying return the commands for a hostile file.
func reading() []string {
	return []string{
		"stats", "stats -o json",
		"job list -n 0", "job list -n 0 -o json -s ready",
		"job show " + id(1).String(), "job show -o json " + id(9).String(),
		"dead list -n 0",
	}
}

func retrying() []string { return []string{"dead retry " + id(1).String(), "dead retry --all -y"} }

// A file that is not a queue gives a clear error and stays unchanged.
func TestFilesThatAreNoQueue(t *testing.T) {
	t.Chdir(t.TempDir())
	random := make([]byte, 64<<10)
	for i := range random {
		random[i] = byte(rand.Uint32())
	}
	write := func(name string, content []byte) { require.NoError(t, os.WriteFile(name, content, 0o600)) }
	write("empty.db", nil)
	write("text.db", []byte(strings.Repeat("not a database\n", 1000)))
	write("random.db", random)
	write("short.db", []byte("x"))
	require.NoError(t, os.Mkdir("folder.db", 0o700))
	require.NoError(t, os.Symlink("nowhere.db", "dangling.db"))
	cases := map[string]string{
		"empty.db":    "the file is empty",
		"text.db":     "no bbolt file",
		"random.db":   "no bbolt file",
		"short.db":    "no bbolt file",
		"folder.db":   "it is a folder",
		"dangling.db": "dangling.db: no such file\n  Check --db; jobctl never creates a file.",
		"missing.db":  "missing.db: no such file\n  Check --db; jobctl never creates a file.",
		"no/where.db": "no/where.db: no such file\n  Check --db; jobctl never creates a file.",
	}
	for name, want := range cases {
		for _, line := range append(reading(), retrying()...) {
			got := jobctl(t, append([]string{"--db", name}, words(line)...)...)
			require.Equal(t, exitError, got.code, "%s of %s: %s", line, name, got.stderr)
			require.Empty(t, got.stdout)
			require.Contains(t, got.stderr, want)
			require.True(t, strings.HasPrefix(got.stderr, "error: "), got.stderr)
		}
	}
	entries, err := os.ReadDir(".")
	require.NoError(t, err)
	require.Len(t, entries, 6, "no command creates a file")
	after, err := os.ReadFile("random.db")
	require.NoError(t, err)
	require.Equal(t, random, after)
}

// A truncated file is reported as damaged.
func TestTruncatedFile(t *testing.T) {
	t.Chdir(t.TempDir())
	buildAt(t, "app.db", large)
	whole, err := os.ReadFile("app.db")
	require.NoError(t, err)
	r, err := bolt.OpenReader("app.db")
	require.NoError(t, err)
	stats, err := r.Stats(context.Background())
	require.NoError(t, err)
	require.NoError(t, r.Close())
	for _, size := range []int{1, 100, 4096, 4097, 8192, 12288, int(stats.Size / 2), int(stats.Size - 1)} {
		require.NoError(t, os.WriteFile("cut.db", whole[:size], 0o600))
		for _, line := range append(reading(), retrying()...) {
			got := jobctl(t, append([]string{"--db", "cut.db"}, words(line)...)...)
			require.Contains(t, []int{exitError, exitDamaged}, got.code, "%s of %d bytes: %s", line, size, got.stderr)
			require.Empty(t, got.stdout)
			require.NotEmpty(t, got.stderr)
		}
	}
}

// large adds enough jobs for branch pages, payloads in their own pages, and histories.
func large(f *file) {
	f.t.Helper()
	everyState(f)
	for i := range 20 {
		f.kill(pawl.Envelope{Queue: "bulk", MaxRetries: 1, Payload: bytes.Repeat([]byte{byte(i)}, 3000)},
			pawl.ReasonExhausted, strings.Repeat("e", 300), "again")
	}
	jobs := make([]*pawl.Envelope, 300)
	for i := range jobs {
		f.made++
		jobs[i] = &pawl.Envelope{ID: id(f.made), Kind: "bulk.load", Queue: "bulk", Payload: bytes.Repeat([]byte{byte(i)}, i)}
	}
	require.NoError(f.t, withid.Enqueue(context.Background(), f.q, jobs...))
}
