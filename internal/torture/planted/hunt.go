package planted

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"time"

	"github.com/gopawl/pawl/internal/torture/harness"
)

// role is the role of a program with faults: it runs one family until that finds something.
const role = "planted-hunt"

// The verdicts of a program in that role. Each is the start of a line.
const (
	found   = "found"   // followed by the violation
	nothing = "nothing" // followed by the number of tries
	untried = "untried" // followed by the reason
)

// huntLimit is how long one hunt may take.
const huntLimit = 2 * time.Minute

// endTimeout is how long an interrupted program may take to end before it is killed. It ends
// its own child processes first.
const endTimeout = 10 * time.Second

// hunt is the role. Its arguments are a family, its units, a seed and a step.
func hunt(families map[string]*harness.Family, args harness.Args) error {
	f := families[args[0]]
	if f == nil {
		return fmt.Errorf("there is no family %q", args[0])
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	result := f.Run(ctx, harness.Plan{Goal: args.Int(1), Time: huntLimit, Seed: args.Uint(2), Step: args.Uint(3), First: true})
	harness.Emit(verdict(&result))
	return nil
}

// verdict returns the line for a result.
func verdict(r *harness.Result) string {
	switch {
	case r.Missing != "":
		return untried + " " + r.Missing
	case r.Violations > 0:
		err := r.First[0].Err
		text, _, _ := strings.Cut(err.Error(), "\n")
		if errors.Is(err, harness.ErrUntried) {
			return untried + " " + text
		}
		return found + " " + text
	case r.Tried < r.Goal:
		return fmt.Sprintf("%s %d of %d %s before time was up", untried, r.Tried, r.Goal, r.Unit)
	}
	return fmt.Sprintf("%s in %d %s", nothing, r.Tried, r.Unit)
}

// start runs the role in a program, with a fault or "" for none, and returns its line. The
// program leaves its files in the folder.
func start(ctx context.Context, program, folder, fault string, h Hunt, seed uint64) (line string, err error) {
	cmd, err := harness.Command(ctx, nil, role, h.Family, h.Units, seed, h.Step)
	if err != nil {
		return "", err
	}
	cmd.Path, cmd.Args[0] = program, program
	cmd.Env = append(cmd.Env, variable+"="+fault, harness.MemoryVariable+"="+folder)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = endTimeout
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		return "", fmt.Errorf("family %s with fault %q: %w", h.Family, fault, err)
	}
	return strings.TrimSpace(string(out)), nil
}
