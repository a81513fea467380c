//go:build !linux

package dbfile

// lockHolder names the process that holds the lock of the file, if the system reports it.
func lockHolder(string) string { return "" }

func isReadOnlyDisk(error) bool { return false }
