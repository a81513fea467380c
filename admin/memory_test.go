package admin

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// memoryFolder returns a folder in memory, if the system has one, for tests that prove nothing
// about the disk.
func memoryFolder(t testing.TB) string {
	t.Helper()
	folder, err := os.MkdirTemp("/dev/shm", "pawl-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(folder)) })
	return folder
}
