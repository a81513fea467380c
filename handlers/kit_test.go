package handlers

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

// childName is the name under which the test binary is a program that tests run; see child.
const childName = "pawl-child"

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == childName {
		child(os.Args[1:])
		syscall.Exit(0)
	}
	if len(os.Args) > 1 && os.Args[1] == workerMode {
		workerMain(os.Args[2:])
		return
	}
	os.Exit(m.Run())
}

// programs makes a folder with the program that tests run, and returns its path there.
func programs(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), childName)
	require.NoError(t, os.Symlink(self, path))
	return path
}

// newRunner makes a runner that allows the program.
func newRunner(t *testing.T, program string, opts *ExecOptions) *Runner {
	t.Helper()
	r, err := NewRunner(filepath.Join(t.TempDir(), "runs"), []string{program}, opts)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	bePatient(r)
	return r
}

// jobOf is a job as a worker hands it to its handler. IDs of later ones are greater.
func jobOf[T any](args T) *pawl.Job[T] {
	return &pawl.Job[T]{Envelope: &pawl.Envelope{ID: pawl.NewID(time.Now()), Queue: "default", MaxRetries: 3}, Args: args, Attempt: 1}
}

// testTimeout bounds what a test waits for; a test that is right never waits so long.
const testTimeout = 2 * time.Minute

// phone is a socket on which processes report. Its connection ends when the process does,
// and nothing else ends it.
type phone struct {
	t        *testing.T
	path     string
	listener *net.UnixListener
}

// call is one process that has reported.
type call struct {
	t    *testing.T
	name string
	conn *net.UnixConn
	in   *bufio.Reader
}

func listen(t *testing.T) *phone {
	t.Helper()
	dir, err := os.MkdirTemp("", "pawl") // names of sockets are short
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	return &phone{t, path, l}
}

// accept waits until n processes have reported, and returns them by their names.
func (p *phone) accept(n int) map[string]*call {
	p.t.Helper()
	calls := make(map[string]*call)
	for range n {
		require.NoError(p.t, p.listener.SetDeadline(time.Now().Add(testTimeout)))
		conn, err := p.listener.AcceptUnix()
		require.NoError(p.t, err, "waiting for a process to report")
		p.t.Cleanup(func() { conn.Close() })
		c := &call{t: p.t, conn: conn, in: bufio.NewReader(conn)}
		c.name = c.line()
		calls[c.name] = c
	}
	return calls
}

// line waits for the next line that the process says.
func (c *call) line() string {
	c.t.Helper()
	require.NoError(c.t, c.conn.SetReadDeadline(time.Now().Add(testTimeout)))
	text, err := c.in.ReadString('\n')
	require.NoError(c.t, err, "the process %s ended in place of saying a line", c.name)
	return strings.TrimSuffix(text, "\n")
}

// requireEnds waits for the end of the process.
func (c *call) requireEnds() {
	c.t.Helper()
	require.NoError(c.t, c.conn.SetReadDeadline(time.Now().Add(testTimeout)))
	_, err := c.in.ReadString('\n')
	require.ErrorIs(c.t, err, io.EOF, "the process %s is alive", c.name)
}

// over reports whether the process has ended already: it does not wait.
func (c *call) over() bool {
	c.t.Helper()
	raw, err := c.conn.SyscallConn()
	require.NoError(c.t, err)
	ended := false
	require.NoError(c.t, raw.Read(func(fd uintptr) bool {
		ended = atEOF(fd)
		return true
	}))
	return ended
}

// running starts a job and returns what its handler will return.
func running(ctx context.Context, r *Runner, job *pawl.Job[Command]) <-chan error {
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx, job) }()
	return done
}

func wait(t *testing.T, done <-chan error) error {
	t.Helper()
	select {
	case err := <-done:
		return err
	case <-time.After(testTimeout):
		require.Fail(t, "the handler did not return")
		return nil
	}
}
