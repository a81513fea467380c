//go:build unix

package pawl_test

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/internal/race"
)

// readmeProgram builds the first program of the README, whose two snippets lack only the
// imports and the function send, and returns the path of the binary.
func readmeProgram(t *testing.T, send string) string {
	t.Helper()
	race.SkipBuilt(t)
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	snippets := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllSubmatch(readme, 2)
	source := `package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/worker"
)

` + string(snippets[0][1]) + "\nfunc main() {\n" + string(snippets[1][1]) + "}\n\n" + send
	dir := t.TempDir()
	file, binary := filepath.Join(dir, "main.go"), filepath.Join(dir, "program")
	require.NoError(t, os.WriteFile(file, []byte(source), 0o600))
	out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", binary, file).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return binary
}

// deploy runs the program until its handler runs, sends it SIGTERM, and returns how long it
// took to end and what it logged.
func deploy(t *testing.T, binary, dir string) (took time.Duration, log string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(stdout)
	for lines.Scan() && lines.Text() != "sending" {
	}
	began := time.Now()
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	for lines.Scan() {
	}
	require.NoError(t, cmd.Wait(), "it did not end by itself: %s", &stderr)
	return time.Since(began), stderr.String()
}

// due stores the job whose handler the program is stopped in; its own come a minute later.
func due(t *testing.T, dir string) pawl.ID {
	t.Helper()
	q, err := bolt.Open(filepath.Join(dir, "jobs.db"), nil)
	require.NoError(t, err)
	job, err := SendWelcome.Enqueue(t.Context(), q, Welcome{To: "grace@example.com"})
	require.NoError(t, err)
	require.NoError(t, q.Close())
	return job.ID
}

// Rule: at SIGTERM, which ends containers and services, the README's program lets the
// running handler finish, as it does at ctrl-C.
func TestReadmeProgramStopsAtSIGTERM(t *testing.T) {
	t.Parallel()
	binary := readmeProgram(t, `
func send(ctx context.Context, to string) error {
	signaled := make(chan os.Signal, 1)
	signal.Notify(signaled, syscall.SIGTERM)
	fmt.Println("sending")
	<-signaled // so the worker has the signal too
	return ctx.Err()
}

var _ time.Duration
`)
	dir := t.TempDir()
	id := due(t, dir)
	deploy(t, binary, dir)
	r, err := bolt.OpenReader(filepath.Join(dir, "jobs.db"))
	require.NoError(t, err)
	defer r.Close()
	_, err = r.Job(t.Context(), id)
	require.ErrorIs(t, err, pawl.ErrNotFound, "the handler was interrupted")
}

// Rule: five deploys during a handler of 30 s lose nothing, end within 9 s each, and count
// neither a crash nor an attempt. It takes 35 s, so it runs only where PAWL_SLOW_TESTS is
// set; worker.TestDeploysAmidALongJob is the same in virtual time.
func TestReadmeProgramFiveDeploys(t *testing.T) {
	if os.Getenv("PAWL_SLOW_TESTS") == "" {
		t.Skip("set PAWL_SLOW_TESTS=1 to stop a real process five times")
	}
	t.Parallel()
	binary := readmeProgram(t, `
func send(context.Context, string) error {
	fmt.Println("sending")
	time.Sleep(30 * time.Second)
	return nil
}
`)
	dir := t.TempDir()
	id := due(t, dir)
	for range 5 {
		took, log := deploy(t, binary, dir)
		require.Less(t, took, 9*time.Second)
		require.False(t, strings.Contains(log, "crash") || strings.Contains(log, "dead"), log)
	}
	r, err := bolt.OpenReader(filepath.Join(dir, "jobs.db"))
	require.NoError(t, err)
	defer r.Close()
	job, err := r.Job(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, pawl.Ready, job.State)
	require.Zero(t, job.Crashes)
	require.Zero(t, job.Attempts)
	stats, err := r.Stats(t.Context())
	require.NoError(t, err)
	require.Equal(t, pawl.Counts{Ready: 1, Delayed: 5}, stats.Queues[0].Counts)
}
