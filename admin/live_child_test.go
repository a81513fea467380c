//go:build unix

package admin

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/bolt"
)

// Tests that need another process start the test binary again, with a role in its environment.
// The two exchange lines, so neither relies on timing.
const roleVariable = "PAWL_ADMIN_TEST_ROLE"

var roles = map[string]func(path string) error{
	"hold":    func(path string) error { return appRole(path, false) },
	"serve":   func(path string) error { return appRole(path, true) },
	"intrude": intrudeRole,
	"slow":    slowRole,
}

func TestMain(m *testing.M) {
	role := os.Getenv(roleVariable)
	if role == "" {
		debug.SetGCPercent(400) // heaps are small, and collections took a third of the time
		os.Exit(m.Run())
	}
	if err := roles[role](os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// appRole is an app that has the queue open until it is asked to end, or killed.
func appRole(path string, serves bool) error {
	q, err := bolt.Open(path, &bolt.Options{Logger: hclog.NewNullLogger()})
	if err != nil {
		return err
	}
	defer q.Close()
	if serves {
		s, err := Serve(q, &Options{Name: "an app", Logger: hclog.NewNullLogger()})
		if err != nil {
			return err
		}
		defer s.Close()
	}
	fmt.Println("ready")
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// intrudeRole tries to reach a socket until it is asked to end, and reports how often it tried,
// connected, and received an answer. It prints "busy" when it has connected, or has tried a thousand times.
func intrudeRole(socket string) error {
	end := make(chan struct{})
	go func() {
		defer close(end)
		_, _ = io.Copy(io.Discard, os.Stdin)
	}()
	fmt.Println("ready")
	var tries, connected, answered int
	busy := sync.OnceFunc(func() { fmt.Println("busy") })
	for {
		if tries >= 1000 || connected > 0 {
			busy()
		}
		select {
		case <-end:
			fmt.Println(tries, connected, answered)
			return nil
		default:
		}
		tries++
		conn, err := net.Dial("unix", socket)
		if err != nil {
			continue
		}
		connected++
		_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
		_, _ = io.WriteString(conn, "GET "+opStats.path+" HTTP/1.1\r\nHost: localhost\r\n\r\n")
		if _, err := http.ReadResponse(bufio.NewReader(conn), nil); err == nil {
			answered++
		}
		_ = conn.Close()
	}
}

// child is a process in a role. It ends with its test.
type child struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	lines  *bufio.Scanner
	stderr bytes.Buffer
}

func startChild(t testing.TB, as *syscall.Credential, binary, role, path string) *child {
	t.Helper()
	ctx, kill := context.WithCancel(context.Background())
	c := &child{cmd: exec.CommandContext(ctx, binary, path)}
	c.cmd.Dir = "/"
	c.cmd.Env = append(os.Environ(), roleVariable+"="+role)
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: as}
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

// startApp starts an app as this user.
func startApp(t testing.TB, role, path string) *child {
	t.Helper()
	binary, err := os.Executable()
	require.NoError(t, err)
	return startChild(t, nil, binary, role, path)
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

// killHard ends the child like a crash.
func (c *child) killHard(t testing.TB) {
	t.Helper()
	require.NoError(t, c.cmd.Process.Kill())
	_ = c.cmd.Wait()
}

// end asks the child to end, and waits for it.
func (c *child) end(t *testing.T) {
	t.Helper()
	require.NoError(t, c.stdin.Close())
}
