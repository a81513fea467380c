// Package jobctl builds and runs the command jobctl for the tests of engines.
package jobctl

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/gopawl/pawl/internal/race"
)

// Run runs the command with more variables in its environment, and returns what it prints and its
// exit code.
type Run func(t testing.TB, env []string, args ...string) (out, messages string, code int)

// Build builds the command. Its module must be beside the module of the test. Build skips the test
// outside of a checkout, and under the race detector.
func Build(t testing.TB) Run {
	t.Helper()
	race.SkipBuilt(t)
	source := filepath.Join("..", "cmd", "jobctl")
	if _, err := os.Stat(source); err != nil {
		t.Skip("this is no checkout: ", err)
	}
	path := filepath.Join(t.TempDir(), "jobctl")
	if out, err := exec.Command("go", "build", "-C", source, "-ldflags=-s -w", "-o", path, ".").CombinedOutput(); err != nil {
		t.Fatalf("build jobctl: %v\n%s", err, out)
	}
	return func(t testing.TB, env []string, args ...string) (string, string, int) {
		t.Helper()
		var out, messages bytes.Buffer
		if args[0] != "work" { // work does not take the flag
			args = append(args, "--timeout=1m")
		}
		c := exec.CommandContext(t.Context(), path, args...)
		c.Env, c.Stdout, c.Stderr = append(os.Environ(), env...), &out, &messages
		_ = c.Run() // the exit code shows the error
		return out.String(), messages.String(), c.ProcessState.ExitCode()
	}
}
