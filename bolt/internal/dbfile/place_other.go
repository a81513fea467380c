//go:build !unix

package dbfile

import (
	"io/fs"
	"os"
)

const noFollow, noWait = 0, 0

// The functions below matter only on systems where files have an owner and a mode.

func checkPlace(string, *os.File) error { return nil }

func checkFolder(string) error { return nil }

func ofOwner(mark, file fs.FileInfo) bool { return true }

func device(fs.FileInfo) uint64 { return 0 }

func Names(fs.FileInfo) int { return 1 }

func sameOwner(*os.File, fs.FileInfo) error { return nil }
