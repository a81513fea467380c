// Package whole makes files that appear whole or not at all, and stay: for copies of a
// queue, exports, and the queue's own file. It is for folders that no stranger may write to,
// and replaces nothing that is there.
package whole

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
)

// Sync makes an open file or folder durable. Tests replace it to see what is synced, and when.
var Sync = (*os.File).Sync

// Create makes a new file at path, for its owner alone (mode 0600), with what fill writes to
// it. When it returns nil the file and its name are durable. After an error there is no file
// at path that was not there before, nor one under another name.
//
// A path that exists gives fs.ErrExist, also when it is a link that leads nowhere: nothing
// is replaced, and no link followed. A folder that is missing gives fs.ErrNotExist. Errors
// do not name path; the caller does. Fill does not close the file.
func Create(path string, fill func(f *os.File) error) error {
	return New(path, func(temp string) error {
		f, err := os.OpenFile(temp, os.O_RDWR, 0)
		if err != nil {
			return nameless(err, temp)
		}
		if err = fill(f); err == nil {
			err = Sync(f)
		}
		return nameless(errors.Join(err, f.Close()), temp)
	})
}

// New is Create for a fill that opens the file itself, by the name temp that it has until it
// is whole. Fill syncs what it writes; its errors are returned as they are.
func New(path string, fill func(temp string) error) error {
	if _, err := os.Lstat(path); err == nil {
		return fs.ErrExist // before the work, and again after it
	}
	if err := Place(path, fill); err != nil {
		return err
	}
	if err := SyncFolder(filepath.Dir(path)); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

// Place is New for who syncs the folder later. A crash leaves either no file or a whole
// one:
//
//  1. make the file under a temporary name and have fill write and sync it; a crash
//     leaves that name, which nobody opens
//  2. link it to path, which fails when there is a file
//  3. remove the temporary name
func Place(path string, fill func(temp string) error) (err error) {
	folder := filepath.Dir(path)
	f, err := os.CreateTemp(folder, ".pawl-new-*")
	if err != nil {
		var p *fs.PathError // names the temporary file
		if errors.As(err, &p) {
			err = p.Err
		}
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("create the file in folder %s: %w; make the folder first", folder, err)
		}
		return fmt.Errorf("create the file in folder %s: %w", folder, err)
	}
	temp := f.Name()
	defer func() { err = errors.Join(err, ignoreNotExist(os.Remove(temp))) }()
	if err := f.Close(); err != nil {
		return err
	}
	if err := fill(temp); err != nil {
		return err
	}
	return linkNew(temp, path)
}

// linkNew gives a file a name that no file has: fs.ErrExist says that one has it.
func linkNew(temp, path string) error {
	err := os.Link(temp, path)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrExist):
		return fs.ErrExist
	}
	return renameNew(temp, path)
}

// renameNew is linkNew on a file system without links: it claims the name by an
// empty file, and only who made that replaces it. A crash in between leaves the
// empty file, which nobody takes for a whole one.
func renameNew(temp, path string) error {
	claim, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := claim.Close(); err != nil {
		return err
	}
	return os.Rename(temp, path)
}

// SyncFolder makes the names in a folder durable, as far as the system and the file
// system have that and let us.
func SyncFolder(folder string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	f, err := os.Open(folder)
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if err := Sync(f); err != nil && !errors.Is(err, syscall.EINVAL) {
		return err
	}
	return nil
}

// nameless is an error without the temporary name of the file, which means nothing to
// anybody.
func nameless(err error, temp string) error {
	if p := (*fs.PathError)(nil); errors.As(err, &p) && p.Path == temp {
		return fmt.Errorf("%s: %w", p.Op, p.Err)
	}
	return err
}

func ignoreNotExist(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
