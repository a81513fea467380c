package bolt

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Rule: where a file system has no links, one creator alone gets the name, and a
// file that is there is never replaced.
func TestRenameNewReplacesNothing(t *testing.T) {
	folder := t.TempDir()
	path, temp := filepath.Join(folder, "jobs.db"), filepath.Join(folder, "temp")
	require.NoError(t, os.WriteFile(temp, []byte("first"), 0o600))
	require.NoError(t, renameNew(temp, path))
	require.NoError(t, os.WriteFile(temp, []byte("second"), 0o600))
	require.ErrorIs(t, renameNew(temp, path), fs.ErrExist)
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "first", string(content))
}
