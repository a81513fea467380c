//go:build unix

package dbfile

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A path leads to a file by any of its names, and not to another file or to none.
func TestLeadsTo(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	require.NoError(t, os.WriteFile(at("file"), nil, 0o600))
	require.NoError(t, os.WriteFile(at("other"), nil, 0o600))
	require.NoError(t, os.Link(at("file"), at("link")))
	require.NoError(t, os.Symlink(at("file"), at("symbolic")))
	require.NoError(t, os.Symlink(at("none"), at("dangling")))
	info, err := os.Stat(at("file"))
	require.NoError(t, err)

	for name, leads := range map[string]bool{"file": true, "link": true, "symbolic": true, "other": false, ".": false} {
		found, err := leadsTo(at(name), info)
		require.NoError(t, err, name)
		require.Equal(t, leads, found, name)
	}
	for _, name := range []string{"none", "dangling"} {
		found, err := leadsTo(at(name), info)
		require.ErrorIs(t, err, fs.ErrNotExist, name)
		require.False(t, found, name)
	}
	_, err = leadsTo(filepath.Join(at("file"), "below"), info)
	require.Error(t, err)
}
