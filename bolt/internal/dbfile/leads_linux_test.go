package dbfile

import (
	"io/fs"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// elsewhere is a file as if it were on another device.
type elsewhere struct{ fs.FileInfo }

func (f elsewhere) Sys() any {
	stat := *f.FileInfo.Sys().(*syscall.Stat_t)
	stat.Dev++
	return &stat
}

// A path does not lead to a file with the same inode number on another device.
func TestLeadsToAnotherDevice(t *testing.T) {
	path := t.TempDir()
	info, err := os.Stat(path)
	require.NoError(t, err)
	found, err := leadsTo(path, elsewhere{info})
	require.NoError(t, err)
	require.False(t, found)
}
