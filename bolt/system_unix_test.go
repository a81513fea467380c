//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package bolt

import (
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// lockFree requires that no process holds a lock on the file.
func lockFree(t *testing.T, path string) {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB))
}

func makePipe(t *testing.T, path string) { require.NoError(t, syscall.Mkfifo(path, 0o600)) }
