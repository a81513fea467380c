package kills

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Tests that need a second process start the test binary again with a role in its environment.
// A child and its test exchange lines over the child's standard input and output, so neither
// ever waits for a time to pass.
const roleVariable = "PAWL_TEST_ROLE"

// Roles are what child processes do, by name.
type Roles map[string]func(args []string) error

// Main does what the environment asks of a child, if it asks for a role, and then does not return. TestMain calls it first.
func Main(roles Roles) {
	name := os.Getenv(roleVariable)
	if name == "" {
		return
	}
	if err := roles[name](os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Child is a process in a role. It ends with its test.
type Child struct {
	Cmd    *exec.Cmd
	Stdin  io.WriteCloser
	Stderr bytes.Buffer
	Kill   context.CancelFunc // SIGKILL

	lines *bufio.Scanner
}

// Start starts a child.
func Start(t *testing.T, role string, args ...string) *Child {
	t.Helper()
	ctx, kill := context.WithCancel(context.Background())
	binary, err := os.Executable()
	require.NoError(t, err)
	c := &Child{Cmd: exec.CommandContext(ctx, binary, args...), Kill: kill}
	c.Cmd.Env = append(os.Environ(), roleVariable+"="+role,
		"GORACE="+os.Getenv("GORACE")+" atexit_sleep_ms=0") // otherwise the race detector waits a second at every exit
	c.Cmd.Stderr = &c.Stderr
	c.Stdin, err = c.Cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := c.Cmd.StdoutPipe()
	require.NoError(t, err)
	c.lines = bufio.NewScanner(stdout)
	require.NoError(t, c.Cmd.Start())
	t.Cleanup(func() {
		kill()
		_ = c.Cmd.Wait()
	})
	return c
}

// Line returns the next line of the child. It fails the test if there is none.
func (c *Child) Line(t *testing.T) string {
	t.Helper()
	if !c.lines.Scan() {
		_ = c.Cmd.Wait()
		t.Fatalf("the child ended: %v\n%s", c.Cmd.ProcessState, c.Stderr.String())
	}
	return c.lines.Text()
}

// Rest reads the child's output until the child ends in any way. It omits an incomplete last
// line.
func (c *Child) Rest() (lines []string) {
	for c.lines.Scan() {
		lines = append(lines, c.lines.Text())
	}
	_ = c.Cmd.Wait()
	return lines
}

// Say sends a line to the child.
func (c *Child) Say(t *testing.T, words ...string) {
	t.Helper()
	_, err := fmt.Fprintln(c.Stdin, strings.Join(words, " "))
	require.NoError(t, err)
}

// Within kills c after a random time of at most limit, and returns the child's output until then.
func (c *Child) Within(limit time.Duration) []string {
	timer := time.AfterFunc(rand.N(limit), c.Kill)
	defer timer.Stop()
	return c.Rest()
}

// After kills c within some milliseconds of a random line, of at most limit lines, and returns the
// child's output until then. The child comes as far on a busy machine as on another.
func (c *Child) After(t *testing.T, limit int) (lines []string) {
	t.Helper()
	for range rand.N(limit) {
		lines = append(lines, c.Line(t))
	}
	return append(lines, c.Within(5*time.Millisecond)...)
}

// Say sends a line from a child to its test, in one write, so that a kill omits it or leaves
// it whole.
func Say(words ...any) { _, _ = os.Stdout.WriteString(fmt.Sprintln(words...)) }
