//go:build !linux && !darwin && !freebsd && !netbsd && !openbsd && !dragonfly

package bolt

import "os"

// lockToRead takes the lock that a queue takes on its file, where we know how.
func lockToRead(*os.File) error { return nil }
