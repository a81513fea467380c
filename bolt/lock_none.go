//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package bolt

import "os"

// canLock says that bbolt takes the lock, because this kind of lock cannot be taken twice.
const canLock = false

func tryLock(*os.File, bool) (ok bool, err error) { return true, nil }

func unlock(*os.File) {}
