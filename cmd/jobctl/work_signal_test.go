//go:build unix

package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/handlers"
)

// startWork runs a worker in a separate process, with a file with one job that never ends by
// itself and ignores SIGTERM. It returns when that job runs.
func startWork(t *testing.T, flags ...string) (cmd *exec.Cmd, stderr *bufio.Reader) {
	t.Helper()
	build(t, nil)
	require.NoError(t, syscall.Mkfifo("up", 0o600))
	got := jobctl(t, append(words("--db app.db job enqueue --exec -- sh -c"), `trap "" TERM; echo > up; sleep 60 & wait`)...)
	require.Zero(t, got.code, got.stderr)
	cmd = exec.Command("jobctl", append(words("--db app.db work --exec --allow sh --grace 100ms"), flags...)...)
	pipe, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		left, err := handlers.NewRunner("app.db.runs", []string{"sh"}, nil) // ends what still sleeps
		require.NoError(t, err)
		require.NoError(t, left.Close())
	})
	_, err = os.ReadFile("up")
	require.NoError(t, err)
	return cmd, bufio.NewReader(pipe)
}

// Rule: a second signal ends a worker immediately, whatever it still waits for; the job
// stays in the queue.
func TestSecondSignal(t *testing.T) {
	cmd, stderr := startWork(t, "--finish", "24h")
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	for line := ""; !strings.HasPrefix(line, "stopping: running jobs have 24h0m0s"); {
		var err error
		line, err = stderr.ReadString('\n')
		require.NoError(t, err)
	}
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	require.ErrorContains(t, cmd.Wait(), "signal: interrupt")
	require.Equal(t, pawl.Leased, look(t, firstJob(t)).State, "nobody had time to put it back")
}

// Rule: when the reader of its lines goes away, a worker stops as after a signal, returns
// running jobs to the queue and reports it; it is not killed in the middle.
func TestReaderGoesAway(t *testing.T) {
	t.Run("on", func(t *testing.T) { readerGoesAway(t) })
	t.Run("drain", func(t *testing.T) { readerGoesAway(t, "--drain") })
}

func readerGoesAway(t *testing.T, flags ...string) {
	build(t, nil)
	require.NoError(t, syscall.Mkfifo("up", 0o600))
	for _, script := range []string{"echo > up; sleep 60", "read x < up"} { // the second ends when the first runs
		got := jobctl(t, append(words("--db app.db job enqueue --exec -- sh -c"), script)...)
		require.Zero(t, got.code, got.stderr)
	}
	r, w, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, r.Close())
	cmd := exec.Command("jobctl", append(words("--db app.db work --exec --allow sh -j 2 -o jsonl --finish 0s"), flags...)...)
	cmd.Stdout = w
	var stderr strings.Builder
	cmd.Stderr = &stderr
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	require.NoError(t, w.Close())
	err = cmd.Wait()
	require.ErrorContains(t, err, "exit status 1", stderr.String())
	require.Contains(t, stderr.String(), "error: write the output: ")
	require.Equal(t, pawl.Ready, look(t, firstJob(t)).State)
	runs, err := filepath.Glob("app.db.runs/*.run")
	require.NoError(t, err)
	require.Empty(t, runs, "nothing is left running")
}

// firstJob returns the ID of the first job in the file.
func firstJob(t *testing.T) pawl.ID {
	t.Helper()
	got := jobctl(t, words("--db app.db job list -o ids -n 1")...)
	require.Zero(t, got.code, got.stderr)
	id, err := pawl.ParseID(strings.TrimSpace(got.stdout))
	require.NoError(t, err)
	return id
}
