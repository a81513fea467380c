package handlers

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

// Rule: exit code 0 is success; the job's lists decide about others, then the runner's permanent
// codes; the rest is retried.
func TestExitCodes(t *testing.T) {
	program := programs(t)
	const done, retry, permanent = "done", "retry", "permanent"
	for _, c := range []struct {
		rule   string
		code   string
		runner []int
		job    Command
		want   string
	}{
		{rule: "0 is a success", code: "0", want: done},
		{rule: "any other is retried", code: "1", want: retry},
		{rule: "a temporary failure is retried", code: "75", want: retry},
		{rule: "a wrong call is permanent", code: "64", want: permanent},
		{rule: "wrong data is permanent", code: "65", want: permanent},
		{rule: "no input may come yet", code: "66", want: retry},
		{rule: "a wrong configuration is permanent", code: "78", want: permanent},
		{rule: "what cannot be executed is permanent", code: "126", want: permanent},
		{rule: "what is not there is permanent", code: "127", want: permanent},
		{rule: "the highest code is one like others", code: "255", want: retry},
		{rule: "an empty list of the runner means none", code: "64", runner: []int{}, want: retry},
		{rule: "the runner's list replaces the default", code: "7", runner: []int{7}, want: permanent},
		{rule: "a job calls a code success", code: "24", job: Command{OK: []int{24}}, want: done},
		{rule: "a job calls a code of the runner's list success", code: "64", job: Command{OK: []int{64}}, want: done},
		{rule: "a job wants a retry", code: "64", job: Command{Retry: []int{64}}, want: retry},
		{rule: "a job adds a permanent code", code: "1", job: Command{Permanent: []int{1}}, want: permanent},
	} {
		t.Run(c.rule, func(t *testing.T) {
			r := newRunner(t, program, &ExecOptions{Permanent: c.runner})
			c.job.Args = []string{program, "say", c.code, "hello"}
			err := r.Run(t.Context(), jobOf(c.job))
			if c.want == done {
				require.NoError(t, err)
				return
			}
			exit := new(ExitError)
			require.ErrorAs(t, err, &exit)
			require.Equal(t, c.code, strings.Fields(strings.TrimPrefix(err.Error(), program+" ended with exit code "))[0])
			require.Equal(t, "hello", exit.Tail)
			require.Equal(t, c.want == permanent, pawl.IsPermanent(err), "%v", err)
		})
	}
}

// Rule: a program that a signal ended is retried, and the error names the signal.
func TestEndedBySignal(t *testing.T) {
	program := programs(t)
	err := newRunner(t, program, nil).Run(t.Context(), jobOf(Command{Args: []string{program, "die"}, OK: []int{1}}))
	exit := new(ExitError)
	require.ErrorAs(t, err, &exit)
	require.Equal(t, -1, exit.Code)
	require.Equal(t, "killed", exit.Signal)
	require.False(t, pawl.IsPermanent(err))
}

// Rule: a program receives its arguments unchanged, its folder, and only the inherited, common, job
// and runner variables.
func TestWhatACommandGets(t *testing.T) {
	t.Setenv("LANG", "C.UTF-8")
	t.Setenv("SECRET", "of the worker")
	program := programs(t)
	folder, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	var run Run
	r := newRunner(t, program, &ExecOptions{Path: filepath.Dir(program), Inherit: []string{"LANG", "NOT_SET"},
		Env: map[string]string{"FIXED": "1", "BOTH": "worker"}, JobEnv: []string{"BOTH"}, OnRun: func(r Run) { run = r }})
	job := jobOf(Command{Args: []string{childName, "look", "a b", "$HOME", ";"}, Dir: folder, Env: map[string]string{"BOTH": "job"}})
	job.Attempt = 2
	require.NoError(t, r.Run(t.Context(), job))
	seen, name, found := strings.Cut(string(run.Output), "\nPAWL_RUN=")
	require.True(t, found)
	require.Greater(t, len(name), 20, "the name of the attempt is long enough to be nobody else's")
	require.Equal(t, strings.Join([]string{
		"argument 0 " + childName, "folder " + folder, "BOTH=job", "FIXED=1", "LANG=C.UTF-8",
		"PAWL_ATTEMPT=2", "PAWL_JOB_ID=" + job.ID.String(), "PAWL_LAST_ATTEMPT=false", "PAWL_MAX_ATTEMPTS=4",
		"PAWL_QUEUE=default", "PWD=" + folder}, "\n"), seen)
	require.Equal(t, job.Args.Args, run.Args)
	require.Equal(t, 2, run.Attempt)
	require.Zero(t, run.Code)
}

// Rule: standard input is the job's or empty; a program that reads it neither waits nor reads the
// worker's.
func TestStdin(t *testing.T) {
	program := programs(t)
	for _, stdin := range []string{"", "two\nlines\n", strings.Repeat("x", 1<<18)} {
		var run Run
		r := newRunner(t, program, &ExecOptions{Output: 1 << 20, OnRun: func(r Run) { run = r }})
		require.NoError(t, r.Run(t.Context(), jobOf(Command{Args: []string{program, "cat"}, Stdin: []byte(stdin)})))
		require.Equal(t, stdin, string(run.Output))
	}
}

// Rule: a program that does not read its input is judged by its exit.
func TestStdinUnread(t *testing.T) {
	program := programs(t)
	err := newRunner(t, program, nil).Run(t.Context(), jobOf(Command{Args: []string{program, "say", "0"}, Stdin: make([]byte, 1<<20)}))
	require.NoError(t, err)
}

// Rule: the first and the last part of a large output are kept, the rest is counted, and the error
// has the end within the limit of a history.
func TestFlood(t *testing.T) {
	program := programs(t)
	var run Run
	r := newRunner(t, program, &ExecOptions{Output: 1000, OnRun: func(r Run) { run = r }})
	err := r.Run(t.Context(), jobOf(Command{Args: []string{program, "flood", "800000"}}))
	require.Error(t, err)
	require.Less(t, len(err.Error()), pawl.MaxErrorText)
	require.True(t, strings.HasSuffix(err.Error(), "\n0099999"))
	require.Equal(t, int64(799000), run.Cut)
	require.True(t, strings.HasPrefix(string(run.Output), "0000000\n0000001\n"))
	require.True(t, strings.HasSuffix(string(run.Output), "0099999\n"))
	require.Contains(t, string(run.Output), "\n[... 799000 bytes cut ...]\n")
}

// Rule: an impossible job is refused permanently before anything starts.
func TestRefusedCommands(t *testing.T) {
	program := programs(t)
	r := newRunner(t, program, &ExecOptions{OnRun: func(Run) { t.Error("something was started") }})
	for _, c := range []struct {
		rule string
		job  Command
		says string
	}{
		{"no program", Command{}, "names no program"},
		{"an empty program", Command{Args: []string{"", "x"}}, "names no program"},
		{"a NUL in an argument", Command{Args: []string{program, "a\x00b"}}, "NUL"},
		{"a NUL in the folder", Command{Args: []string{program}, Dir: "a\x00b"}, "NUL"},
		{"an exit code that no program has", Command{Args: []string{program}, OK: []int{256}}, "between 1 and 255"},
		{"another meaning for 0", Command{Args: []string{program}, Permanent: []int{0}}, "0 always means success"},
		{"an exit code with two meanings", Command{Args: []string{program}, OK: []int{3}, Retry: []int{3}}, "twice"},
		{"a program that is not allowed", Command{Args: []string{"/bin/sh", "-c", "true"}}, "allow-list"},
		{"a variable that is not allowed", Command{Args: []string{program}, Env: map[string]string{"A": "b"}}, "does not let jobs set"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			err := r.Run(t.Context(), jobOf(c.job))
			require.ErrorContains(t, err, c.says)
			require.True(t, pawl.IsPermanent(err))
		})
	}
}

// Rule: an allowed file that is not a program is refused permanently.
func TestNoProgram(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text")
	require.NoError(t, os.WriteFile(text, []byte("no program"), 0o700))
	err := newRunner(t, text, nil).Run(t.Context(), jobOf(Command{Args: []string{text}}))
	require.ErrorContains(t, err, "cannot be started")
	require.True(t, pawl.IsPermanent(err), "%v", err)
}

// Rule: when its context ends a command is stopped and never succeeds; the handler returns the
// cause.
func TestContextEnds(t *testing.T) {
	program, phone := programs(t), listen(t)
	r := newRunner(t, program, &ExecOptions{Grace: testTimeout})
	because := errors.New("the worker is stopping")
	ctx, cancel := context.WithCancelCause(t.Context())
	done := running(ctx, r, jobOf(Command{Args: []string{program, "polite", phone.path, "child"}}))
	c := phone.accept(1)["child"]
	cancel(because)
	require.Equal(t, "bye", c.line())
	_, err := c.conn.Write([]byte("go on\n"))
	require.NoError(t, err)
	require.Equal(t, "clean", c.line(), "it has time to clean up")
	err = wait(t, done)
	require.ErrorIs(t, err, because)
	require.ErrorContains(t, err, "exit code 0")
	require.False(t, pawl.IsPermanent(err))
}

// Rule: nothing starts in a context that has ended.
func TestContextHasEnded(t *testing.T) {
	program := programs(t)
	r := newRunner(t, program, &ExecOptions{OnRun: func(Run) { t.Error("something was started") }})
	ctx, cancel := context.WithCancelCause(t.Context())
	because := errors.New("too late")
	cancel(because)
	require.ErrorIs(t, r.Run(ctx, jobOf(Command{Args: []string{program, "say", "0"}})), because)
}

// Rule: a command that survives SIGTERM is killed after the grace.
func TestStubborn(t *testing.T) {
	program, phone := programs(t), listen(t)
	r := newRunner(t, program, &ExecOptions{Grace: 20 * time.Millisecond})
	ctx, cancel := context.WithCancel(t.Context())
	done := running(ctx, r, jobOf(Command{Args: []string{program, "stubborn", phone.path, "child"}}))
	c := phone.accept(1)["child"]
	cancel()
	c.requireEnds()
	require.ErrorContains(t, wait(t, done), "killed")
}

// Rule: the grace applies to the whole group: a child may clean up after the first process has
// exited.
func TestGraceOfTheGroup(t *testing.T) {
	program, phone := programs(t), listen(t)
	r := newRunner(t, program, &ExecOptions{Grace: testTimeout})
	ctx, cancel := context.WithCancel(t.Context())
	done := running(ctx, r, jobOf(Command{Args: []string{program, "family", phone.path, "polite", "hang"}}))
	calls := phone.accept(2)
	cancel()
	calls["child"].requireEnds()
	require.Equal(t, "bye", calls["grandchild"].line())
	_, err := calls["grandchild"].conn.Write([]byte("go on\n"))
	require.NoError(t, err)
	require.Equal(t, "clean", calls["grandchild"].line())
	require.Error(t, wait(t, done))
}

// Rule: when the first process of an attempt has exited, nothing of the attempt is alive when
// the handler returns.
func TestNothingIsLeft(t *testing.T) {
	for _, c := range []struct {
		rule, how, then string
	}{
		{"a process of the group, after a success", "group", "wait0"},
		{"a process of the group, after a failure", "group", "wait1"},
		{"one that has left the session, after a success", "session", "wait0"},
		{"one that has left the session, after a failure", "session", "wait1"},
		{"one that has left it and given up the lock, after a failure", "unlocked", "wait1"},
		{"one that has left it and has the lock only, after a success", "locked", "wait0"},
		{"one without lock and environment, after a success", "bare", "wait0"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			if runtime.GOOS != "linux" && c.how != "group" {
				t.Skip("only on Linux is a process found that has left its group")
			}
			program, phone := programs(t), listen(t)
			r := newRunner(t, program, nil)
			done := running(t.Context(), r, jobOf(Command{Args: []string{program, "family", phone.path, c.how, c.then}}))
			calls := phone.accept(2)
			_, err := calls["child"].conn.Write([]byte("end\n"))
			require.NoError(t, err)
			err = wait(t, done)
			require.Equal(t, c.then == "wait0", err == nil, "%v", err)
			if c.how == "bare" { // nobody waits for one without a lock: it is killed, and may be dying
				calls["grandchild"].requireEnds()
			}
			require.True(t, calls["grandchild"].over(), "the grandchild is alive")
			left, err := filepath.Glob(filepath.Join(stateOf(r), "*.run"))
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
}

// Rule: an unknown process that keeps the output pipe open does not delay the handler.
func TestPipeKeptOpen(t *testing.T) {
	program, phone := programs(t), listen(t)
	r := newRunner(t, program, nil)
	done := running(t.Context(), r, jobOf(Command{Args: []string{program, "family", phone.path, "pipe", "wait0"}}))
	calls := phone.accept(2)
	_, err := calls["child"].conn.Write([]byte("end\n"))
	require.NoError(t, err)
	require.NoError(t, wait(t, done))
	require.False(t, calls["grandchild"].over(), "it was not what this test is about")
}

// Rule: a job does not run twice at a time in one process.
func TestRunsOnce(t *testing.T) {
	program, phone := programs(t), listen(t)
	r := newRunner(t, program, &ExecOptions{Grace: time.Millisecond})
	ctx, cancel := context.WithCancel(t.Context())
	job := jobOf(Command{Args: []string{program, "hang", phone.path, "child"}})
	done := running(ctx, r, job)
	c := phone.accept(1)["child"]
	err := r.Run(t.Context(), job)
	require.ErrorContains(t, err, "is already running in this process")
	require.False(t, pawl.IsPermanent(err))
	require.False(t, c.over(), "the first attempt goes on")
	cancel()
	require.Error(t, wait(t, done))
}
