//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package admin

// locked is unknown here: opening the file reports it.
func locked(string) bool { return false }
