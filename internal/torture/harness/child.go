package harness

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// Some families start the program again as a child, with a role in its environment. A child
// reports lines on its standard output, each in one write that a pipe takes whole. So
// neither side waits for a time to pass, and a kill never cuts a line.
const roleVariable = "PAWL_TORTURE_ROLE"

var roles = make(map[string]func(Args) error)

// Role registers what a child of that name does. Families call it before Main.
func Role(name string, run func(args Args) error) { roles[name] = run }

// Args are the arguments of a role. They come from this program, so a wrong one panics.
type Args []string

// Uint is the argument at i as a number, a seed for example.
func (a Args) Uint(i int) uint64 {
	n, err := strconv.ParseUint(a[i], 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}

// Int is the argument at i as a number.
func (a Args) Int(i int) int { return int(a.Uint(i)) }

// Main runs the role that the environment names, if any, and then does not return. Programs
// and tests that run families call it first.
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

// Emit sends a line from a child to its family.
func Emit(words ...any) { _, _ = os.Stdout.WriteString(fmt.Sprintln(words...)) }

// Child is a process in a role.
type Child struct {
	*exec.Cmd
	Kill  context.CancelFunc // SIGKILL
	In    io.WriteCloser
	lines *bufio.Scanner
	err   bytes.Buffer
}

// Command returns the command that starts a child. Wrap is a command that runs it, such as a
// tracer, or nil.
func Command(ctx context.Context, wrap []string, role string, args ...any) (*exec.Cmd, error) {
	binary, err := os.Executable()
	if err != nil {
		return nil, err
	}
	words := append(append([]string(nil), wrap...), binary)
	for _, arg := range args {
		words = append(words, fmt.Sprint(arg))
	}
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Env = append(os.Environ(), roleVariable+"="+role, Collecting(),
		"GORACE="+os.Getenv("GORACE")+" atexit_sleep_ms=0") // or the race detector waits a second at every exit
	return cmd, nil
}

// Collecting is an environment variable for programs that families start: they collect
// garbage a quarter as often as the default, unless the environment sets GOGC. Little of
// their memory lives long, and collection took up to a third of their time.
func Collecting() string { return "GOGC=" + cmp.Or(os.Getenv("GOGC"), "400") }

// Start starts a child. The caller calls Rest, End or KillAfter, whether it kills it or not.
func Start(ctx context.Context, wrap []string, role string, args ...any) (*Child, error) {
	ctx, kill := context.WithCancel(ctx)
	cmd, err := Command(ctx, wrap, role, args...)
	if err != nil {
		kill()
		return nil, err
	}
	return StartCommand(cmd, kill)
}

// mostLine is the length of the longest line that a child may write.
const mostLine = 64 << 20

// StartCommand starts a command that reads and writes lines as a child does. Kill ends it.
func StartCommand(cmd *exec.Cmd, kill context.CancelFunc) (_ *Child, err error) {
	c := &Child{Cmd: cmd, Kill: kill}
	cmd.Stderr = &c.err
	if c.In, err = cmd.StdinPipe(); err == nil {
		var out io.ReadCloser
		if out, err = cmd.StdoutPipe(); err == nil {
			c.lines = bufio.NewScanner(out)
			c.lines.Buffer(nil, mostLine)
			err = cmd.Start()
		}
	}
	if err != nil {
		kill()
		return nil, err
	}
	return c, nil
}

// Line returns the next line of the child. Without one the child has ended, and the error
// says how.
func (c *Child) Line() (string, error) {
	if !c.lines.Scan() {
		err := c.Wait()
		return "", fmt.Errorf("the child ended: %v: %s", err, c.Stderr())
	}
	return c.lines.Text(), nil
}

// Rest reads the lines of the child until it ends, in any way.
func (c *Child) Rest() (lines []string) {
	for c.lines.Scan() {
		lines = append(lines, c.lines.Text())
	}
	_ = c.Wait()
	c.Kill()
	return lines
}

// End is Rest for a child that writes nothing to its standard error.
func (c *Child) End() (lines []string, err error) {
	lines = c.Rest()
	if text := c.Stderr(); text != "" {
		err = errors.New(text)
	}
	return lines, err
}

// KillAfter is End for a child that it kills after a time, if it has not ended by then.
func (c *Child) KillAfter(d time.Duration) (lines []string, err error) {
	defer time.AfterFunc(d, c.Kill).Stop()
	return c.End()
}

// Stderr is what the child wrote to its standard error. The child has ended.
func (c *Child) Stderr() string { return strings.TrimSpace(c.err.String()) }

// Lines splits the output of a child.
func Lines(output string) []string {
	if output = strings.TrimSuffix(output, "\n"); output != "" {
		return strings.Split(output, "\n")
	}
	return nil
}
