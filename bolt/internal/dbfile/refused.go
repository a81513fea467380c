package dbfile

import (
	"errors"
	"io/fs"
	"strings"
	"syscall"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// RefusedByDisk reports whether a commit failed before any of it could count: the disk refused
// a write or a growth of the file, and bbolt rolled back. All other failures, above all a
// failed sync, leave the outcome unknown.
//
// A failed write is a *fs.PathError. A failed sync is a PathError that says so or, on Linux and
// OpenBSD, a bare errno. The error of a failed growth has lost its type.
func RefusedByDisk(err error) bool {
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

// Rollback discards a transaction, even in a file so damaged that bbolt's rollback panics.
func Rollback(tx *bbolt.Tx) {
	defer func() { _ = recover() }()
	_ = tx.Rollback()
}
