//go:build !linux

package bolt

import "os"

// lockHolder names the process that holds the lock of the file, where the system
// tells.
func lockHolder(string) string { return "" }

// unlock lets go of the lock of a file behind bbolt's back, where we know how.
func unlock(*os.File) {}

func isReadOnlyDisk(error) bool { return false }
