package bolt

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/pages"
)

// salvageTo salvages a file into a new one in the same folder, and requires that the new file
// keeps every invariant and can be opened, and that the old one is unchanged.
func salvageTo(t *testing.T, from string) (string, Salvaged) {
	t.Helper()
	before, err := os.ReadFile(from)
	require.NoError(t, err)
	to := from + ".saved"
	_ = os.Remove(to)
	result, err := Salvage(t.Context(), from, to)
	require.NoError(t, err)
	after, err := os.ReadFile(from)
	require.NoError(t, err)
	require.True(t, bytes.Equal(before, after), "the damaged file was changed")
	f, err := os.Open(to)
	require.NoError(t, err)
	defer f.Close()
	info, err := f.Stat()
	require.NoError(t, err)
	require.NoError(t, pages.Check(t.Context(), f, info.Size()))
	checkFile(t, to)
	return to, result
}

// everyJob reads all jobs of a file.
func everyJob(t *testing.T, path string) map[pawl.ID]*pawl.Envelope {
	t.Helper()
	r, err := OpenReader(path)
	require.NoError(t, err)
	defer r.Close()
	all := make(map[pawl.ID]*pawl.Envelope)
	for e, err := range r.Jobs(t.Context(), pawl.Filter{}) {
		require.NoError(t, err)
		all[e.ID] = e
	}
	return all
}

// A sound file is copied exactly: jobs in all states with everything they have, counts,
// sequences, keys, and the app's data.
func TestSalvageOfASoundFile(t *testing.T) {
	path := filepath.Join(memoryFolder(t), "jobs.db")
	synctest.Test(t, func(t *testing.T) {
		q := openAt(t, path, nil)
		fillEverything(t, q)
		require.NoError(t, q.Close())
		to, result := salvageTo(t, path)
		require.Equal(t, everything(t, path), everything(t, to))
		require.True(t, result.Sound(), "%+v", result)
		require.Equal(t, len(everyJob(t, path)), result.Kept)
		require.Positive(t, result.AppRows)
		info, err := os.Stat(to)
		require.NoError(t, err)
		require.Equal(t, fs.FileMode(0o600), info.Mode().Perm())
	})
}
