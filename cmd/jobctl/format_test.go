package main

import (
	"bytes"
	"os"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/bolt"
)

// older makes app.db a file of an earlier release, and returns its bytes.
func older(t *testing.T) []byte {
	t.Helper()
	t.Chdir(t.TempDir())
	q, err := bolt.Open("app.db", &bolt.Options{Logger: hclog.NewNullLogger()})
	require.NoError(t, err)
	require.NoError(t, q.Close())
	require.NoError(t, putFormat("app.db", 0))
	b, err := os.ReadFile("app.db")
	require.NoError(t, err)
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
  Use the jobctl of the release that wrote the file.
`

// A command that reads or changes an older file leaves it unchanged, ends with exit code 7, and
// prints the remedy.
func TestOlderFileIsLeftAlone(t *testing.T) {
	before := older(t)
	for _, line := range append(reading(), retrying()...) {
		require.Equal(t, outcomeOf{exitFormat, "", other}, jobctl(t, append(words("--db app.db"), words(line)...)...), line)
	}
	unchanged(t, before)
}
