//go:build !linux

package dbfile

import (
	"io/fs"
	"os"
)

// leadsTo reports whether a path leads to a file, following symbolic links.
func leadsTo(path string, info fs.FileInfo) (bool, error) {
	now, err := os.Stat(path)
	return err == nil && os.SameFile(now, info), err
}
