package handlers

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// allowList is which programs may run. It is made once and not changed.
//
// A program is its resolved path: absolute, without symbolic links. It also has the names
// under which it was allowed, because a program can be many: where ls is a link to
// busybox, whoever may run that path as ls must not run it as sh.
type allowList struct {
	folders []string            // where a name without a slash is looked up, in this order
	names   map[string][]string // by resolved path
}

func newAllowList(allow []string, path string) (*allowList, error) {
	a := &allowList{names: make(map[string][]string)}
	for _, folder := range filepath.SplitList(path) {
		if filepath.IsAbs(folder) { // an empty or relative one would be another with each working folder
			a.folders = append(a.folders, folder)
		}
	}
	if len(allow) == 0 {
		return nil, errors.New("the allow-list is empty, so no job could run; name the programs that jobs may run")
	}
	for _, entry := range allow {
		if !filepath.IsAbs(entry) && strings.ContainsRune(entry, filepath.Separator) {
			return nil, fmt.Errorf("%q on the allow-list is relative; give an absolute path, or a name that is in PATH", entry)
		}
		resolved, err := a.locate(entry, "")
		if err != nil {
			return nil, fmt.Errorf("%q on the allow-list: %w", entry, err)
		}
		a.names[resolved] = append(a.names[resolved], filepath.Base(entry))
	}
	return a, nil
}

// resolve returns the path to run for argument 0 of a job whose working folder is dir, or
// an error that says why it may not run. What is run is the path that was compared:
// whatever becomes of links on the way to it afterwards changes nothing.
func (a *allowList) resolve(name, dir string) (string, error) {
	resolved, err := a.locate(name, dir)
	if err != nil {
		return "", fmt.Errorf("%q cannot be run: %w", name, err)
	}
	names, ok := a.names[resolved]
	if !ok {
		return "", fmt.Errorf("%q is %s, which is not on the allow-list of this worker; add it there, then retry the job", name, resolved)
	}
	if !slices.Contains(names, filepath.Base(name)) {
		return "", fmt.Errorf("%q is %s, which this worker allows only by the name %s; use that name, or add this one to the allow-list, then retry the job",
			name, resolved, strings.Join(names, " or "))
	}
	return resolved, nil
}

// locate finds what a name leads to: in the folders, or when it has a slash from dir on,
// as the system would after it went there.
func (a *allowList) locate(name, dir string) (string, error) {
	if filepath.IsAbs(name) {
		return program(name)
	}
	if strings.ContainsRune(name, filepath.Separator) {
		return program(dir + string(filepath.Separator) + name) // not Join, which takes a/link/.. for a
	}
	for _, folder := range a.folders {
		resolved, err := program(folder + string(filepath.Separator) + name)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNoProgram) {
			continue
		}
		return resolved, err
	}
	return "", fmt.Errorf("no program of that name is in %s", strings.Join(a.folders, string(filepath.ListSeparator)))
}

// resolve is where a path leads to, without links, and what is there.
func resolve(path string) (resolved string, info os.FileInfo, err error) {
	if resolved, err = filepath.EvalSymlinks(path); err != nil {
		return "", nil, err
	}
	if resolved, err = filepath.Abs(resolved); err != nil {
		return "", nil, err
	}
	info, err = os.Stat(resolved)
	return resolved, info, err
}

var errNoProgram = errors.New("it is not a file that can be executed")

// program resolves a path and refuses what is no program, or what everybody could replace.
func program(path string) (string, error) {
	resolved, info, err := resolve(path)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 {
		return "", errNoProgram
	}
	return resolved, refuseOpen(resolved)
}

// refuseOpen refuses a resolved path that everybody could have lead to something else. In a
// folder with the sticky bit, such as /tmp, nobody can replace what is another's.
func refuseOpen(path string) error {
	for at := path; ; at = filepath.Dir(at) {
		info, err := os.Lstat(at)
		if err != nil {
			return err
		}
		sticky := info.IsDir() && info.Mode()&fs.ModeSticky != 0
		if info.Mode().Perm()&0o002 != 0 && !sticky {
			return fmt.Errorf("everybody may write to %s, and so decide what %s is; take that right away (chmod o-w)", at, path)
		}
		if at == filepath.Dir(at) {
			return nil
		}
	}
}
