//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package dbfile

import (
	"errors"
	"os"
	"syscall"
)

// CanLock says that a file can be locked as bbolt locks it. Bbolt gets the open file, so the
// lock that the file has is also bbolt's.
const CanLock = true

// tryLock takes the lock of a file without waiting, shared for readers.
func tryLock(f *os.File, shared bool) (ok bool, err error) {
	how := syscall.LOCK_EX
	if shared {
		how = syscall.LOCK_SH
	}
	err = syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

// unlock releases the lock of a file without bbolt. After bbolt panics, its map of the file
// stays, and otherwise the lock would stay with it.
func unlock(f *os.File) { _ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }
