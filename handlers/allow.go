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

// allowList holds the programs that may run. It is immutable.
//
// A program is its resolved path. Each path also has the base names under which it was
// allowed, because one file can be many programs: if ls is a link to busybox, a job that may
// run ls must not run it as sh.
type allowList struct {
	folders []string            // searched for names without a slash, in this order
	names   map[string][]string // by resolved path
}

func newAllowList(allow []string, path string) (*allowList, error) {
	a := &allowList{names: make(map[string][]string)}
	for _, folder := range filepath.SplitList(path) {
		if filepath.IsAbs(folder) { // a relative one would depend on the working folder
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

// resolve returns the path to run for argument 0 of a job whose working folder is dir, or the
// reason why it may not run. The path that runs is the path that was compared, so changing
// links afterwards has no effect.
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
		return "", fmt.Errorf("%q is %s, which this worker allows only as %s; use that name, or add this one to the allow-list, then retry the job",
			name, resolved, strings.Join(names, " or "))
	}
	return resolved, nil
}

// locate resolves a name: in the search folders, or relative to dir if it contains a slash.
func (a *allowList) locate(name, dir string) (string, error) {
	if filepath.IsAbs(name) {
		return program(name)
	}
	if strings.ContainsRune(name, filepath.Separator) {
		return program(dir + string(filepath.Separator) + name) // filepath.Join would turn a/link/.. into a
	}
	for _, folder := range a.folders {
		resolved, err := program(folder + string(filepath.Separator) + name)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNoProgram) {
			continue
		}
		return resolved, err
	}
	return "", fmt.Errorf("no program of that name in %s", strings.Join(a.folders, string(filepath.ListSeparator)))
}

// resolve follows all links of a path and returns what it leads to.
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

var errNoProgram = errors.New("not an executable file")

// program resolves the path of a program that only trusted users can replace.
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

// refuseOpen refuses a resolved path that everybody could redirect. In a folder with the
// sticky bit, such as /tmp, nobody can replace the files of others.
func refuseOpen(path string) error {
	for at := path; ; at = filepath.Dir(at) {
		info, err := os.Lstat(at)
		if err != nil {
			return err
		}
		sticky := info.IsDir() && info.Mode()&fs.ModeSticky != 0
		if info.Mode().Perm()&0o002 != 0 && !sticky {
			return fmt.Errorf("everybody may write to %s and so replace %s; run chmod o-w on it", at, path)
		}
		if at == filepath.Dir(at) {
			return nil
		}
	}
}
