package admin

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// memoryFolder is a folder of the test in memory where the system has that, for tests that
// prove nothing about the disk.
func memoryFolder(t testing.TB) string {
	t.Helper()
	folder, err := os.MkdirTemp("/dev/shm", "pawl-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(folder)) })
	return folder
}
