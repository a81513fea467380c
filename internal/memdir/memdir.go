// Package memdir has folders for tests that show nothing about a disk. A sync costs nothing there, so such
// tests do not wait for each other's writes.
package memdir

import (
	"os"
	"testing"
)

// New returns a folder that ends with the test, in memory where the system has that.
func New(t testing.TB) string {
	t.Helper()
	folder, err := os.MkdirTemp("/dev/shm", "pawl-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(folder); err != nil {
			t.Error(err)
		}
	})
	return folder
}
