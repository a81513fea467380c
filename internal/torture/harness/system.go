package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Module is the path of the module under test.
const Module = "github.com/gopawl/pawl"

// Source returns the folder of the module's source, as the go tool knows it from the current
// folder.
func Source(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", Module).Output()
	dir := strings.TrimSpace(string(out))
	if err == nil {
		_, err = os.Stat(filepath.Join(dir, "cmd", "jobctl"))
	}
	if err != nil {
		return "", fmt.Errorf("needs the go tool, and the source of the module around the current folder: %w", err)
	}
	return dir, nil
}

// MissingSource reports what this machine lacks to build the module, "" for nothing.
func MissingSource() string {
	if _, err := Source(context.Background()); err != nil {
		return err.Error()
	}
	return ""
}

// Lean makes go build omit the tables for debuggers, which take a third of the time to link.
const Lean = "-ldflags=-s -w"

// Build runs a go command in a folder.
func Build(ctx context.Context, dir string, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

// Overlay writes the description of replaced files that go build -overlay reads into a folder.
func Overlay(folder string, replace map[string]string) (path string, err error) {
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path = filepath.Join(folder, "overlay.json")
	return path, os.WriteFile(path, text, 0o600)
}

// FindProgram finds a command of the system, even if only root has it in the path. It returns ""
// if there is none.
func FindProgram(name string) string {
	for _, name := range []string{name, "/usr/sbin/" + name, "/sbin/" + name} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// System runs a command of the system.
func System(words ...string) error {
	path := FindProgram(words[0])
	if path == "" {
		return fmt.Errorf("there is no %s", words[0])
	}
	out, err := exec.Command(path, words[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(words, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// MakeFileSystem makes a file system in a new sparse file of the given size. The file becomes the
// last argument of mkfs.
func MakeFileSystem(path string, size int64, mkfs ...string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Truncate(size), f.Close()); err != nil {
		return err
	}
	return System(append(mkfs[:len(mkfs):len(mkfs)], path)...)
}

// CopyFile copies a file, and leaves holes where the file has only zeros.
func CopyFile(from, to string) (err error) {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dst.Close()) }()
	var block, zeros [32 << 10]byte
	for at := int64(0); ; {
		n, err := io.ReadFull(src, block[:])
		if !bytes.Equal(block[:n], zeros[:n]) {
			if _, err := dst.WriteAt(block[:n], at); err != nil {
				return err
			}
		}
		at += int64(n)
		switch {
		case err == io.EOF || err == io.ErrUnexpectedEOF:
			return dst.Truncate(at)
		case err != nil:
			return err
		}
	}
}
