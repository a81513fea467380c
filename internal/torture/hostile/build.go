package hostile

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"github.com/gopawl/pawl/internal/torture/harness"
)

//go:embed driver/driver.go
var driverSource []byte

const drivenVariable = "PAWL_TORTURE_DRIVEN"

// buildJobctl builds the command with the driver among its files. An overlay adds it, so the
// source tree stays unchanged.
func buildJobctl(ctx context.Context, dir string) (binary string, err error) {
	source, err := harness.Source(ctx)
	if err != nil {
		return "", err
	}
	jobctl, driver := filepath.Join(source, "cmd", "jobctl"), filepath.Join(dir, "driver.go") // a separate module
	if err := os.WriteFile(driver, driverSource, 0o600); err != nil {
		return "", err
	}
	overlay, err := harness.Overlay(dir, map[string]string{filepath.Join(jobctl, "torture_driver.go"): driver})
	if err != nil {
		return "", err
	}
	binary = filepath.Join(dir, "jobctl")
	if runtime.GOOS == "windows" {
		binary += ".exe"
	}
	return binary, harness.Build(ctx, jobctl, "build", harness.Lean, "-tags", "pawl_torture", "-overlay", overlay, "-o", binary, ".")
}

// driven is a process that runs command lines of jobctl.
type driven struct {
	*harness.Child
	commands []string // all commands of jobctl
}

func startDriven(ctx context.Context, binary, dir string) (*driven, error) {
	ctx, kill := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, binary)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), drivenVariable+"=1", harness.Collecting())
	c, err := harness.StartCommand(cmd, kill)
	if err != nil {
		return nil, fmt.Errorf("start jobctl: %w", err)
	}
	d := &driven{Child: c}
	return d, d.Read(&d.commands)
}

// answer is the result of a command line. Its fields are those of the driver.
type answer struct {
	Code           int
	Stdout, Stderr []byte
	Panic          string
	Took           time.Duration
	Bytes          uint64
}

// run runs a command line. An error says that the process has ended, so the next command line
// needs another one.
func (d *driven) run(args []string) (a answer, err error) {
	if err = d.Ask(mostWall, args, &a); err != nil {
		d.close()
		err = fmt.Errorf("it took the process down: %w: %s", err, d.Stderr())
	}
	return a, err
}

// close ends the process.
func (d *driven) close() {
	_ = d.In.Close()
	d.Rest()
}
