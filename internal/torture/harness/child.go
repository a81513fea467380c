package harness

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// Families that kill start the program again with a role in its environment. A child
// tells in lines on its standard output, each in one write that a pipe takes whole, so that
// neither side ever waits for a time to pass and a kill leaves a line out or whole.
const roleVariable = "PAWL_TORTURE_ROLE"

var roles = make(map[string]func(args []string) error)

// Role registers what a child of that name does. Families call it before Main.
func Role(name string, run func(args []string) error) { roles[name] = run }

// Main plays the role that the environment names, and does not return then. Programs and
// tests that run families call it first.
func Main() {
	name := os.Getenv(roleVariable)
	if name == "" {
		return
	}
	_ = os.Unsetenv(roleVariable)
	run, ok := roles[name]
	if !ok {
		fmt.Fprintf(os.Stderr, "there is no role %q\n", name)
		os.Exit(1)
	}
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Tell sends a line from a child to its family.
func Tell(words ...any) { _, _ = os.Stdout.WriteString(fmt.Sprintln(words...)) }

// Child is a process in a role.
type Child struct {
	*exec.Cmd
	Kill  context.CancelFunc // SIGKILL
	In    io.WriteCloser
	lines *bufio.Scanner
	err   bytes.Buffer
}

// Command is the command that starts a child; a family may put another in front of it.
// What runs before the arguments, a tracer for example, stands in wrap.
func Command(ctx context.Context, wrap []string, role string, args ...string) (*exec.Cmd, error) {
	binary, err := os.Executable()
	if err != nil {
		return nil, err
	}
	words := append(append(append([]string(nil), wrap...), binary), args...)
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Env = append(os.Environ(), roleVariable+"="+role, Collecting(),
		"GORACE="+os.Getenv("GORACE")+" atexit_sleep_ms=0") // or the race detector waits a second at every exit
	return cmd, nil
}

// Collecting is for the environment of programs that families start: they collect garbage a
// quarter as often as others do, or as the environment says. Little of theirs lives long,
// and it took up to a third of their time.
func Collecting() string { return "GOGC=" + cmp.Or(os.Getenv("GOGC"), "400") }

// Start starts a child. The caller ends it by Kill or by letting it end, and calls Rest.
func Start(ctx context.Context, wrap []string, role string, args ...string) (*Child, error) {
	ctx, kill := context.WithCancel(ctx)
	cmd, err := Command(ctx, wrap, role, args...)
	if err != nil {
		kill()
		return nil, err
	}
	c := &Child{Cmd: cmd, Kill: kill}
	cmd.Stderr = &c.err
	if c.In, err = cmd.StdinPipe(); err == nil {
		var out io.ReadCloser
		if out, err = cmd.StdoutPipe(); err == nil {
			c.lines = bufio.NewScanner(out)
			err = cmd.Start()
		}
	}
	if err != nil {
		kill()
		return nil, err
	}
	return c, nil
}

// Line is the next line of the child. When there is none it has ended, and the error says
// how.
func (c *Child) Line() (string, error) {
	if !c.lines.Scan() {
		err := c.Wait()
		return "", fmt.Errorf("the child ended: %v: %s", err, c.Stderr())
	}
	return c.lines.Text(), nil
}

// Rest reads what the child says until it ends, however it does, and waits for that.
func (c *Child) Rest() (lines []string) {
	for c.lines.Scan() {
		lines = append(lines, c.lines.Text())
	}
	_ = c.Wait()
	c.Kill()
	return lines
}

// Stderr is what the child wrote to its standard error, once it has ended.
func (c *Child) Stderr() string { return strings.TrimSpace(c.err.String()) }
