package planted

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"time"

	"github.com/gopawl/pawl/internal/torture/harness"
)

// role is the role of a program with faults: it runs one family until that finds something.
const role = "planted-hunt"

// The verdicts of a program in that role, each the start of one line.
const (
	found   = "found"   // followed by the violation
	nothing = "nothing" // followed by the number of tries
	untried = "untried" // followed by the reason
)

// huntLimit is how long one hunt may take.
const huntLimit = 2 * time.Minute

// patience is how long an interrupted program may take to end before it is killed. It ends
// its own child processes first.
const patience = 10 * time.Second

// hunt is the role. Its arguments are a family, its units, a seed and a step.
func hunt(families map[string]*harness.Family, args []string) error {
	if len(args) != 4 {
		return errors.New("the role needs a family, a number of units, a seed and a step")
	}
	f := families[args[0]]
	if f == nil {
		return fmt.Errorf("there is no family %q", args[0])
	}
	units, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	seed, err := strconv.ParseUint(args[2], 10, 64)
	if err != nil {
		return err
	}
	step, err := strconv.ParseUint(args[3], 10, 64)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	result := f.Run(ctx, harness.Plan{Goal: units, Until: time.Now().Add(huntLimit), Seed: seed, Step: step, First: true})
	harness.Tell(verdict(&result))
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
	cmd, err := harness.Command(ctx, nil, role, h.Family, strconv.Itoa(h.Units), strconv.FormatUint(seed, 10), strconv.FormatUint(h.Step, 10))
	if err != nil {
		return "", err
	}
	cmd.Path, cmd.Args[0] = program, program
	cmd.Env = append(cmd.Env, variable+"="+fault, harness.MemoryVariable+"="+folder)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = patience
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
