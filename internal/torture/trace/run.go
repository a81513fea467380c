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

// Wrap is the command that runs another one and writes its calls to a file. More are
// arguments for strace, such as calls to let fail.
func Wrap(file string, more ...string) []string {
	return append(append([]string{
		"strace", "-f", "--seccomp-bpf", "-qq", "-xx", "-s", "1000000000", "-e", "signal=none",
		"-e", "trace=" + strings.Join(known(), ","), "-o", file,
	}, more...), "--")
}

// known has a question mark before each call, which lets strace do without those that the
// processor does not have.
func known() []string {
	marked := make([]string, len(calls))
	for i, call := range calls {
		marked[i] = "?" + call
	}
	return marked
}

// AddFile is Add of what Wrap wrote.
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
		harness.Tell("traced")
		f, err := os.Create(args[0])
		if err != nil {
			return err
		}
		_ = f.Sync() // which may be made to fail
		return f.Close()
	})
}

// Missing says what this machine lacks for tracing, "" when nothing. It tries.
var Missing = sync.OnceValue(func() string { return missing(false) })

// MissingInjection says what it lacks for tracing with calls that are made to fail.
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

// try traces a process that tells a line and syncs a file.
func try(fails bool, more ...string) error {
	dir, err := os.MkdirTemp("", "pawl-torture-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return err
	}
	folder := filepath.Join(dir, "folder")
	if err := os.Mkdir(folder, 0o700); err != nil {
		return err
	}
	l, err := NewLog(folder)
	if err != nil {
		return err
	}
	file := filepath.Join(dir, "calls")
	c, err := harness.Start(context.Background(), Wrap(file, more...), probe, filepath.Join(folder, "file"))
	if err != nil {
		return err
	}
	if _, err := c.End(); err != nil {
		return err
	}
	if err := l.AddFile(file); err != nil {
		return err
	}
	if told := l.Story(len(l.Events)); len(told) != 1 || told[0] != "traced" {
		return fmt.Errorf("it saw %q", told)
	}
	if last := l.Events[len(l.Events)-1]; last.Kind != Sync || last.Failed != fails {
		return errors.New("it did not see the sync as it was")
	}
	return nil
}
