package handlers

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

// Rule: a job sets only the variables that the operator names, however they are spelled.
func TestVariablesOfJobs(t *testing.T) {
	e, err := newEnviron(&ExecOptions{Inherit: []string{}, JobEnv: []string{"MODE"}})
	require.NoError(t, err)
	env, err := e.of(map[string]string{"MODE": "a=b"}, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"MODE=a=b"}, env)
	for _, name := range []string{"LD_PRELOAD", "PATH", "mode", "MODE ", "MODE=x\x00LD_PRELOAD", "", "=", "PAWL_JOB_ID", "BASH_FUNC_ls%%"} {
		_, err := e.of(map[string]string{name: "x"}, nil)
		require.ErrorContains(t, err, "does not let jobs set", name)
	}
	_, err = e.of(map[string]string{"MODE": "x\x00LD_PRELOAD=y"}, nil)
	require.ErrorContains(t, err, "NUL")
}

// Rule: the runner's variables override all others.
func TestRunnerHasTheLastWord(t *testing.T) {
	e, err := newEnviron(&ExecOptions{Inherit: []string{}, Env: map[string]string{"PWD": "env"}, JobEnv: []string{"PWD"}})
	require.NoError(t, err)
	env, err := e.of(map[string]string{"PWD": "job"}, map[string]string{"PWD": "run"})
	require.NoError(t, err)
	require.Equal(t, []string{"PWD=run"}, env)
}

// Rule: a nil Inherit means the default list; unset variables stay unset.
func TestInheritByDefault(t *testing.T) {
	for _, name := range DefaultInherit() {
		t.Setenv(name, "") // so that it is set back
		require.NoError(t, os.Unsetenv(name))
	}
	t.Setenv("HOME", "of the worker")
	t.Setenv("SECRET", "of the worker")
	e, err := newEnviron(&ExecOptions{})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"HOME": "of the worker"}, e.base)
}

// Rule: with roots, a job works in and below them, however its path is written.
func TestRoots(t *testing.T) {
	dir := tree(t)
	require.NoError(t, os.MkdirAll(dir+"/workshop", 0o755))
	f, err := newFolders(dir+"/work", []string{dir + "/work", dir + "/bin"})
	require.NoError(t, err)
	for _, c := range []struct {
		rule, dir string
		want      string
		permanent bool
	}{
		{rule: "the default", dir: "", want: dir + "/work"},
		{rule: "a root", dir: dir + "/bin", want: dir + "/bin"},
		{rule: "below a root", dir: dir + "/work/sub", want: dir + "/work/sub"},
		{rule: "a relative one begins at the default", dir: "sub", want: dir + "/work/sub"},
		{rule: "a link into a root", dir: "bin", want: dir + "/bin"},
		{rule: "above the roots", dir: dir, permanent: true},
		{rule: "out by dots", dir: "..", permanent: true},
		{rule: "out by dots behind a link", dir: "bin/../workshop", permanent: true},
		{rule: "a name that begins like a root's", dir: dir + "/workshop", permanent: true},
		{rule: "a file", dir: "good", permanent: true},
		{rule: "one that may come yet", dir: "later"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			got, err := f.resolve(c.dir)
			if c.want != "" {
				require.NoError(t, err)
				require.Equal(t, c.want, got)
				return
			}
			require.Error(t, err)
			require.Equal(t, c.permanent, pawl.IsPermanent(err), "%v", err)
		})
	}
}

// Rule: NewRunner reports invalid options and releases the lock.
func TestRunnerMistakes(t *testing.T) {
	program := programs(t)
	state := filepath.Join(t.TempDir(), "runs")
	for _, c := range []struct {
		rule string
		opts ExecOptions
		says string
	}{
		{"a folder that is not there", ExecOptions{Dir: "/absent"}, `"/absent"`},
		{"a root that is not there", ExecOptions{Roots: []string{"/absent"}}, `"/absent"`},
		{"a default outside the roots", ExecOptions{Dir: "/", Roots: []string{state[:len(state)-5]}}, "not below the roots"},
		{"a variable that is none", ExecOptions{Inherit: []string{"A=B"}}, "not a variable name"},
		{"a variable of the runner's own", ExecOptions{Env: map[string]string{"PAWL_X": ""}}, "reserved for the runner"},
		{"a variable of jobs that steers the loader", ExecOptions{JobEnv: []string{"LD_PRELOAD"}}, "defeats the allow-list"},
		{"the same on macOS", ExecOptions{JobEnv: []string{"DYLD_INSERT_LIBRARIES"}}, "defeats the allow-list"},
		{"a negative grace", ExecOptions{Grace: -1}, "grace is -1ns"},
		{"a negative limit of output", ExecOptions{Output: -1}, "output is -1"},
		{"too much output", ExecOptions{Output: MaxOutput + 1}, "must be between"},
		{"an exit code that no program has", ExecOptions{Permanent: []int{256}}, "between 1 and 255"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			_, err := NewRunner(state, []string{program}, &c.opts)
			require.ErrorContains(t, err, c.says)
		})
	}
	r, err := NewRunner(state, []string{program}, nil)
	require.NoError(t, err)
	require.NoError(t, r.Close())
}

// Rule: the first and the last half of the output are kept, whatever the sizes of the writes, and
// cut counts the rest.
func TestOutputHalves(t *testing.T) {
	text := make([]byte, 300)
	for i := range text {
		text[i] = byte(i)
	}
	for limit := 0; limit <= 12; limit++ {
		for size := range 40 {
			for step := 1; step <= size+1; step++ {
				o := newOutput(limit)
				for at := 0; at < size; at += step {
					n, err := o.Write(text[at:min(at+step, size)])
					require.NoError(t, err)
					require.Equal(t, min(at+step, size)-at, n)
				}
				half := limit / 2
				if size <= 2*half {
					require.Equal(t, text[:size], append(append([]byte{}, o.head...), o.last()...))
					require.Zero(t, o.cut())
					continue
				}
				require.Equal(t, string(text[:half]), string(o.head), "limit %d size %d step %d", limit, size, step)
				require.Equal(t, string(text[size-half:size]), string(o.last()), "limit %d size %d step %d", limit, size, step)
				require.Equal(t, int64(size-2*half), o.cut())
			}
		}
	}
}

// Rule: the text in an error is valid UTF-8, begins with a complete character, and is the end of
// the output.
func TestOutputText(t *testing.T) {
	o := newOutput(100)
	_, _ = o.Write([]byte("abcäö\xff\n\n"))
	require.Equal(t, "abcäö?", o.text(20))
	require.Equal(t, "ö?", o.text(4), "half of an ä is left out")
	require.Equal(t, "", newOutput(100).text(20))
}

// Rule: each attempt has its own file with mode 0600; the oldest jobs' files go first, including
// earlier ones; unfinished files are deleted.
func TestLogs(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "logs")
	l, err := NewLogs(dir, 2)
	require.NoError(t, err)
	first, second, third := jobOf(0).Envelope, jobOf(0).Envelope, jobOf(0).Envelope
	l.Keep(Run{Job: second, Attempt: 1, Output: []byte("b")})
	l.Keep(Run{Job: first, Attempt: 1, Output: []byte("a")})
	text, err := os.ReadFile(l.Path(Run{Job: first, Attempt: 1}))
	require.NoError(t, err)
	require.Equal(t, "a", string(text))
	info, err := os.Stat(l.Path(Run{Job: first, Attempt: 1}))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	require.NoError(t, os.WriteFile(filepath.Join(dir, ".output-123"), []byte("half"), 0o600)) // as a crash leaves it
	l, err = NewLogs(dir, 2)
	require.NoError(t, err)
	l.Keep(Run{Job: third, Attempt: 1, Output: []byte("c")})
	l.Keep(Run{Job: third, Attempt: 1, Output: []byte("d")})
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 2)
	require.Equal(t, second.ID.String()+".1.log", entries[0].Name())
	require.Equal(t, third.ID.String()+".1.log", entries[1].Name())
	text, err = os.ReadFile(l.Path(Run{Job: third, Attempt: 1}))
	require.NoError(t, err)
	require.Equal(t, "d", string(text))
	_, err = NewLogs(dir, 0)
	require.Error(t, err)
}

// Rule: an empty list differs from nil: an empty list by mistake, as from an empty setting, allows
// nothing.
func TestEmptyListAllowsNothing(t *testing.T) {
	_, err := NewSender(&HTTPOptions{Hosts: []string{}})
	require.ErrorContains(t, err, "list of hosts is empty")
	_, err = NewSender(&HTTPOptions{Ports: []int{}})
	require.ErrorContains(t, err, "list of ports is empty")
	_, err = newFolders("", []string{})
	require.ErrorContains(t, err, "list of roots is empty")
	_, err = newFolders("", []string{""})
	require.ErrorContains(t, err, "root of working folders is empty")
	_, err = NewSender(&HTTPOptions{Hosts: []string{""}})
	require.Error(t, err)
	_, err = newAllowList([]string{}, "/bin")
	require.Error(t, err)
	_, err = newAllowList([]string{""}, "/bin")
	require.Error(t, err)
}
