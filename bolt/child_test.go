package bolt

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/gopawl/pawl/internal/busy"
	"github.com/gopawl/pawl/internal/memdir"
	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
)

// Tests that need a second process start the test binary again with a role in its environment.
// A child and its test exchange lines over the child's standard input and output, so neither
// ever waits for a time to pass.
const roleVariable = "PAWL_TEST_ROLE"

var roles = map[string]func(args []string) error{
	"hold":   holdRole,
	"create": createRole,
	"open":   openRole,
	"work":   workRole,
	"run":    runRole,
	"result": resultRole,
	"group":  groupRole,
	"after":  afterRole,
	"cursor": cursorRole,
	"notes":  notesRole,
}

func TestMain(m *testing.M) {
	name := os.Getenv(roleVariable)
	if name == "" {
		debug.SetGCPercent(400) // heaps are small, and collections took a third of the time
		os.Exit(m.Run())
	}
	if err := roles[name](os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// child is a process in a role. It ends with its test.
type child struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	lines  *bufio.Scanner
	stderr bytes.Buffer
	kill   context.CancelFunc // SIGKILL
}

func startChild(t *testing.T, role string, args ...string) *child {
	t.Helper()
	ctx, kill := context.WithCancel(context.Background())
	binary, err := os.Executable()
	require.NoError(t, err)
	c := &child{cmd: exec.CommandContext(ctx, binary, args...), kill: kill}
	c.cmd.Env = append(os.Environ(), roleVariable+"="+role,
		"GORACE="+os.Getenv("GORACE")+" atexit_sleep_ms=0") // otherwise the race detector waits a second at every exit
	c.cmd.Stderr = &c.stderr
	c.stdin, err = c.cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := c.cmd.StdoutPipe()
	require.NoError(t, err)
	c.lines = bufio.NewScanner(stdout)
	require.NoError(t, c.cmd.Start())
	t.Cleanup(func() {
		kill()
		_ = c.cmd.Wait()
	})
	return c
}

// line returns the next line of the child. It fails the test if there is none.
func (c *child) line(t *testing.T) string {
	t.Helper()
	if !c.lines.Scan() {
		_ = c.cmd.Wait()
		t.Fatalf("the child ended: %v\n%s", c.cmd.ProcessState, c.stderr.String())
	}
	return c.lines.Text()
}

// rest reads the child's output until the child ends in any way. It omits an incomplete last
// line.
func (c *child) rest() (lines []string) {
	for c.lines.Scan() {
		lines = append(lines, c.lines.Text())
	}
	_ = c.cmd.Wait()
	return lines
}

// say sends a line to the child.
func (c *child) say(t *testing.T, words ...string) {
	t.Helper()
	_, err := fmt.Fprintln(c.stdin, strings.Join(words, " "))
	require.NoError(t, err)
}

// say sends a line from a child to its test, in one write, so that a kill omits it or leaves
// it whole.
func say(words ...any) { _, _ = os.Stdout.WriteString(fmt.Sprintln(words...)) }

// readReports calls fn for every line that the test sends, until it closes the pipe.
func readReports(fn func(words []string) error) error {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		if err := fn(strings.Fields(lines.Text())); err != nil {
			return err
		}
	}
	return nil
}

// quiet are options without a log.
func quiet() *Options { return &Options{Logger: hclog.NewNullLogger(), Lease: busy.Lease()} }

// memoryFolder returns a folder of the test, in memory where the system has that. Tests with
// hundreds of commits prove nothing about the disk.
func memoryFolder(t testing.TB) string {
	t.Helper()
	return memdir.New(t)
}
