//go:build unix

package dbfile

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// noFollow makes open refuse a symbolic link, and noWait keeps it from waiting for the other
// end of a pipe.
const (
	noFollow = syscall.O_NOFOLLOW
	noWait   = syscall.O_NONBLOCK
)

// checkPlace refuses a file that another user could write to or replace. Such a user could run
// code with the rights of this process, through its handlers.
func checkPlace(path string, f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := checkRights(info, "file", path); err != nil {
		return err
	}
	return checkFolder(filepath.Dir(path))
}

// checkFolder is checkPlace for the folder alone.
func checkFolder(folder string) error {
	info, err := os.Stat(folder)
	if err != nil {
		return err
	}
	return checkRights(info, "folder", folder)
}

// ofOwner reports whether a failed-sync marker was left by the owner of the file, the superuser
// or this user. In a folder such as /tmp anybody can put a file there.
func ofOwner(mark, file fs.FileInfo) bool {
	m, ok := mark.Sys().(*syscall.Stat_t)
	f, also := file.Sys().(*syscall.Stat_t)
	return !ok || !also || m.Uid == 0 || m.Uid == f.Uid || int(m.Uid) == os.Geteuid()
}

// Names returns how many names (hard links) a file has.
func Names(info fs.FileInfo) int {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(stat.Nlink)
	}
	return 1
}

// device returns the device of a file.
func device(info fs.FileInfo) uint64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(stat.Dev)
	}
	return 0
}

// sameOwner gives a file the owner of another file, which only the superuser can do.
func sameOwner(f *os.File, info fs.FileInfo) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || os.Geteuid() != 0 {
		return nil
	}
	return f.Chown(int(stat.Uid), int(stat.Gid))
}

// checkRights requires that a file or folder belongs to the user or the superuser, and is not
// writable by everybody. In a folder with the sticky bit, such as /tmp, users cannot replace
// each other's files.
func checkRights(info fs.FileInfo, what, path string) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	if me := os.Geteuid(); me != 0 && stat.Uid != 0 && int(stat.Uid) != me {
		return fmt.Errorf("%w: the %s %s belongs to user %d, and this is user %d; run as its owner, chown it, or set Options.Insecure", ErrInsecure, what, path, stat.Uid, me)
	}
	if info.Mode().Perm()&0o002 != 0 && info.Mode()&fs.ModeSticky == 0 {
		return fmt.Errorf("%w: everybody may write to the %s %s (mode %04o); chmod o-w it, or set Options.Insecure", ErrInsecure, what, path, info.Mode().Perm())
	}
	return nil
}
