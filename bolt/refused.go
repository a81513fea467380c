package bolt

import (
	"errors"
	"io/fs"
	"strings"
	"syscall"

	berrors "go.etcd.io/bbolt/errors"
)

// undone is the error of a transaction that changed nothing and after which the
// queue can go on.
type undone struct{ error }

func (u undone) Unwrap() error { return u.error }

// unwritten is the error of a transaction that changed nothing and after which the queue
// cannot go on.
type unwritten struct{ error }

func (u unwritten) Unwrap() error { return u.error }

// refusedByDisk reports whether a commit failed before anything of it could
// count: a write or a growth of the file was refused, and bbolt has rolled back.
// All other failures, a failed sync above all, leave the outcome unknown.
//
// A failed write is a *fs.PathError. A failed sync is one that says so, or on Linux
// and OpenBSD a bare errno. The growth of the file has lost its error's type on the
// way.
func refusedByDisk(err error) bool {
	if err == nil {
		return false
	}
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Op != "sync"
	}
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return false
	}
	return errors.Is(err, berrors.ErrMaxSizeReached) || strings.Contains(err.Error(), "file resize error")
}
