package workflows

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// A trial runs in a process of its own, so that memory, processor time and syncs are those
// of one engine. Such a child is this program with the trial in its environment and the
// folder as its argument; it prints its figures as JSON. When its parent is gone its input
// ends, and so does it.
const trialVariable = "PAWL_WORKFLOWS_TRIAL"

// tooLong is how long a child may take, besides its window.
const tooLong = 3 * time.Minute

// Child runs the trial of this process, if it has one.
func Child() bool {
	text := os.Getenv(trialVariable)
	if text == "" {
		return false
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
	var t trial
	err := json.Unmarshal([]byte(text), &t)
	if err == nil && len(os.Args) != 2 {
		err = errors.New("one folder is expected")
	}
	var f figures
	if err == nil {
		f, err = t.measure(context.Background(), os.Args[1])
	}
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(f)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "bench: %s: %v\n", t.Engine, err)
		os.Exit(1)
	}
	return true
}

// start runs the trial in a child and in an empty folder. The words of a program that is
// to run the child stand before it.
func (t trial) start(ctx context.Context, dir string, before ...string) (f figures, err error) {
	self, err := os.Executable()
	if err != nil {
		return f, err
	}
	text, err := json.Marshal(t)
	if err != nil {
		return f, err
	}
	ctx, cancel := context.WithTimeout(ctx, tooLong+t.Window)
	defer cancel()
	words := append(before, self, dir)
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Env = append(os.Environ(), trialVariable+"="+string(text))
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return f, err
	}
	// The child of a tracer that was killed ends by the end of its input.
	cmd.Cancel = func() error { return errors.Join(stdin.Close(), cmd.Process.Kill()) }
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return f, fmt.Errorf("%w: %s", err, lastLines(stderr.String()))
	}
	if err := json.Unmarshal(stdout.Bytes(), &f); err != nil {
		return f, fmt.Errorf("the figures of the child: %w: %q", err, stdout.String())
	}
	if f.Workflows == 0 {
		return f, errors.New("no workflow ended in the window")
	}
	return f, nil
}

// lastLines is the end of what a child complained of.
func lastLines(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-5):], "; ")
}
