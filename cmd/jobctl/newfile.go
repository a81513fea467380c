package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/bolt"
)

// newName returns the one argument of a command that creates a file. It reports an existing file
// before the work begins.
func newName(command string, args []string) (string, error) {
	switch {
	case len(args) == 0:
		return "", usage(command, "no new file was named")
	case args[0] == "":
		return "", usage(command, "the name of the new file is empty")
	case args[0] == "-":
		return "", usage(command, "- is not a file name: the new file appears completely or not at all, which standard output cannot; ./- is a file of that name")
	}
	if _, err := os.Lstat(args[0]); err == nil {
		return "", newFile(args[0], fs.ErrExist)
	}
	return args[0], nil
}

// checkNew rejects a new file in a place that belongs to the queue. For a queue known only by
// its address, the path comes from the app and refers to the app's machine.
func (a *app) checkNew(ctx context.Context, words, path string, queue admin.Admin) error {
	file := a.flags.db
	if a.flags.server != "" {
		return nil
	}
	if file == "" && queue != nil {
		s, err := queue.Stats(ctx)
		if err != nil {
			return err
		}
		file = s.Path
	}
	var wrong *pawl.InvalidError
	err := admin.CheckNewFile(file, path, bolt.MarkPath)
	if errors.As(err, &wrong) {
		return usage(words, "%s", wrong.Reason)
	}
	return err
}

// newFile explains an error of creating a file.
func newFile(path string, err error) error {
	switch {
	case errors.Is(err, fs.ErrExist):
		return &failure{exitError, fmt.Sprintf("%s exists already", path), "Name a new file: no file is overwritten."}
	case errors.Is(err, fs.ErrNotExist):
		return &failure{exitError, fmt.Sprintf("%s: %s", path, err), "The folder of the new file must exist."}
	case errors.Is(err, syscall.ENOSPC):
		return &failure{exitError, fmt.Sprintf("%s: %s", path, err), "Free space on that disk, or name a file on another one; no part of the file is left."}
	case errors.Is(err, fs.ErrPermission) && strings.Contains(err.Error(), "create the file in folder"): // the error is about the new file, and not the source file
		return &failure{exitError, fmt.Sprintf("%s: %s", path, err), "Name a file in a folder that this user may write to."}
	}
	return err
}
