package handlers

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

// Rule: one runner at a time uses a state folder; Close releases it.
func TestStateHasOneOwner(t *testing.T) {
	program := programs(t)
	dir := filepath.Join(t.TempDir(), "runs")
	first, err := NewRunner(dir, []string{program}, nil)
	require.NoError(t, err)
	_, err = NewRunner(dir, []string{program}, nil)
	require.ErrorContains(t, err, "another runner uses it")
	require.NoError(t, first.Close())
	second, err := NewRunner(dir, []string{program}, nil)
	require.NoError(t, err)
	require.NoError(t, second.Close())
}

// Rule: a folder in which others could choose the processes to kill is refused.
func TestStateFolderOfOthers(t *testing.T) {
	program := programs(t)
	_, err := NewRunner("", []string{program}, nil)
	require.ErrorContains(t, err, "has no name")
	dir := t.TempDir()
	for _, mode := range []os.FileMode{0o770, 0o707} {
		require.NoError(t, os.Chmod(dir, mode))
		_, err := NewRunner(dir, []string{program}, nil)
		require.ErrorContains(t, err, "chmod 700")
	}
	require.NoError(t, os.Chmod(dir, 0o700))
	open := t.TempDir()
	require.NoError(t, os.Chmod(open, 0o777))
	_, err = NewRunner(filepath.Join(open, "runs"), []string{program}, nil)
	require.ErrorContains(t, err, "everybody may write to "+open)
	if os.Geteuid() == 0 {
		require.NoError(t, os.Chown(dir, 12345, -1))
		_, err := NewRunner(dir, []string{program}, nil)
		require.ErrorContains(t, err, "belongs to user 12345")
	}
}

// Rule: a process with a recorded number is killed only if its start time and boot ID match too.
func TestNumberIsReused(t *testing.T) {
	program, phone := programs(t), listen(t)
	cmd := exec.Command(program, "hang", phone.path, "other")
	cmd.SysProcAttr = setsid()
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	other := phone.accept(1)["other"]
	start, boot := identify(cmd.Process.Pid)
	require.NotEmpty(t, start)
	require.NotEmpty(t, boot)
	ticks, err := strconv.Atoi(start)
	require.NoError(t, err)

	id := jobOf(0).ID
	note := func(r record) []Orphan {
		dir := t.TempDir()
		text, err := json.Marshal(r)
		require.NoError(t, err)
		path := filepath.Join(dir, id.String()+runSuffix)
		require.NoError(t, os.WriteFile(path, text, 0o600))
		require.NoError(t, os.Chmod(dir, 0o700))
		s, orphans, err := openState(dir)
		require.NoError(t, err)
		require.NoFileExists(t, path)
		require.NoError(t, s.close())
		return orphans
	}
	require.Empty(t, note(record{PID: cmd.Process.Pid, Start: strconv.Itoa(ticks - 1), Boot: boot}))
	require.Empty(t, note(record{PID: cmd.Process.Pid, Start: start, Boot: "another"}))
	require.Empty(t, note(record{PID: cmd.Process.Pid}))
	require.Empty(t, note(record{}))
	require.False(t, other.over())
	require.Equal(t, []Orphan{{Job: id, PIDs: []int{cmd.Process.Pid}}}, note(record{PID: cmd.Process.Pid, Start: start, Boot: boot}))
	other.requireEnds()
}

// Rule: while an unknown process holds the lock of an earlier attempt, the job fails with an error
// that says so; afterwards it runs.
func TestLockIsKept(t *testing.T) {
	program := programs(t)
	r := newRunner(t, program, nil)
	job := jobOf(Command{Args: []string{program, "say", "0"}})
	lock, err := openLocked(t.Context(), r.state.file(job.ID), 0)
	require.NoError(t, err)
	_, err = r.state.endRun(t.Context(), job.ID, endTimeout)
	require.ErrorContains(t, err, "an earlier run of job "+job.ID.String()+" is alive")

	ctx, cancel := context.WithCancel(t.Context())
	done := running(ctx, r, job)
	cancel()
	require.ErrorIs(t, wait(t, done), context.Canceled, "a stop does not wait for it")
	require.NoError(t, lock.Close())
	require.NoError(t, r.Run(t.Context(), job))
}

// Rule: if the disk is full and an attempt cannot be recorded, its command does not run; nothing is
// left of it, and the retry is not blocked.
func TestNoteFails(t *testing.T) {
	const alone = "PAWL_TEST_ALONE"
	if os.Getenv(alone) == "" { // the limit is one of the whole process, so it has one of its own
		self, err := os.Executable()
		require.NoError(t, err)
		cmd := exec.Command(self, "-test.run=^TestNoteFails$")
		cmd.Env = append(os.Environ(), alone+"=1")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return
	}
	program, phone := programs(t), listen(t)
	for rule, room := range map[string]uint64{"none is taken": 0, "that of the process is not": 50} {
		t.Run(rule, func(t *testing.T) {
			r := newRunner(t, program, &ExecOptions{OnRun: func(Run) { t.Error("it ran") }})
			job := jobOf(Command{Args: []string{program, "hang", phone.path, "child"}})
			var limit syscall.Rlimit
			require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit))
			require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: room, Max: limit.Max}))
			err := r.Run(t.Context(), job)
			require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit))
			require.ErrorContains(t, err, "record the run")
			require.False(t, pawl.IsPermanent(err))
			require.NoFileExists(t, r.state.file(job.ID))
			hold, err := r.state.begin(t.Context(), job.ID)
			require.NoError(t, err)
			require.NoError(t, hold.end(false))
		})
	}
}

// Rule: if the state folder is deleted while a command runs, the rest of a failed attempt is
// still ended; other jobs fail with an error that says what to do.
func TestStateIsDeleted(t *testing.T) {
	program, phone := programs(t), listen(t)
	r := newRunner(t, program, nil)
	job := jobOf(Command{Args: []string{program, "family", phone.path, "unlocked", "wait1"}})
	done := running(t.Context(), r, job)
	calls := phone.accept(2)
	require.Eventually(t, func() bool { // the command may call before its process is noted
		rec, err := os.ReadFile(r.state.file(job.ID))
		return err == nil && bytes.Count(rec, []byte("\n")) == 2
	}, testTimeout, time.Millisecond)
	require.NoError(t, os.RemoveAll(r.state.dir))
	_, err := calls["child"].conn.Write([]byte("end\n"))
	require.NoError(t, err)
	require.ErrorContains(t, wait(t, done), "exit code 1")
	require.True(t, calls["grandchild"].over(), "the grandchild is alive")

	err = r.Run(t.Context(), jobOf(Command{Args: []string{program, "say", "0"}}))
	require.ErrorContains(t, err, "restart the worker")
	require.False(t, pawl.IsPermanent(err))
}

// Rule: the name of a process does not shift the fields after it.
func TestStatOfStrangeName(t *testing.T) {
	program, phone := programs(t), listen(t)
	link := filepath.Join(t.TempDir(), ") Z 1 1 (")
	require.NoError(t, os.Symlink(program, link))
	cmd := exec.Command(link, "hang", phone.path, "strange")
	cmd.Args[0] = childName
	cmd.SysProcAttr = setsid()
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	phone.accept(1)
	s, err := readStat(cmd.Process.Pid)
	require.NoError(t, err)
	require.False(t, s.over())
	require.Equal(t, cmd.Process.Pid, s.group)
	require.Equal(t, cmd.Process.Pid, s.session)
}

// Rule: files in the state folder that do not belong to attempts are ignored.
func TestStrangeFilesStay(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "runs")
	require.NoError(t, os.Mkdir(dir, 0o700))
	for _, name := range []string{"notes.txt", "x.run", pawl.ID{1}.String()} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	s, orphans, err := openState(dir)
	require.NoError(t, err)
	require.Empty(t, orphans)
	require.NoError(t, s.close())
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 4, "and the owner's")
}
