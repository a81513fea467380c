//go:build unix

package bolt

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// noFollow makes open refuse a symbolic link, and noWait has it not wait for the other end
// of a pipe.
const (
	noFollow = syscall.O_NOFOLLOW
	noWait   = syscall.O_NONBLOCK
)

// checkPlace refuses a file that somebody else could write to or put another one in the
// place of: whoever can do that runs code with the rights of this process, by way of its
// handlers.
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

// ofOwner reports whether a mark was left by who owns the file, by the superuser or by this
// user: in a folder such as /tmp anybody can put a file there.
func ofOwner(mark, file fs.FileInfo) bool {
	m, ok := mark.Sys().(*syscall.Stat_t)
	f, also := file.Sys().(*syscall.Stat_t)
	return !ok || !also || m.Uid == 0 || m.Uid == f.Uid || int(m.Uid) == os.Geteuid()
}

// names is how many names (hard links) a file has.
func names(info fs.FileInfo) int {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(stat.Nlink)
	}
	return 1
}

// device is the disk of a file.
func device(info fs.FileInfo) uint64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(stat.Dev)
	}
	return 0
}

// sameOwner gives a file the owner of another, which only the superuser can.
func sameOwner(f *os.File, info fs.FileInfo) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || os.Geteuid() != 0 {
		return nil
	}
	return f.Chown(int(stat.Uid), int(stat.Gid))
}

// checkRights requires that a file or folder is the user's own, or the superuser's, and
// that not everybody may write to it. In a folder with the sticky bit, such as /tmp, nobody
// can replace another's file.
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
