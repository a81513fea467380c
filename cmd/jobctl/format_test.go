package main

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// older makes app.db a file that a release with format 1 left: it has one dead letter and
// a leased job. It returns its bytes.
func older(t *testing.T) []byte {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "..", "bolt", "testdata", "format1.db.gz"))
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	b, err := io.ReadAll(z)
	require.NoError(t, err)
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("app.db", b, 0o600))
	return b
}

// unchanged requires that app.db has these bytes.
func unchanged(t *testing.T, before []byte) {
	t.Helper()
	after, err := os.ReadFile("app.db")
	require.NoError(t, err)
	require.True(t, bytes.Equal(before, after), "the file was changed")
}

const other = `error: app.db has the format of an older release
  Use the jobctl of that release, or convert the file by 'jobctl db migrate': the
  older release cannot open it from then on.
`

// A command that reads or changes an older file leaves it as it is, and says by exit code
// 7 what to do.
func TestOlderFileIsLeftAlone(t *testing.T) {
	before := older(t)
	for _, line := range append(reading(), retrying()...) {
		require.Equal(t, outcomeOf{exitFormat, "", other}, jobctl(t, append(words("--db app.db"), words(line)...)...), line)
	}
	unchanged(t, before)
}

const (
	agree     = "app.db has the format of an older release. That release cannot open it once it\n  is converted.\nConvert it? Type y: "
	converted = "app.db was converted to the format of this release\n"
)

// Migrate converts an older file only after a yes; without one nothing is changed.
func TestMigrateAsks(t *testing.T) {
	before := older(t)
	require.Equal(t, outcomeOf{exitUsage, "", "error: there is no terminal to ask on; add -y to convert the file\n  See 'jobctl db migrate --help'.\n"},
		jobctl(t, words("--db app.db db migrate")...))
	require.Equal(t, exitUsage, jobctl(t, words("--db app.db db migrate -o json")...).code)
	require.Equal(t, outcomeOf{exitError, "", agree + "error: not confirmed, nothing was changed\n"},
		asked(t, strings.NewReader("n\n"), words("--db app.db db migrate")...))
	require.Equal(t, outcomeOf{0, "app.db has the format of an older release and would be converted; nothing was changed\n", ""},
		jobctl(t, words("--db app.db db migrate --dry-run")...))
	unchanged(t, before)
}

// With a yes it does, tells of the jobs that the open took back, and all commands work then.
func TestMigrateConverts(t *testing.T) {
	const recovered = "note: the file was brought to the format of this release; an older one cannot open it any more\nnote: 1 leased job whose process had ended: ready again too\n"
	older(t)
	require.Equal(t, outcomeOf{0, converted, agree + recovered}, asked(t, strings.NewReader("y\n"), words("--db app.db db migrate")...))
	require.Equal(t, outcomeOf{0, "retried 1, skipped 0\n", ""}, jobctl(t, words("--db app.db dead retry --all -y")...))
	require.Equal(t, outcomeOf{0, "app.db has the format of this release already\n", ""}, jobctl(t, words("--db app.db db migrate -y")...))
	checkFile(t, "app.db")
}

// Rule: a file that went away while somebody thought about the question is not created.
func TestMigrateCreatesNoFile(t *testing.T) {
	older(t)
	got := asked(t, thinking(func() string {
		require.NoError(t, os.Remove("app.db"))
		return "y\n"
	}), words("--db app.db db migrate")...)
	require.Equal(t, exitError, got.code)
	require.Contains(t, got.stderr, "error: app.db: no such file\n")
	require.False(t, exists("app.db"))
}
