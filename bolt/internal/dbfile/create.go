package dbfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/atomicfile"
)

// Creation of new files by backup, compaction and salvage.

// Create makes a new file and makes its content and name durable. Fill syncs the content.
func Create(path string, fill func(temp string) error) error {
	return created(path, func() error {
		return atomicfile.New(path, func(temp string) error { return unnamed(fill(temp)) })
	})
}

// Write is like Create, and syncs what fill writes.
func Write(path string, fill func(to *os.File) error) error {
	return created(path, func() error {
		return atomicfile.Create(path, func(f *os.File) error { return unnamed(fill(f)) })
	})
}

// created calls create, which makes a new file at path, and completes its error.
func created(path string, create func() error) error {
	if path == "" {
		return &pawl.InvalidError{Field: "path", Reason: "is empty"}
	}
	err := create()
	if errors.Is(err, fs.ErrPermission) {
		return Advise(err)
	}
	return err
}

// unnamed removes the name of the temporary file from an error, since that name means nothing
// to the caller.
func unnamed(err error) error {
	refused := RefusedByDisk(err)
	if err != nil && strings.Contains(err.Error(), "file sync error") { // bbolt's text has the name, and its type is lost
		err, refused = errors.New("sync of the copy failed"), true // unlike in a queue, no outcome is unknown
	}
	if p := (*fs.PathError)(nil); errors.As(err, &p) {
		err = fmt.Errorf("%s: %w", p.Op, p.Err)
	}
	if refused {
		err = fmt.Errorf("%w: %w", ErrDisk, err)
	}
	return err
}
