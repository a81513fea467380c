package dbfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/pages"
)

// lockRetry is the pause before another try to lock a file.
const lockRetry = 20 * time.Millisecond

// Access says how to open a file.
type Access struct {
	ReadOnly bool
	Timeout  time.Duration // to wait for the lock
	Insecure bool          // others may own the file or write to it
	Log      pawl.Logger   // logger of a writer
	Check    Check
}

// Check requires that a file is a queue.
type Check func(tx *bbolt.Tx) error

// claimed is a file that may be passed to bbolt.
type claimed struct {
	file     *os.File
	meta     pages.Meta
	freelist bool // the file has a list of its free pages

	stopReading func() // stops the read-ahead of the file
}

// claim opens the file at path, takes its lock as bbolt would, repairs what a failed sync left,
// and checks its pages. Once it has the lock, no other queue writes to the file. Where the
// system has no such locks, bbolt takes the lock later.
func claim(path string, a Access) (c claimed, err error) {
	for {
		f, err := hold(path, a)
		if err != nil {
			return c, err
		}
		repaired, err := repair(path, f, a)
		if err == nil && !repaired {
			c, err = inspect(f, a)
		}
		if err == nil && !repaired {
			return c, nil
		}
		unlock(f)
		_ = f.Close()
		if err != nil {
			return claimed{}, err
		}
	}
}

// hold opens a file and takes its lock. After waiting for the lock it ensures that path still
// leads to the file.
func hold(path string, a Access) (*os.File, error) {
	for deadline := time.Now().Add(a.Timeout); ; <-time.After(lockRetry) {
		f, err := openPath(path, a)
		if err != nil {
			return nil, err
		}
		locked, err := tryLock(f, a.ReadOnly)
		if err == nil && locked && named(path, f) {
			return f, nil
		}
		_ = f.Close()
		switch {
		case err != nil:
			return nil, &fs.PathError{Op: "lock", Path: path, Err: err}
		case time.Now().Before(deadline):
		case locked:
			return nil, fmt.Errorf("%w: another file was put in its place meanwhile; open it again", ErrLocked)
		default:
			return nil, fmt.Errorf("%w%s; stop it, or open another file", ErrLocked, lockHolder(path))
		}
	}
}

// openPath opens a regular file that is safe to write to.
func openPath(path string, a Access) (*os.File, error) {
	if err := inspectPath(path); err != nil {
		return nil, Advise(err)
	}
	flag, safe := os.O_RDWR, !a.ReadOnly && !a.Insecure
	switch {
	case safe:
		if to, err := os.Readlink(path); err == nil {
			return nil, fmt.Errorf("%w: it is a symbolic link to %s; name that file itself", ErrInsecure, to)
		}
		flag |= noFollow
	case a.ReadOnly:
		flag = os.O_RDONLY
	}
	f, err := os.OpenFile(path, flag, 0)
	if err != nil {
		return nil, Advise(err)
	}
	if safe {
		if err := checkPlace(path, f); err != nil {
			_ = f.Close()
			return nil, err
		}
	}
	return f, nil
}

// OpenDamaged opens a file for reading and takes its lock, whatever is in it.
func OpenDamaged(path string) (*os.File, error) {
	if err := inspectPath(path); err != nil {
		return nil, Advise(err)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, Advise(err)
	}
	// Without locks in the file system, no other process can be kept out.
	if locked, err := tryLock(f, true); err == nil && !locked {
		_ = f.Close()
		return nil, fmt.Errorf("%w%s; stop it, or salvage a copy", ErrLocked, lockHolder(path))
	}
	return f, nil
}

// inspectPath rejects anything but a regular file, without opening it: opening a pipe would
// wait for the other end.
func inspectPath(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("%w: it is a folder; name a file in it", ErrNotQueue)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%w: it is no regular file", ErrNotQueue)
	}
	return nil
}

// named reports whether path still leads to an open file.
func named(path string, f *os.File) bool {
	there, err := os.Stat(path)
	if err != nil {
		return false
	}
	here, err := f.Stat()
	return err == nil && os.SameFile(there, here)
}

// Advise adds advice to a file system error.
func Advise(err error) error {
	switch {
	case isReadOnlyDisk(err):
		return fmt.Errorf("%w; a queue must be able to write to its file: choose another place, or only read it with OpenReader", err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w; check the owner and the mode of the file and of its folder", err)
	}
	return err
}
