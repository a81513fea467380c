package sim

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gopawl/pawl/internal/torture/harness"
)

// CaseVariable names a file with a case that the families try in place of those of seeds:
// the one that was kept of a violation, for example.
const CaseVariable = "PAWL_TORTURE_CASE"

// Random is the family of random calls, crashes and stalls.
var Random = &harness.Family{
	Name:  "simulate",
	Goals: "R8",
	Method: "random calls, crashes, stalls, and several workers in virtual time; each job is compared with a " +
		"model, then a drain, and every event has a cause",
	Unit: "seeds",
	PR:   5000, Nightly: 200_000, Share: 125,
	Prepare: func(env *harness.Env) (func(*harness.Try) error, error) { return prepare(env, "simulate"), nil },
}

// Clock is the family of clocks that are wrong.
var Clock = &harness.Family{
	Name:   "clock",
	Goals:  "R9",
	Method: "the wall clock steps by 1 s to 100 years in both directions, or stops, during such a simulation",
	Unit:   "schedules",
	PR:     1000, Nightly: 50_000, Share: 14,
	Prepare: func(env *harness.Env) (func(*harness.Try) error, error) { return prepare(env, "clock"), nil },
}

// caseTimeout is how long a child may take for one case, shrinking included, before it hangs.
const caseTimeout = 2 * time.Minute

// shrinkTime bounds how long a case that fails is shrunk.
const shrinkTime = 15 * time.Second

// task is what a child is asked to do: the case of a seed, or one from a file.
type task struct {
	Family string
	Seed   uint64
	Case   string `json:",omitempty"`
	Dir    string
}

// answer is what it says then.
type answer struct{ Wrong string }

// prepare returns a try, which has a child carry out a case: virtual time is to be had in a
// test alone, which the child is. A child is used again and again.
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
		a, err := ask(c, task{family, t.Seed, file, t.Dir})
		if err != nil {
			c.Kill()
			c.Rest()
			return fmt.Errorf("%w: %s", err, truncate(c.Stderr()))
		}
		idle <- c
		if a.Wrong != "" {
			return errors.New(a.Wrong)
		}
		return nil
	}
}

// ask has a child carry out a case.
func ask(c *harness.Child, do task) (a answer, err error) {
	text, err := json.Marshal(do)
	if err != nil {
		return a, err
	}
	if _, err = c.In.Write(append(text, '\n')); err != nil {
		return a, err
	}
	watchdog := time.AfterFunc(caseTimeout, c.Kill)
	defer watchdog.Stop()
	line, err := c.Line()
	if err != nil {
		return a, fmt.Errorf("the simulation hangs, or took its process down: %w", err)
	}
	return a, json.Unmarshal([]byte(line), &a)
}

// carryOut makes and simulates the case of a task. One that fails is shrunk, and kept in the
// folder of the task.
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
	end := time.Now().Add(shrinkTime)
	c = Shrink(c, func(c *Case) bool {
		for range 2 { // since goroutines may run in another order
			if time.Now().After(end) {
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

// truncate bounds a text, which must fit into a line of a child.
func truncate(s string) string {
	const most = 6000
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}
