package handlers

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/worker"
)

// workerMode has the test binary be a worker, on the queue in a folder.
const workerMode = "pawl-worker"

// workerMain works until the process is killed, or the test is over, which ends its input.
func workerMain(args []string) {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	dir, program := args[0], args[1]
	r, err := NewRunner(filepath.Join(dir, "runs"), []string{program}, nil)
	if err == nil {
		var q *bolt.Queue
		if q, err = bolt.Open(filepath.Join(dir, "jobs.db"), &bolt.Options{Logger: hclog.NewNullLogger()}); err == nil {
			w := worker.New(q, &worker.Options{Concurrency: 2, Logger: hclog.NewNullLogger()})
			worker.Handle(w, Exec, r.Run)
			err = w.Run(context.Background())
		}
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// startWorker starts a worker in a process of its own.
func startWorker(t *testing.T, dir, program string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self, workerMode, dir, program)
	cmd.Stderr = os.Stderr
	_, err = cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

// Rule: after a worker was killed and its job recovered, nothing of the earlier attempt is alive when
// the job runs again, including grandchildren.
func TestKilledWorker(t *testing.T) {
	for _, c := range []struct {
		rule, how string
		forget    bool // the worker was killed before it noted the process
	}{
		{rule: "a grandchild in the group", how: "group"},
		{rule: "a grandchild that has left the session", how: "session"},
		{rule: "one that has left it and given up the lock", how: "unlocked"},
		{rule: "one that has left it and has the lock only", how: "locked"},
		{rule: "an attempt whose process was not noted", how: "unlocked", forget: true},
	} {
		t.Run(c.rule, func(t *testing.T) {
			if runtime.GOOS != "linux" {
				t.Skip("the kernel ends the child of a killed worker on Linux only")
			}
			dir, program, phone := t.TempDir(), programs(t), listen(t)
			enqueue(t, dir, Command{Args: []string{program, "family", phone.path, c.how, "hang"}})

			first := startWorker(t, dir, program)
			before := phone.accept(2)
			require.NoError(t, first.Process.Kill())
			_ = first.Wait()
			before["child"].requireEnds() // by the kernel: there is no runner
			require.False(t, before["grandchild"].over(), "it is an orphan now, or else this test shows nothing")
			if c.forget {
				notes, err := filepath.Glob(filepath.Join(dir, "runs", "*.run"))
				require.NoError(t, err)
				require.Len(t, notes, 1)
				text, err := os.ReadFile(notes[0])
				require.NoError(t, err)
				line, _, _ := bytes.Cut(text, []byte("\n"))
				require.NoError(t, os.Truncate(notes[0], int64(len(line)+1)))
			}

			startWorker(t, dir, program)
			phone.accept(2) // the job runs again
			require.True(t, before["grandchild"].over(), "the job runs beside its orphan")
		})
	}
}

func enqueue(t *testing.T, dir string, c Command) {
	t.Helper()
	q, err := bolt.Open(filepath.Join(dir, "jobs.db"), &bolt.Options{Logger: hclog.NewNullLogger()})
	require.NoError(t, err)
	_, err = Exec.Enqueue(t.Context(), q, c)
	require.NoError(t, err)
	require.NoError(t, q.Close())
}

// Rule: stopping a worker ends its commands and releases their jobs without counting an attempt;
// nothing is left.
func TestStopReleases(t *testing.T) {
	dir, program, phone := t.TempDir(), programs(t), listen(t)
	r := newRunner(t, program, nil)
	q, err := bolt.Open(filepath.Join(dir, "jobs.db"), &bolt.Options{Logger: hclog.NewNullLogger()})
	require.NoError(t, err)
	defer func() { require.NoError(t, q.Close()) }()
	enqueued, err := Exec.Enqueue(t.Context(), q, Command{Args: []string{program, "family", phone.path, "group", "hang"}})
	require.NoError(t, err)

	w := worker.New(q, &worker.Options{Drain: 1, StopGrace: testTimeout, Logger: hclog.NewNullLogger()})
	worker.Handle(w, Exec, r.Run)
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- w.Run(ctx) }()
	calls := phone.accept(2)
	cancel()
	require.NoError(t, wait(t, stopped))
	require.True(t, calls["child"].over())
	require.True(t, calls["grandchild"].over())
	job, err := q.Job(t.Context(), enqueued.ID)
	require.NoError(t, err)
	require.Equal(t, pawl.Ready, job.State)
	require.Zero(t, job.Attempts)
	require.Zero(t, w.Stuck())
}

// Rule: a job with the same ID in another queue, such as a copy of the file, is another job; its
// attempt continues.
func TestSameJobElsewhere(t *testing.T) {
	program, phone := programs(t), listen(t)
	here, there := newRunner(t, program, &ExecOptions{Grace: 1}), newRunner(t, program, nil)
	ctx, cancel := context.WithCancel(t.Context())
	job := jobOf(Command{Args: []string{program, "hang", phone.path, "child"}})
	done := running(ctx, here, job)
	c := phone.accept(1)["child"]
	copied := *job
	copied.Args.Args = []string{program, "say", "1"}
	require.Error(t, there.Run(t.Context(), &copied), "what it left is looked for")
	require.False(t, c.over())
	cancel()
	require.Error(t, wait(t, done))
}
