package hostile

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/gopawl/pawl/internal/torture/harness"
)

//go:embed driver/driver.go
var driverSource []byte

const drivenVariable = "PAWL_TORTURE_DRIVEN"

// buildJobctl builds the command with the driver among its files, by an overlay: the source
// stays as it is.
func buildJobctl(ctx context.Context, dir string) (binary string, err error) {
	source, err := harness.Source(ctx)
	if err != nil {
		return "", err
	}
	driver, overlay := filepath.Join(dir, "driver.go"), filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(driver, driverSource, 0o600); err != nil {
		return "", err
	}
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{
		filepath.Join(source, "cmd", "jobctl", "torture_driver.go"): driver,
	}})
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(overlay, replace, 0o600); err != nil {
		return "", err
	}
	binary = filepath.Join(dir, "jobctl")
	if runtime.GOOS == "windows" {
		binary += ".exe"
	}
	jobctl := filepath.Join(source, "cmd", "jobctl") // a module of its own
	return binary, harness.Build(ctx, jobctl, "build", "-tags", "pawl_torture", "-overlay", overlay, "-o", binary, ".")
}

// driven is a process that carries out command lines of jobctl.
type driven struct {
	kill     context.CancelFunc
	cmd      *exec.Cmd
	in       io.WriteCloser
	out      *bufio.Reader
	err      strings.Builder
	commands []string // that there are
}

func startDriven(ctx context.Context, binary, dir string) (*driven, error) {
	ctx, kill := context.WithCancel(ctx)
	d := &driven{kill: kill, cmd: exec.CommandContext(ctx, binary)}
	d.cmd.Dir, d.cmd.Env, d.cmd.Stderr = dir, append(os.Environ(), drivenVariable+"=1", harness.Collecting()), &d.err
	err := d.start()
	if err != nil {
		kill()
		return nil, fmt.Errorf("start jobctl: %w", err)
	}
	return d, nil
}

func (d *driven) start() (err error) {
	if d.in, err = d.cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	d.out = bufio.NewReader(out)
	if err := d.cmd.Start(); err != nil {
		return err
	}
	return d.hear(&d.commands)
}

// hear takes a line that the process says.
func (d *driven) hear(to any) error {
	line, err := d.out.ReadBytes('\n')
	if err != nil {
		return err
	}
	return json.Unmarshal(line, to)
}

// answer is what became of a command line; the fields are those of the driver.
type answer struct {
	Code           int
	Stdout, Stderr []byte
	Panic          string
	Took           time.Duration
	Bytes          uint64
}

// run carries out a command line. An error says that the process died or had to be ended,
// and the next command line needs another one.
func (d *driven) run(args []string) (a answer, err error) {
	line, err := json.Marshal(args)
	if err != nil {
		return a, err
	}
	hung := time.AfterFunc(mostWall, d.kill)
	defer hung.Stop()
	if _, err = d.in.Write(append(line, '\n')); err == nil {
		if err = d.hear(&a); err == nil {
			return a, nil
		}
	}
	ended := !hung.Stop()
	err = errors.Join(err, d.close())
	if ended {
		return a, fmt.Errorf("it did not end within %v", mostWall)
	}
	return a, fmt.Errorf("it took the process down: %w: %s", err, d.err.String())
}

// close ends the process.
func (d *driven) close() error {
	_ = d.in.Close()
	err := d.cmd.Wait()
	d.kill()
	return err
}
