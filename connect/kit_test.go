//go:build unix

package connect

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/internal/memdir"
	"github.com/gopawl/pawl/worker"
)

// Note is the kind of the jobs of these tests.
type Note struct{ By, N int }

var (
	note   = pawl.Define[Note]("note", pawl.Retain(time.Hour))
	double = pawl.DefineTask[int, int]("double")
)

var quiet = hclog.NewNullLogger()

// Tests that need another process start the test binary again, with a role in its environment. The two
// exchange lines, so neither relies on timing.
const roleVariable = "PAWL_CONNECT_TEST_ROLE"

var roles = map[string]func(path string) error{
	"hold":    func(path string) error { return appRole(path, false) },
	"serve":   func(path string) error { return appRole(path, true) },
	"elect":   electRole,
	"enqueue": enqueueRole,
}

func TestMain(m *testing.M) {
	role := os.Getenv(roleVariable)
	if role == "" {
		os.Exit(m.Run())
	}
	if err := roles[role](os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// appRole is an app that opens the file by itself.
func appRole(path string, serves bool) error {
	q, err := bolt.Open(path, &bolt.Options{Logger: quiet})
	if err != nil {
		return err
	}
	defer q.Close()
	if serves {
		s, err := admin.Serve(q, &admin.Options{Logger: quiet})
		if err != nil {
			return err
		}
		defer s.Close()
	}
	fmt.Println("ready")
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// electRole is a process that works when it is elected, until it is asked to end, or killed.
func electRole(path string) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c, err := Open(ctx, path, &Options{Logger: quiet, Timeout: time.Minute})
	if err != nil {
		return err
	}
	go func() {
		defer cancel()
		_, _ = io.Copy(io.Discard, os.Stdin)
	}()
	fmt.Println("ready")
	err = c.Elect(ctx, func(ctx context.Context, q *bolt.Queue) error {
		fmt.Println("elected")
		return workerOf(q).Run(ctx)
	})
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = nil
	}
	return errors.Join(err, c.Close())
}

// workerOf returns the worker of the jobs of these tests.
func workerOf(q *bolt.Queue) *worker.Worker {
	w := worker.New(q, &worker.Options{Concurrency: 2, Logger: quiet})
	worker.Handle(w, note, func(context.Context, *pawl.Job[Note]) error { return nil })
	worker.HandleTask(w, double, func(_ context.Context, job *pawl.Job[int]) (int, error) { return 2 * job.Args, nil })
	return w
}

// enqueueRole enqueues jobs, one for each line of its input, and prints the ID of each when it is
// acknowledged, and how often its outcome was unknown.
func enqueueRole(path string) error {
	ctx := context.Background()
	c, err := Open(ctx, path, &Options{Logger: quiet, Timeout: time.Minute})
	if err != nil {
		return err
	}
	fmt.Println("ready")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var n Note
		if _, err := fmt.Sscan(lines.Text(), &n.By, &n.N); err != nil {
			return err
		}
		e, err := note.Envelope(n)
		if err != nil {
			return err
		}
		e.ID = pawl.NewID(time.Now())
		unknown := 0
		for {
			_, err = c.Enqueue(ctx, e)
			if err == nil || unknown > 0 && errors.Is(err, pawl.ErrConflict) { // it is stored
				break
			}
			if !errors.Is(err, pawl.ErrUnknownOutcome) {
				return err
			}
			unknown++
		}
		fmt.Println(e.ID, unknown)
	}
	return c.Close()
}

// child is a process in a role. It ends with its test.
type child struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	lines  *bufio.Scanner
	stderr bytes.Buffer
}

func start(t testing.TB, role, path string) *child {
	t.Helper()
	binary, err := os.Executable()
	require.NoError(t, err)
	ctx, kill := context.WithCancel(context.Background())
	c := &child{cmd: exec.CommandContext(ctx, binary, path)}
	c.cmd.Dir = "/"
	c.cmd.Env = append(os.Environ(), roleVariable+"="+role)
	c.cmd.Stderr = &c.stderr
	stdout, err := c.cmd.StdoutPipe()
	require.NoError(t, err)
	c.stdin, err = c.cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, c.cmd.Start())
	t.Cleanup(func() {
		kill()
		_ = c.cmd.Wait()
	})
	c.lines = bufio.NewScanner(stdout)
	require.Equal(t, "ready", c.line(t))
	return c
}

// line returns the next line of the child's output.
func (c *child) line(t testing.TB) string {
	t.Helper()
	if !c.lines.Scan() {
		_ = c.cmd.Wait()
		t.Fatalf("the child is gone: %s", c.stderr.String())
	}
	return strings.TrimSpace(c.lines.Text())
}

// kill ends the child like a crash.
func (c *child) kill(t testing.TB) {
	t.Helper()
	require.NoError(t, c.cmd.Process.Kill())
	_ = c.cmd.Wait()
}

// end asks the child to end, and waits for it.
func (c *child) end(t testing.TB) {
	t.Helper()
	require.NoError(t, c.stdin.Close())
	require.NoError(t, c.cmd.Wait(), "%s", &c.stderr)
}

func (c *child) signal(t testing.TB, s syscall.Signal) {
	t.Helper()
	require.NoError(t, c.cmd.Process.Signal(s))
}

// freeze stops the process, and returns when it has stopped.
func (c *child) freeze(t testing.TB) {
	t.Helper()
	c.signal(t, syscall.SIGSTOP)
	var state syscall.WaitStatus
	_, err := syscall.Wait4(c.cmd.Process.Pid, &state, syscall.WUNTRACED, nil)
	require.NoError(t, err)
	require.True(t, state.Stopped())
}

func newPath(t testing.TB) string { return filepath.Join(memdir.New(t), "jobs.db") }

// open returns a client that ends with the test.
func open(t testing.TB, path string) *Client {
	t.Helper()
	c, err := Open(t.Context(), path, &Options{Logger: quiet, Timeout: time.Minute})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// owner returns the process that owns the file.
func owner(t testing.TB, c *Client) int {
	t.Helper()
	pid := 0
	require.NoError(t, c.Use(t.Context(), func(a admin.Admin) error {
		s, err := a.Stats(t.Context())
		if err == nil {
			pid = s.Process.PID
		}
		return err
	}))
	return pid
}

// add enqueues a job.
func add(t testing.TB, c *Client, n int) pawl.ID {
	t.Helper()
	done, err := note.Enqueue(t.Context(), c, Note{N: n})
	require.NoError(t, err)
	return done.ID
}
