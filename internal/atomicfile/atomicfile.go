// Package atomicfile creates files that appear complete or not at all, and are durable then.
// Copies of a queue, exports and the queue's own file are made with it. It never replaces a
// file. No other user may be able to write to the folder.
package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
)

// Sync makes an open file or folder durable. Tests replace it to observe the syncs.
var Sync = (*os.File).Sync

// Create creates a file at path that only its owner can read (mode 0600), with what fill
// writes to it. When Create returns nil, the file and its name are durable. After an error it
// leaves no new file behind, neither at path nor under another name.
//
// If path exists, even as a dangling link, the error is fs.ErrExist: Create replaces nothing
// and follows no link. If the folder is missing, the error is fs.ErrNotExist. Errors do not
// name path; the caller does. Fill does not close the file.
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

// New is Create for a fill that opens the file itself, by its temporary name. Fill syncs what
// it writes. New returns the errors of fill unchanged.
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

// Place is New without the sync of the folder, which is the caller's. A crash leaves no file
// or a complete one:
//
//  1. create the file under a temporary name; fill writes and syncs it. A crash leaves that
//     name, which nothing opens
//  2. link it to path, which fails if path exists
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

// linkNew links temp to path, or returns fs.ErrExist if path exists.
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

// renameNew is linkNew for a file system without links. It claims path with an empty file and
// replaces that file. A crash in between leaves the empty file, which nothing takes for a
// complete one.
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

// SyncFolder makes the names in a folder durable, if the system supports that and allows it.
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

// nameless removes the temporary name from an error: it means nothing to a user.
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
