package dbfile

import (
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// leadsTo reports whether a path leads to a file, following symbolic links.
//
// It asks for the inode alone, not for the times, as os.Stat does. After a question for them, Linux 6.13 and later give
// the file an exact time at its next change. Without a journal, ext4 then also writes the inode when it syncs the pages.
func leadsTo(path string, info fs.FileInfo) (bool, error) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return false, fs.ErrInvalid
	}
	var there unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_INO, &there); err != nil {
		now, err := os.Stat(path) // not every sandbox lets statx through
		return err == nil && os.SameFile(now, info), err
	}
	return there.Ino == stat.Ino && unix.Mkdev(there.Dev_major, there.Dev_minor) == device(info), nil
}
