package handlers

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

// tree is a folder of programs: two of them in bin, a link, a box that is many programs, and
// one in work that has the name of an allowed one.
func tree(t *testing.T) string {
	t.Helper()
	if os.PathSeparator != '/' {
		t.Skip("needs process groups of Unix: elsewhere no commands run")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	for _, name := range []string{"bin/good", "bin/evil", "bin/box", "work/good", "work/sub/x"} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, nil, 0o755))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "bin/text"), nil, 0o644))
	for link, to := range map[string]string{"bin/list": "box", "bin/shell": "box", "work/link": "../bin/good",
		"work/trap": "../bin/evil", "work/bin": "../bin", "bin/loop": "loop"} {
		require.NoError(t, os.Symlink(to, filepath.Join(dir, link)))
	}
	return dir
}

// Rule: a program runs if its path, looked up by the runner and with all links followed, is on the
// list under that name.
func TestAllowList(t *testing.T) {
	dir := tree(t)
	a, err := newAllowList([]string{"good", dir + "/bin/list", dir + "/work/link"}, dir+"/bin:relative::"+dir+"/work")
	require.NoError(t, err)
	for _, c := range []struct {
		rule, name string
		want       string // what is run, below dir
		says       string // or why not
	}{
		{rule: "a name is looked up in PATH", name: "good", want: "bin/good"},
		{rule: "an absolute path", name: dir + "/bin/good", want: "bin/good"},
		{rule: "a path from the working folder on", name: "../bin/good", want: "bin/good"},
		{rule: "a path with dots that leads there", name: dir + "/work/../bin/./good", want: "bin/good"},
		{rule: "a link to the file, by a name that is allowed", name: "./link", want: "bin/good"},
		{rule: "a link to the folder", name: "bin/good", want: "bin/good"},
		{rule: "a program that is many, by the allowed name", name: "list", want: "bin/box"},

		{rule: "a program that is many, by another name", name: "shell", says: "only as list"},
		{rule: "a program that is many, by its own name", name: dir + "/bin/box", says: "only as list"},
		{rule: "another program in PATH", name: "evil", says: "not on the allow-list"},
		{rule: "an allowed name in the working folder", name: "./good", says: "not on the allow-list"},
		{rule: "an allowed name in another folder", name: dir + "/work/good", says: "not on the allow-list"},
		{rule: "a link to another program", name: "./trap", says: "not on the allow-list"},
		{rule: "dots behind a link, as the system reads them", name: "bin/../good", says: "no such file"},
		{rule: "an allowed path with something behind it", name: dir + "/bin/good/../evil", says: "not a directory"},
		{rule: "an allowed path as if it were a folder", name: dir + "/bin/good/", says: "not a directory"},
		{rule: "another case", name: "GOOD", says: "no program of that name"},
		{rule: "a name with a space behind it", name: "good ", says: "no program of that name"},
		{rule: "a folder", name: "..", says: "no program of that name"},
		{rule: "a folder, by its path", name: dir + "/bin", says: "not an executable file"},
		{rule: "a file that is no program", name: "../bin/text", says: "not an executable file"},
		{rule: "a link that leads nowhere", name: "../bin/loop", says: "too many links"},
		{rule: "nothing", name: "absent", says: "no program of that name"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			got, err := a.resolve(c.name, dir+"/work")
			if c.says != "" {
				require.ErrorContains(t, err, c.says)
				return
			}
			require.NoError(t, err)
			require.Equal(t, filepath.Join(dir, c.want), got)
		})
	}
}

// Rule: relative and empty folders in PATH are ignored, because they would differ for each job.
func TestRelativePath(t *testing.T) {
	dir := tree(t)
	t.Chdir(dir + "/bin")
	_, err := newAllowList([]string{"good"}, ":.:../bin:")
	require.ErrorContains(t, err, "no program of that name")
}

// Rule: later changes of PATH, in the process or the job, have no effect.
func TestPathIsFixed(t *testing.T) {
	dir := tree(t)
	t.Setenv("PATH", dir+"/bin")
	r := newRunner(t, "good", &ExecOptions{JobEnv: []string{"PATH"}})
	t.Setenv("PATH", dir+"/work")
	cmd, _, err := r.prepare(jobOf(Command{Args: []string{"good"}, Env: map[string]string{"PATH": dir + "/work"}}))
	require.NoError(t, err)
	require.Equal(t, dir+"/bin/good", cmd.Path)
	require.Contains(t, cmd.Env, "PATH="+dir+"/work", "the program has it as the job wants")
}

// Rule: changing a link between the check and the start runs the checked program; changing it
// earlier is refused.
func TestLinkIsSwapped(t *testing.T) {
	program := programs(t)
	link := filepath.Join(t.TempDir(), childName)
	require.NoError(t, os.Symlink(program, link))
	r := newRunner(t, program, nil)
	job := jobOf(Command{Args: []string{link, "say", "0", "I am the one that was checked"}})
	cmd, out, err := r.prepare(job)
	require.NoError(t, err)

	require.NoError(t, os.Remove(link))
	require.NoError(t, os.WriteFile(link, []byte("#!/bin/sh\necho evil\n"), 0o755))
	require.NoError(t, cmd.Run())
	require.Equal(t, "I am the one that was checked", string(out.bytes()))
	err = r.Run(t.Context(), job)
	require.ErrorContains(t, err, "allow-list")
	require.True(t, pawl.IsPermanent(err))
}

// Rule: NewRunner reports mistakes in the list, and programs that everybody could replace.
func TestAllowListMistakes(t *testing.T) {
	dir := tree(t)
	require.NoError(t, os.Mkdir(dir+"/open", 0o700))
	require.NoError(t, os.WriteFile(dir+"/open/x", nil, 0o755))
	require.NoError(t, os.Chmod(dir+"/open", 0o777))
	require.NoError(t, os.WriteFile(dir+"/bin/open", nil, 0o700))
	require.NoError(t, os.Chmod(dir+"/bin/open", 0o757))
	require.NoError(t, os.WriteFile(dir+"/bin/sticky", nil, 0o700))
	require.NoError(t, os.Chmod(dir+"/bin/sticky", 0o757|os.ModeSticky))
	for _, c := range []struct {
		rule  string
		allow []string
		says  string
	}{
		{"an empty list", nil, "is empty"},
		{"an empty entry", []string{""}, "no program of that name"},
		{"a name that is not in PATH", []string{"absent"}, "no program of that name"},
		{"a relative path", []string{"./good"}, "is relative"},
		{"a path that is not there", []string{dir + "/absent"}, "no such file"},
		{"a file that is no program", []string{dir + "/bin/text"}, "not an executable file"},
		{"a folder", []string{dir + "/bin"}, "not an executable file"},
		{"a program that everybody may write to", []string{dir + "/bin/open"}, "everybody may write to " + dir + "/bin/open"},
		{"one with the sticky bit, which means nothing on a file", []string{dir + "/bin/sticky"}, "everybody may write to"},
		{"a folder that everybody may write to", []string{dir + "/open/x"}, "everybody may write to " + dir + "/open"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			_, err := newAllowList(c.allow, dir+"/bin")
			require.ErrorContains(t, err, c.says)
		})
	}
}

// Rule: the error for a refused program says what to do, and does not list what is allowed.
func TestRefusalSaysWhatToDo(t *testing.T) {
	dir := tree(t)
	a, err := newAllowList([]string{"good"}, dir+"/bin")
	require.NoError(t, err)
	_, err = a.resolve("evil", dir)
	require.EqualError(t, err, `"evil" is `+dir+`/bin/evil, which is not on the allow-list of this worker; add it there, then retry the job`)
}
