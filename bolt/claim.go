package bolt

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/pages"
)

// lockRetry is how long to wait before the lock of a file is asked for again.
const lockRetry = 20 * time.Millisecond

// access is how a file is to be opened.
type access struct {
	readOnly bool
	timeout  time.Duration // for the lock
	insecure bool          // others may own the file or write to it
	log      pawl.Logger
}

// claimed is a file that may be handed to bbolt.
type claimed struct {
	file     *os.File
	meta     pages.Meta
	freelist bool // it has a list of its free pages

	stopReading func() // ends what reads the file ahead
}

// claim opens the file at path, takes its lock as bbolt would, mends what a failed sync has
// left, and looks at its pages. All that comes after the lock happens to a file that nobody
// else writes to. Where the system has no such locks, bbolt takes the lock later.
func claim(path string, a access) (c claimed, err error) {
	for {
		f, err := hold(path, a)
		if err != nil {
			return c, err
		}
		mended, err := mend(path, f, a)
		if err == nil && !mended {
			c, err = inspect(f, a)
		}
		if err == nil && !mended {
			return c, nil
		}
		unlock(f)
		_ = f.Close()
		if err != nil {
			return claimed{}, err
		}
	}
}

// hold opens a file and takes its lock. It is the file of that name also after the lock was
// waited for.
func hold(path string, a access) (*os.File, error) {
	for deadline := time.Now().Add(a.timeout); ; <-time.After(lockRetry) {
		f, err := openPath(path, a)
		if err != nil {
			return nil, err
		}
		locked, err := tryLock(f, a.readOnly)
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

// openPath opens what is a regular file, and one that is safe to write to.
func openPath(path string, a access) (*os.File, error) {
	if err := inspectPath(path); err != nil {
		return nil, advise(err)
	}
	flag, safe := os.O_RDWR, !a.readOnly && !a.insecure
	switch {
	case safe:
		if to, err := os.Readlink(path); err == nil {
			return nil, fmt.Errorf("%w: it is a symbolic link to %s; name that file itself", ErrInsecure, to)
		}
		flag |= noFollow
	case a.readOnly:
		flag = os.O_RDONLY
	}
	f, err := os.OpenFile(path, flag, 0)
	if err != nil {
		return nil, advise(err)
	}
	if safe {
		if err := checkPlace(path, f); err != nil {
			_ = f.Close()
			return nil, err
		}
	}
	return f, nil
}

// inspectPath refuses what is no file, without opening it: a pipe waits for its
// other end.
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

// advise adds to an error of the file system what can be done about it.
func advise(err error) error {
	switch {
	case isReadOnlyDisk(err):
		return fmt.Errorf("%w; a queue must be able to write to its file: choose another place, or only read it with OpenReader", err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w; check the owner and the mode of the file and of its folder", err)
	}
	return err
}
