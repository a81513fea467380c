package main

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
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

const (
	agree     = "app.db has the format of an older release. A retry converts it; the older release\n  cannot open it from then on.\nConvert it? Type y: "
	converted = "note: 1 leased job whose process had ended: ready again too\nnote: app.db was converted to the format of this release\n"
)

// A command that reads an older file leaves it as it is, and says by exit code 7 what to
// do.
func TestReadingAnOlderFile(t *testing.T) {
	before := older(t)
	for _, line := range reading() {
		require.Equal(t, outcomeOf{exitFormat, "", `error: app.db has the format of an older release
  Use the jobctl of that release, or start the app of this one once: it converts
  the file, and the older release cannot open it from then on.
`}, jobctl(t, append(words("--db app.db"), words(line)...)...), line)
	}
	unchanged(t, before)
}

// A retry converts an older file only after a yes; without one nothing is changed.
func TestRetryConvertsNoOlderFileUnasked(t *testing.T) {
	before := older(t)
	for _, line := range []string{"dead retry " + id(1).String(), "dead retry -o json " + id(1).String()} {
		require.Equal(t, outcomeOf{exitFormat, "", `error: app.db has the format of an older release, and a retry converts it
  Add -y to have that; the older release cannot open it from then on.
`}, jobctl(t, append(words("--db app.db"), words(line)...)...))
	}
	require.Equal(t, outcomeOf{exitError, "", agree + "error: not confirmed, nothing was changed\n"},
		asked(t, thinking(func() string { return "n\n" }), words("--db app.db dead retry --all")...))
	unchanged(t, before)
}

// With -y it does, and retries then.
func TestRetryConvertsAnOlderFile(t *testing.T) {
	older(t)
	require.Equal(t, outcomeOf{0, "retried 1, skipped 0\n", converted}, jobctl(t, words("--db app.db dead retry --all -y")...))
	require.Equal(t, exitOK, jobctl(t, words("--db app.db stats")...).code)
	require.NotContains(t, jobctl(t, words("--db app.db job list -n 0")...).stdout, string(pawl.Dead))
	checkFile(t, "app.db")
}

// A yes to the first question and a no to the second leave a converted file in which no
// job was retried.
func TestRetryAsksTwiceAboutAnOlderFile(t *testing.T) {
	older(t)
	answers := []string{"y\n", "n\n"}
	got := asked(t, thinking(func() string {
		answer := answers[0]
		answers = answers[1:]
		return answer
	}), words("--db app.db dead retry --all")...)
	require.Equal(t, outcomeOf{exitError, "", agree + converted +
		"1 job matches (state=dead).\nRetry it? Type y: error: not confirmed, no job was retried\n"}, got)
	checkFile(t, "app.db")
}
