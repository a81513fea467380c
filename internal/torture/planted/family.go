package planted

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/gopawl/pawl/internal/torture/harness"
)

// Over returns the family that plants faults and hunts them with the given families. The
// program that it builds has the same families: call Over where they are listed.
func Over(families []*harness.Family) *harness.Family {
	byName := make(map[string]*harness.Family)
	for _, f := range families {
		byName[f.Name] = f
	}
	harness.Role(role, func(args harness.Args) error { return hunt(byName, args) })
	return &harness.Family{
		Name:  "planted",
		Goals: "R12",
		Method: "faults planted in the queue; the family for each fault must find it, and without a fault finds " +
			"nothing",
		Unit:     "faults",
		PR:       len(faults),
		Nightly:  10 * len(faults),
		Share:    80,
		Parallel: parallel(),
		Missing:  func() string { return missing(byName) },
		Prepare:  func(env *harness.Env) (func(*harness.Try) error, error) { return prepare(env, faults) },
	}
}

// parallel is how many hunts run at the same time. Some faults show only as a hang, other hunts wait for
// kills and syncs, and a process that waits uses no CPU time.
func parallel() int { return 5 * runtime.GOMAXPROCS(0) }

// prepare builds the program, and requires that its families find nothing without a fault.
func prepare(env *harness.Env, faults []Fault) (func(*harness.Try) error, error) {
	program, err := buildProgram(env.Ctx, env.Dir, faults)
	if err != nil {
		return nil, err
	}
	p := planting{program, faults}
	if err := p.control(env); err != nil {
		return nil, err
	}
	return p.try, nil
}

// planting is the program with its faults.
type planting struct {
	program string
	faults  []Fault
}

// control runs each family without a fault, for a part of its shortest hunt. The long runs
// of the families show that the queue is sound. This shows that the build with planted
// faults is sound, too.
func (p planting) control(env *harness.Env) error {
	all := hunts(p.faults)
	for i := range all {
		all[i].Units = max(1, all[i].Units/partOfHunt)
	}
	errs := make([]error, len(all))
	var running sync.WaitGroup
	slots := make(chan struct{}, parallel())
	for i, h := range all {
		running.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			line, err := p.line(env.Ctx, filepath.Join(env.Dir, "control-"+h.Family), "", h, uint64(i))
			if err == nil && !strings.HasPrefix(line, nothing) {
				err = fmt.Errorf("family %s without a fault: %s", h.Family, line)
			}
			errs[i] = err
		})
	}
	running.Wait()
	return errors.Join(errs...)
}

// partOfHunt is the divisor of the hunts without a fault.
const partOfHunt = 5

// hunts returns the families of all faults by name, each with its shortest hunt.
func hunts(faults []Fault) (all []Hunt) {
	shortest := make(map[string]int)
	for _, f := range faults {
		for _, h := range f.By {
			if units, ok := shortest[h.Family]; !ok || h.Units < units {
				shortest[h.Family] = h.Units
			}
		}
	}
	for name, units := range shortest {
		all = append(all, Hunt{Family: name, Units: units})
	}
	slices.SortFunc(all, func(a, b Hunt) int { return strings.Compare(a.Family, b.Family) })
	return all
}

// try plants the fault that the seed selects.
func (p planting) try(t *harness.Try) error {
	f := p.faults[t.Seed%uint64(len(p.faults))]
	for _, h := range f.By {
		if err := p.hunted(t, f, h); err != nil {
			return err
		}
	}
	return nil
}

// chances is the number of hunts for a fault: tries are random, and many faults show only
// now and then.
const chances = 3

// hunted requires that a family finds a fault.
func (p planting) hunted(t *harness.Try, f Fault, h Hunt) error {
	last := ""
	for n := range uint64(chances) {
		seed := t.Rand.Uint64() >> 24
		if h.Seed != 0 {
			seed = h.Seed + 1000*n*max(h.Step, 1)
		}
		line, err := p.line(t.Ctx, filepath.Join(t.Dir, fmt.Sprint(h.Family, n)), f.Name, h, seed)
		switch {
		case err != nil:
			return err
		case strings.HasPrefix(line, found):
			return nil
		}
		last = line
	}
	return fmt.Errorf("fault %q (%s): family %s did not find it in %d hunts: %s", f.Name, f.Breaks, h.Family, chances, last)
}

// line runs a hunt in a temporary folder, and returns the verdict.
func (p planting) line(ctx context.Context, folder, fault string, h Hunt, seed uint64) (string, error) {
	if err := os.Mkdir(folder, 0o700); err != nil {
		return "", err
	}
	defer os.RemoveAll(folder)
	return start(ctx, p.program, folder, fault, h, seed)
}
