package bolt

import (
	"fmt"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A copy that does not fit on its disk leaves no partial file, and the queue continues.
func TestCopyToAFullDisk(t *testing.T) {
	q := openAt(t, filepath.Join(memoryFolder(t), "jobs.db"), nil)
	for range 10 {
		fill(t, q, 100, "q")
	}
	for _, c := range copiers {
		fits := 0
		for kilobytes := 4; kilobytes <= 2048; kilobytes *= 2 {
			folder := mountMemory(t, fmt.Sprintf("%dk", kilobytes))
			path := filepath.Join(folder, "copy.db")
			err := c.copy(&q.reader, t.Context(), path)
			if err != nil {
				require.ErrorIs(t, err, ErrDisk, c.name)
				require.ErrorIs(t, err, syscall.ENOSPC, c.name)
				require.NotContains(t, err.Error(), ".pawl-new", c.name)
				require.Empty(t, snapshot(t, folder), "something is left of it")
				continue
			}
			fits++
			checkFile(t, path)
		}
		require.NotZero(t, fits, "the test needs a disk that is large enough")
		require.Less(t, fits, 9, "and one that is not")
		add(t, q, nil)
	}
}

// A copy to a read-only disk returns that error, without advice about queues.
func TestCopyToAReadOnlyDisk(t *testing.T) {
	q := openTest(t, nil)
	folder := mountMemory(t, "1m")
	require.NoError(t, syscall.Mount("tmpfs", folder, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, "size=1m"))
	for _, c := range copiers {
		err := c.copy(&q.reader, t.Context(), filepath.Join(folder, "copy.db"))
		require.ErrorIs(t, err, syscall.EROFS)
		require.NotContains(t, err.Error(), "OpenReader")
	}
}
