package flows

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"time"

	"github.com/gopawl/pawl/internal/torture/harness"
)

// Workflow kills a process that runs workflows, again and again on the same file.
var Workflow = &harness.Family{
	Name:  "workflow",
	Goals: "W1",
	Method: "SIGKILL of a process that runs random workflows (steps, retries, transactions, sleeps, signals, " +
		"children, branches, races, undo, restarts) while others control them; then every invariant, and each " +
		"journal compared with the reports of the process; in the end every run ends",
	Unit: "kills",
	PR:   200, Nightly: 10_000, Share: 20,
	Parallel: 4 * runtime.GOMAXPROCS(0), // runs spend most of their time waiting: for retries, for one another, for the kill
	Prepare:  harness.Each(kill),
}

func init() { harness.Role("workflow-work", work) }

// kills is the number of kills for one file.
const kills = 6

// kill lets a few processes work on one file, one after another, and kills all but the last.
func kill(t *harness.Try) error {
	path := filepath.Join(t.Dir, "jobs.db")
	s := newStory()
	for range kills {
		lines, _, err := t.KillWithin(250*time.Millisecond, 5, "workflow-work", path, t.Rand.Uint64(), "")
		if err != nil {
			return err
		}
		if err := s.after(t.Ctx, path, lines); err != nil {
			return err
		}
		t.Count(1)
	}
	c, err := harness.Start(t.Ctx, nil, "workflow-work", path, t.Rand.Uint64(), toTheEnd)
	if err != nil {
		return err
	}
	lines, err := c.End()
	if err := cmp.Or(t.Ctx.Err(), err); err != nil {
		return err
	}
	if err := s.after(t.Ctx, path, lines); err != nil {
		return err
	}
	return s.allEnded()
}

// toTheEnd makes a process continue all runs until they end.
const toTheEnd = "to-the-end"

var errDiffer = errors.New("the story of the process and the file differ")

func differ(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errDiffer, fmt.Sprintf(format, args...))
}
