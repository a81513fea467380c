package harness

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gopawl/pawl/internal/torture/usage"
)

// Some families start the program again as a child, with a role in its environment. A child
// reports lines on its standard output. Each line is one write, which is atomic in a pipe.
// So neither side has to wait for a fixed time, and a kill never truncates a line.
const roleVariable = "PAWL_TORTURE_ROLE"

var roles = make(map[string]func(Args) error)

// Role registers what a child of that name does. Families call it before Main.
func Role(name string, run func(args Args) error) { roles[name] = run }

// Args are the arguments of a role. They come from this program, so a wrong argument panics.
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
	if err := Play(name, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Play runs a role in this process. A role that prepares its process for another role ends with it.
func Play(name string, args Args) error {
	run, ok := roles[name]
	if !ok {
		return fmt.Errorf("there is no role %q", name)
	}
	return run(args)
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
		"GORACE="+os.Getenv("GORACE")+" atexit_sleep_ms=0") // otherwise the race detector waits for a second at every exit
	return cmd, nil
}

// Collecting is an environment variable for programs that families start. They collect
// garbage a quarter as often as by default, unless the environment sets GOGC. Little of
// their memory lives long, and garbage collection took up to a third of their time.
func Collecting() string { return "GOGC=" + cmp.Or(os.Getenv("GOGC"), strconv.Itoa(collecting)) }

const collecting = 400

// CollectLess makes this process collect garbage as rarely as those.
func CollectLess() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(collecting)
	}
}

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

// Line returns the next line of the child. If there is none, the child has ended, and the error
// says how.
func (c *Child) Line() (string, error) {
	if !c.lines.Scan() {
		err := c.Wait()
		return "", fmt.Errorf("the child ended: %v: %s", err, c.Stderr())
	}
	return c.lines.Text(), nil
}

// Ask sends a question to a child as a line of JSON, and reads its answer. It kills a child that
// takes longer than limit.
func (c *Child) Ask(limit time.Duration, question, answer any) error {
	text, err := json.Marshal(question)
	if err != nil {
		return err
	}
	timer := time.AfterFunc(limit, c.Kill)
	if _, err = c.In.Write(append(text, '\n')); err == nil {
		err = c.Read(answer)
	}
	if !timer.Stop() {
		return fmt.Errorf("it did not end within %v", limit)
	}
	return err
}

// Read reads the next line of a child as JSON.
func (c *Child) Read(to any) error {
	line, err := c.Line()
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(line), to)
}

// Follow passes the first word and the rest of each line of a child to hear until hear is done
// or fails, and then ends the child. It kills a child that is silent for too long. Its error is
// ErrEnded when the child has ended before.
func (c *Child) Follow(silence time.Duration, hear func(word, rest string) (done bool, err error)) error {
	defer func() {
		c.Kill()
		c.Rest()
	}()
	timer := time.AfterFunc(silence, c.Kill)
	defer timer.Stop()
	for {
		line, err := c.Line()
		if !timer.Reset(silence) && err != nil {
			err = fmt.Errorf("no end in %v", silence)
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrEnded, err)
		}
		word, rest, _ := strings.Cut(line, " ")
		if done, err := hear(word, rest); done || err != nil {
			return err
		}
	}
}

// ErrEnded is the error of Follow if the child has ended.
var ErrEnded = errors.New("it took the process down")

// EmitError sends an error from a child to its family, in one line that starts with a word.
func EmitError(word string, err error) {
	const most = 16 << 10
	text := err.Error()
	Emit(word, strconv.Quote(text[:min(len(text), most)]))
}

// ErrorOf returns the error of a line of EmitError, without the word.
func ErrorOf(rest string) error {
	text, err := strconv.Unquote(rest)
	if err != nil {
		return fmt.Errorf("the child printed the error %s: %w", rest, err)
	}
	return errors.New(text)
}

// Rest reads the lines of the child until the child ends, in any way.
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

// Up is the first line of a child that KillWithin kills, when its setup is done.
const Up = "up"

// KillWithin starts a child in a role and kills it at a random time. The time begins with its
// line Up. In one of early tries, it begins with the start of the child; an early of 0 means
// never. It returns the other lines of the child, and whether the kill came before its end.
func (t *Try) KillWithin(within time.Duration, early int, role string, args ...any) (lines []string, killed bool, err error) {
	c, err := Start(t.Ctx, nil, role, args...)
	if err != nil {
		return nil, false, err
	}
	if early == 0 || t.Rand.IntN(early) > 0 {
		if _, err := c.Line(); err != nil {
			return nil, false, err
		}
	}
	lines, err = c.KillAfter(time.Duration(t.Rand.Int64N(int64(within))))
	if len(lines) > 0 && lines[0] == Up {
		lines = lines[1:]
	}
	return lines, err == nil && !c.ProcessState.Success(), err
}

// KillAfter is End for a child that it kills after a time, if it has not ended by then.
func (c *Child) KillAfter(d time.Duration) (lines []string, err error) {
	defer time.AfterFunc(d, c.Kill).Stop()
	return c.End()
}

// Stderr is what the child wrote to its standard error. The child has ended.
func (c *Child) Stderr() string { return strings.TrimSpace(c.err.String()) }

// EndAfter ends this process, and prints the stacks of its goroutines, if it uses more CPU time
// than limit, or hardly any CPU time for that long. It does not limit elapsed time, since a
// process makes little progress on a busy machine. Stop ends the watch.
func EndAfter(limit time.Duration) (stop func()) {
	stopped := make(chan struct{})
	go func() {
		began, last, idle := usage.CPU(), usage.CPU(), time.Duration(0)
		pause := time.NewTicker(limit / 10)
		defer pause.Stop()
		for {
			select {
			case <-stopped:
				return
			case <-pause.C:
			}
			now := usage.CPU()
			if idle += limit / 10; now-last > limit/1000 {
				last, idle = now, 0
			}
			if now-began > limit || idle >= limit {
				stacks := make([]byte, 64<<10)
				fmt.Fprintf(os.Stderr, "it did not end within %v of CPU time, or stood still for as long:\n%s\n", limit, stacks[:runtime.Stack(stacks, true)])
				os.Exit(1)
			}
		}
	}()
	return sync.OnceFunc(func() { close(stopped) })
}

// Lines splits the output of a child.
func Lines(output string) []string {
	if output = strings.TrimSuffix(output, "\n"); output != "" {
		return strings.Split(output, "\n")
	}
	return nil
}
