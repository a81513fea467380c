package sim

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gopawl/pawl/internal/torture/harness"
	"github.com/gopawl/pawl/internal/torture/usage"
)

// CaseVariable names a file with a case, such as the case of a violation. The families try it instead
// of the cases of seeds.
const CaseVariable = "PAWL_TORTURE_CASE"

// Random is the family of random calls, crashes and stalls.
var Random = &harness.Family{
	Name:  "simulate",
	Goals: "R8",
	Method: "random calls, crashes, stalls, and several workers in virtual time; each job is compared with a " +
		"model, then a drain, and every event has a cause",
	Unit: "seeds",
	PR:   5000, Nightly: 200_000, Share: 110,
	Prepare: func(env *harness.Env) (func(*harness.Try) error, error) { return prepare(env, "simulate"), nil },
}

// Clock is the family of wrong clocks.
var Clock = &harness.Family{
	Name:   "clock",
	Goals:  "R9",
	Method: "the wall clock steps by 1 s to 100 years in both directions, or stops, during such a simulation",
	Unit:   "schedules",
	PR:     1000, Nightly: 50_000, Share: 14,
	Prepare: func(env *harness.Env) (func(*harness.Try) error, error) { return prepare(env, "clock"), nil },
}

// caseTimeout is the time limit of a child for one case, including shrinking, on a busy machine.
// The child limits its own CPU time.
const caseTimeout = 10 * time.Minute

// shrinkTime bounds how long a case that fails is shrunk, in CPU time, because the machine may be busy.
const shrinkTime = 15 * time.Second

// task is a request to a child: the case of a seed, or one from a file. The answer is the
// violation, "" for none.
type task struct {
	Family string
	Seed   uint64
	Case   string `json:",omitempty"`
	Dir    string
}

// prepare returns the try. A child runs the case, because only a test has virtual time. A
// child takes many cases.
func prepare(env *harness.Env, family string) func(*harness.Try) error {
	idle := make(chan *harness.Child, 64)
	env.Cleanup(func() {
		for len(idle) > 0 {
			c := <-idle
			_ = c.In.Close()
			c.Rest()
		}
	})
	file := os.Getenv(CaseVariable)
	return func(t *harness.Try) error {
		var c *harness.Child
		select {
		case c = <-idle:
		default:
			var err error
			if c, err = harness.Start(t.Ctx, nil, role); err != nil {
				return err
			}
		}
		var wrong string
		if err := c.Ask(caseTimeout, task{family, t.Seed, file, t.Dir}, &wrong); err != nil {
			c.Kill()
			c.Rest()
			return fmt.Errorf("the simulation hangs, or its process died: %w: %s", err, truncate(c.Stderr()))
		}
		idle <- c
		if wrong != "" {
			return errors.New(wrong)
		}
		return nil
	}
}

// carryOut makes and simulates the case of a task. It shrinks a failing case and keeps it in
// the folder of the task.
func (do task) carryOut(simulate func(*Case) error) (wrong string) {
	c := Generate(do.Seed)
	if do.Family == "clock" {
		c = GenerateClock(do.Seed)
	}
	if do.Case != "" {
		var err error
		if c, err = Load(do.Case); err != nil {
			return err.Error()
		}
	}
	err := simulate(c)
	if err == nil {
		return ""
	}
	first, steps := err, len(c.Ops)
	end := usage.CPU() + shrinkTime
	c = Shrink(c, func(c *Case) bool {
		for range 2 { // because goroutines may run in another order
			if usage.CPU() > end {
				return false
			}
			if again := simulate(c); again != nil {
				err = again
				return true
			}
		}
		return false
	})
	path := filepath.Join(do.Dir, "case.json")
	if save := c.Save(path); save != nil {
		return fmt.Sprintf("%s; it could not be kept: %v", truncate(first.Error()), save)
	}
	return fmt.Sprintf("%s\nshrunk from %d steps to %d, which %s=%s repeats: %s", truncate(first.Error()), steps, len(c.Ops), CaseVariable, path, truncate(err.Error()))
}

// truncate shortens a text for a line of a child.
func truncate(s string) string {
	const most = 6000
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}
