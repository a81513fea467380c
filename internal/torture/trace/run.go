package trace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/gopawl/pawl/internal/torture/harness"
)

// Wrap returns the command that runs another command and writes its calls to a file. More
// has arguments for strace, such as calls to fail.
func Wrap(file string, more ...string) []string {
	return append(append([]string{
		"strace", "-f", "--seccomp-bpf", "-qq", "-xx", "-s", "1000000000", "-e", "signal=none",
		"-e", "trace=" + strings.Join(known(), ","), "-o", file,
	}, more...), "--")
}

// known returns the calls with question marks, so that strace ignores calls that the
// processor does not have.
func known() []string {
	marked := make([]string, len(calls))
	for i, call := range calls {
		marked[i] = "?" + call
	}
	return marked
}

// AddFile is Add for the file of Wrap.
func (l *Log) AddFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(l.Add(f), f.Close())
}

const probe = "trace-probe"

func init() {
	harness.Role(probe, func(args harness.Args) error {
		harness.Emit("traced")
		f, err := os.Create(args[0])
		if err != nil {
			return err
		}
		_ = f.Sync() // a test may make it fail
		return f.Close()
	})
}

// Missing reports what this machine lacks for tracing, "" for nothing. It runs a trace.
var Missing = sync.OnceValue(func() string { return missing(false) })

// MissingInjection is Missing for traces that make calls fail.
var MissingInjection = sync.OnceValue(func() string { return missing(true, "-e", "inject=fsync:error=EIO") })

func missing(fails bool, more ...string) string {
	if _, err := exec.LookPath("strace"); err != nil {
		return "needs strace"
	}
	if err := try(fails, more...); err != nil {
		return fmt.Sprintf("strace does not trace here: %v", err)
	}
	return ""
}

// try traces a process that prints a line and syncs a file.
func try(fails bool, more ...string) error {
	dir, err := os.MkdirTemp("", "pawl-torture-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	l, err := NewWork(dir)
	if err != nil {
		return err
	}
	file := filepath.Join(dir, "calls")
	c, err := harness.Start(context.Background(), Wrap(file, more...), probe, filepath.Join(l.Folder, "file"))
	if err != nil {
		return err
	}
	if _, err := c.End(); err != nil {
		return err
	}
	if err := l.AddFile(file); err != nil {
		return err
	}
	if lines := l.Story(len(l.Events)); len(lines) != 1 || lines[0] != "traced" {
		return fmt.Errorf("it saw %q", lines)
	}
	if last := l.Events[len(l.Events)-1]; last.Kind != Sync || last.Failed != fails {
		return errors.New("it recorded another result of the sync")
	}
	return nil
}
