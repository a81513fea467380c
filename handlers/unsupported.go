//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package handlers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"time"

	"github.com/gopawl/pawl"
)

// Commands do not run on these systems: the standard library cannot end all processes that a
// command started. Only openState is ever called.

type state struct{}

func openState(string) (*state, []Orphan, error) {
	return nil, nil, fmt.Errorf("commands run on Linux, macOS and the BSDs, not on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

func (*state) close() error { return nil }

func (*state) begin(context.Context, pawl.ID) (*hold, error) { return nil, errors.ErrUnsupported }

type hold struct{}

func (*hold) mark() string { return "" }

func (*hold) end(bool) error { return nil }

type process struct{ err error }

func start(*exec.Cmd, *hold) (*process, error) { return nil, errors.ErrUnsupported }

func (*process) wait(context.Context, time.Duration) bool { return false }

func signalOf(*os.ProcessState) string { return "" }

func neverStarts(error) bool { return false }
