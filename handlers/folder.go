package handlers

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/gopawl/pawl"
)

// folders decides where commands may work. It is immutable.
type folders struct {
	base  string   // the default, and the base of relative ones
	roots []string // resolved; none means anywhere
}

func newFolders(base string, roots []string) (*folders, error) {
	if roots != nil && len(roots) == 0 {
		return nil, errors.New("the list of roots is empty, so no job could run; leave it nil to allow any folder")
	}
	f := new(folders)
	var err error
	if base == "" {
		if base, err = os.Getwd(); err != nil {
			return nil, fmt.Errorf("the current folder: %w", err)
		}
	}
	if f.base, err = folder(base); err != nil {
		return nil, fmt.Errorf("working folder %q: %w", base, err)
	}
	for _, root := range roots {
		if root == "" {
			return nil, errors.New("a root of working folders is empty; name a folder")
		}
		resolved, err := folder(root)
		if err != nil {
			return nil, fmt.Errorf("root of working folders %q: %w", root, err)
		}
		f.roots = append(f.roots, resolved)
	}
	if !f.within(f.base) {
		return nil, fmt.Errorf("working folder %s is not below the roots %s; name one that is", f.base, strings.Join(f.roots, ", "))
	}
	return f, nil
}

// resolve returns the working folder of a job, absolute and without symbolic links. A missing
// folder is worth a retry; a forbidden one is not.
//
// Whoever can rename folders below a root while a job starts can still redirect it. Roots
// restrict jobs, not the owners of the roots.
func (f *folders) resolve(dir string) (string, error) {
	if dir == "" {
		return f.base, nil
	}
	if !filepath.IsAbs(dir) {
		dir = f.base + string(filepath.Separator) + dir // filepath.Join would turn a/link/.. into a
	}
	resolved, err := folder(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("working folder: %w", err)
	}
	if err != nil {
		return "", pawl.Permanent(fmt.Errorf("working folder: %w", err))
	}
	if !f.within(resolved) {
		return "", pawl.Permanent(fmt.Errorf("working folder %s is not below the folders that this worker allows (%s); use one of those, or allow it",
			resolved, strings.Join(f.roots, ", ")))
	}
	return resolved, nil
}

func (f *folders) within(resolved string) bool {
	if len(f.roots) == 0 {
		return true
	}
	for _, root := range f.roots {
		if rel, err := filepath.Rel(root, resolved); err == nil && filepath.IsLocal(rel) {
			return true
		}
	}
	return false
}

// folder resolves the path of a folder.
func folder(path string) (string, error) {
	resolved, info, err := resolve(path)
	if err != nil {
		return "", err
	}
	if !info.IsDir() {
		return "", fmt.Errorf("%s is not a folder", resolved)
	}
	return resolved, nil
}
