package sqlite

import (
	"fmt"
	"path/filepath"
)

// lock makes this queue the only queue of a file, until the returned connection is closed or the
// process ends. It makes SQLite lock an empty database beside the file. Unlike a lock of the file
// itself, that does not affect the app's own connections, and it works on every system.
func lock(file string) (*own, error) {
	c, err := open(file+"-pawl", 0, "PRAGMA journal_mode = OFF; PRAGMA locking_mode = EXCLUSIVE;")
	if err == nil {
		if _, err = c.exec("BEGIN EXCLUSIVE"); err == nil {
			return c, nil
		}
		c.close()
	}
	if isBusy(err) {
		return nil, fmt.Errorf("%s: %w; close it first", file, ErrLocked)
	}
	return nil, fmt.Errorf("lock %s-pawl: %w", file, explain(err))
}

// resolve returns the path of a file without symbolic links, so that two paths of one file have one
// lock.
func resolve(path string) (string, error) {
	file, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if real, err := filepath.EvalSymlinks(file); err == nil {
		return real, nil
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(file)) // the file does not exist yet
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, filepath.Base(file)), nil
}
