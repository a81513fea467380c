package dbfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"syscall"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/gopawl/pawl"
)

// Open claims the file, passes it to bbolt, and checks that it is a queue. It fills in the
// options: PreLoadFreelist says whether the file has a list of its free pages. Bbolt closes the file.
func Open(path string, a Access, o *bbolt.Options) (db *bbolt.DB, file *os.File, err error) {
	c, err := claim(path, a)
	if err != nil {
		return nil, nil, err
	}
	defer c.stopReading()
	given := false
	o.Timeout, o.ReadOnly = a.Timeout, a.ReadOnly
	o.PreLoadFreelist = c.freelist // a reader without a list would walk the whole file, and a writer needs it anyway
	o.OpenFile = func(name string, flag int, mode fs.FileMode) (*os.File, error) {
		if !given {
			given = true
			return c.file, nil
		}
		return os.OpenFile(name, flag&^os.O_CREATE, mode) // bbolt opens the file again for some copies
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			unlock(c.file)
			_ = c.file.Close()
			db, file, err = nil, nil, fmt.Errorf("%w: the pages of the file are damaged: %v", pawl.ErrCorrupt, p)
		}
	}()
	db, err = bbolt.Open(path, 0o600, o)
	switch {
	case errors.Is(err, berrors.ErrTimeout):
		return nil, nil, fmt.Errorf("%w%s; stop it, or open another file", ErrLocked, lockHolder(path))
	case err != nil:
		return nil, nil, err
	}
	if err := db.View(a.Check); err != nil {
		_ = db.Close()
		return nil, nil, err
	}
	return db, c.file, nil
}

// RealPath returns the path where the failed-sync marker of a file is found, independent of the
// working directory and of the name under which the file is opened.
func RealPath(path string, follow bool) (string, error) {
	real, err := filepath.Abs(path)
	if err == nil && follow {
		if there, err := filepath.EvalSymlinks(real); err == nil {
			return there, nil
		}
	}
	if err == nil && os.IsPathSeparator(path[len(path)-1]) {
		real += string(filepath.Separator) // path does not name a file
	}
	return real, err
}

// MayCreateIn refuses a folder in which no file should be created.
func MayCreateIn(folder string, insecure bool) error {
	if insecure {
		return nil
	}
	err := checkFolder(folder)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil // creating the file returns the error
	}
	return err
}

// SyncOpened makes the visible content of the file durable before anything builds on it. If a
// process is killed between the write of a commit and its sync, the system shows pages that the
// disk may not have. The next commit would overwrite pages that the tree on the disk needs, and
// a power failure would then leave neither tree.
func SyncOpened(db *bbolt.DB) error {
	err := db.Sync()
	if err == nil {
		return nil
	}
	// It is unknown which transaction failed, if any, so none is rolled back. The next Open copies
	// what the system shows.
	return fmt.Errorf("sync the file: %w", errors.Join(err, Mark(db.Path(), 0)))
}

func ignoreNotExist(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func closeDB(db *bbolt.DB) error {
	if err := db.Close(); err != nil {
		return fmt.Errorf("close queue: %w", err)
	}
	return nil
}
