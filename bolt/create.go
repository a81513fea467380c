package bolt

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/atomicfile"
)

// How the new files of backups, compactions and salvages are made.

// create makes a new file that is durable, its name included. Fill syncs it.
func create(path string, fill func(temp string) error) error {
	return created(path, func() error {
		return atomicfile.New(path, func(temp string) error { return unnamed(fill(temp)) })
	})
}

// created is the error of what makes a new file at path.
func created(path string, create func() error) error {
	if path == "" {
		return &pawl.InvalidError{Field: "path", Reason: "is empty"}
	}
	err := create()
	if errors.Is(err, fs.ErrPermission) {
		return advise(err)
	}
	return err
}

// unnamed is an error of the temporary file without its name, which means nothing to
// anybody.
func unnamed(err error) error {
	refused := refusedByDisk(err)
	if err != nil && strings.Contains(err.Error(), "file sync error") { // as bbolt says it, with the name and without the type
		err = errors.New("sync: the disk refused it")
	}
	if p := (*fs.PathError)(nil); errors.As(err, &p) {
		err = fmt.Errorf("%s: %w", p.Op, p.Err)
	}
	if refused {
		err = fmt.Errorf("%w: %w", ErrDisk, err)
	}
	return err
}
