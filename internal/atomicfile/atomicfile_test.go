package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

var errBoom = errors.New("boom")

// write fills a file with a text.
func write(text string) func(*os.File) error {
	return func(f *os.File) error {
		_, err := f.WriteString(text)
		return err
	}
}

// tree is what lies in a folder: texts by name, of a link where it leads.
func tree(t *testing.T, folder string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	found := make(map[string]string)
	for _, e := range entries {
		path := filepath.Join(folder, e.Name())
		switch {
		case e.IsDir():
			found[e.Name()] = "folder"
		case e.Type()&fs.ModeSymlink != 0:
			found[e.Name()], err = os.Readlink(path)
		default:
			var text []byte
			text, err = os.ReadFile(path)
			found[e.Name()] = string(text)
		}
		require.NoError(t, err)
	}
	return found
}

// Rule: the file has what was written, is for its owner alone whatever the umask, and
// nothing is left beside it.
func TestCreate(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "new")
	require.NoError(t, Create(path, write("text")))
	require.Equal(t, map[string]string{"new": "text"}, tree(t, folder))
	info, err := os.Stat(path)
	require.NoError(t, err)
	if runtime.GOOS != "windows" {
		require.Equal(t, fs.FileMode(0o600), info.Mode())
	}
}

// Rule: the file has no name before it is whole.
func TestCreateHasNoNameBefore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new")
	require.NoError(t, Create(path, func(f *os.File) error {
		require.NoFileExists(t, path)
		require.NoError(t, write("half")(f))
		require.NoFileExists(t, path)
		return nil
	}))
	require.FileExists(t, path)
}

// Rule: what cannot be made leaves everything as it was, and the error says why, without a
// name that nobody knows.
func TestCreateRefused(t *testing.T) {
	folder := t.TempDir()
	in := func(name string) string { return filepath.Join(folder, name) }
	require.NoError(t, os.WriteFile(in("file"), []byte("old"), 0o644))
	require.NoError(t, os.Mkdir(in("folder"), 0o700))
	require.NoError(t, os.Symlink("nowhere", in("dangling")))
	require.NoError(t, os.Symlink("file", in("link")))
	before := tree(t, folder)
	for _, test := range []struct {
		rule, path string
		fill       func(*os.File) error
		want       error
		says       string
	}{
		{"a file is not replaced", in("file"), write("text"), fs.ErrExist, "exist"},
		{"a folder is not replaced", in("folder"), write("text"), fs.ErrExist, "exist"},
		{"a link that leads nowhere is not followed", in("dangling"), write("text"), fs.ErrExist, "exist"},
		{"a link is neither followed nor replaced", in("link"), write("text"), fs.ErrExist, "exist"},
		{"a missing folder is not made", filepath.Join(in("a"), "b"), write("text"), fs.ErrNotExist, "make the folder first"},
		{"what fill refuses is not there", in("new"), func(f *os.File) error { return errors.Join(write("half")(f), errBoom) }, errBoom, "boom"},
		{"a file that cannot be synced is not there", in("new"), func(f *os.File) error { return f.Close() }, fs.ErrClosed, "sync"},
		{"a file that came meanwhile is not replaced", in("late"), func(*os.File) error {
			defer func() { before = tree(t, folder); delete(before, filepath.Base(newest(t, folder))) }()
			return os.WriteFile(in("late"), []byte("theirs"), 0o600)
		}, fs.ErrExist, "exist"},
	} {
		err := Create(test.path, test.fill)
		require.ErrorIs(t, err, test.want, test.rule)
		require.ErrorContains(t, err, test.says, test.rule)
		require.NotContains(t, err.Error(), ".pawl-new", test.rule)
		require.Equal(t, before, tree(t, folder), test.rule)
	}
}

// newest is the temporary file in a folder.
func newest(t *testing.T, folder string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(folder, ".pawl-new-*"))
	require.NoError(t, err)
	require.Len(t, found, 1)
	return found[0]
}

// Rule: where a file system has no links, one creator alone gets the name, and a
// file that is there is never replaced.
func TestRenameNewReplacesNothing(t *testing.T) {
	folder := t.TempDir()
	path, temp := filepath.Join(folder, "new"), filepath.Join(folder, "temp")
	require.NoError(t, os.WriteFile(temp, []byte("first"), 0o600))
	require.NoError(t, renameNew(temp, path))
	require.NoError(t, os.WriteFile(temp, []byte("second"), 0o600))
	require.ErrorIs(t, renameNew(temp, path), fs.ErrExist)
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "first", string(content))
}
