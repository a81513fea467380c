//go:build !linux

package bolt

// lockHolder names the process that holds the lock of the file, where the system
// tells.
func lockHolder(string) string { return "" }

func isReadOnlyDisk(error) bool { return false }
