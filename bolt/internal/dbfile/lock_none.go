//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package dbfile

import "os"

// CanLock says that bbolt takes the lock, because this kind of lock cannot be taken twice.
const CanLock = false

func tryLock(*os.File, bool) (ok bool, err error) { return true, nil }

func unlock(*os.File) {}
