package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"sync"
	"time"

	"github.com/gopawl/pawl/bench/report"
	"github.com/gopawl/pawl/bench/system"
)

// ceilingName is the name of the ceiling among the systems.
const ceilingName = "ceiling"

// runner runs every chosen case on every chosen system.
type runner struct {
	size   size
	rounds int
	disk   string

	subject

	servers map[string]*system.Server
	absent  map[string]error // by the system's name: why it was not measured
	results report.Results
	load    string // of the machine before the run
}

// choose selects the cases and systems whose names match; an empty pattern matches all.
func (r *runner) choose(of subject, cases, only string) error {
	r.subject = of
	r.cases, r.systems = nil, nil
	matchCase, err := regexp.Compile(cases)
	if err != nil {
		return fmt.Errorf("-case: %w", err)
	}
	matchSystem, err := regexp.Compile(only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	for _, c := range of.cases {
		if r.size.has(&c) && matchCase.MatchString(c.name) {
			r.cases = append(r.cases, c)
		}
	}
	for _, s := range of.systems {
		if matchSystem.MatchString(s.Name) {
			r.systems = append(r.systems, s)
		}
	}
	switch {
	case len(r.cases) == 0:
		return fmt.Errorf("-case %q matches no case", cases)
	case len(r.systems) == 0:
		return fmt.Errorf("-only %q matches no system", only)
	}
	r.rounds = cmp.Or(r.rounds, r.size.rounds)
	return nil
}

// systems are all that can be compared.
func systems() []system.System {
	all := []system.System{
		system.Pawl(),
		{Name: ceilingName, Durability: system.Synced, Settings: "bare bbolt, one goroutine"},
	}
	all = append(all, system.Embedded()...)
	return append(all, system.Servers()...)
}

// run measures. A system that fails is reported and skipped; the others continue.
func (r *runner) run(ctx context.Context) (report.Results, error) {
	dir, err := os.MkdirTemp(r.disk, "pawl-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o711); err != nil { // a server may run as another user
		return nil, err
	}
	r.load = report.LoadAverage()
	defer r.stopServers()
	r.startServers(ctx, dir)
	for _, c := range r.cases {
		rounds := r.rounds
		if c.once {
			rounds = 1
		}
		for round := range rounds {
			if !terminal() {
				fmt.Fprintf(os.Stderr, "%4.0f s  %s, round %d of %d\n", time.Since(began).Seconds(), c.name, round+1, rounds)
			}
			for _, s := range r.systems {
				if r.absent[s.Name] != nil || ctx.Err() != nil {
					continue
				}
				progress("%s, round %d of %d: %s", c.name, round+1, rounds, s.Name)
				samples, err := r.trial(ctx, dir, c, s)
				if err != nil && ctx.Err() == nil {
					err = fmt.Errorf("%s on %s: %w", c.name, s.Name, err)
					fmt.Fprintln(os.Stderr, "\rbench:", err)
				}
				if err == nil {
					r.add(c, s, samples)
				}
			}
		}
	}
	progress("")
	return r.results, ctx.Err()
}

// trial runs a case on one system, in an empty folder.
func (r *runner) trial(ctx context.Context, dir string, c benchCase, s system.System) (_ []sample, err error) {
	t := &trial{size: r.size, ctx: ctx, system: s, server: r.servers[s.Name], metered: r.metered}
	if t.dir, err = os.MkdirTemp(dir, "trial-"); err != nil {
		return nil, err
	}
	defer os.RemoveAll(t.dir)
	runtime.GC() // what the system before left behind
	switch {
	case s.Name == ceilingName:
		if c.ceiling != nil {
			err = c.ceiling(t)
		}
	case c.peers != nil:
		var q system.Queue
		if q, err = s.Open(ctx, t.dir, r.servers[s.Name]); err == nil {
			err = errors.Join(c.peers(t, q), q.Close())
		}
	case c.own != nil && s.Name == system.Pawl().Name:
		err = c.own(t)
	}
	if err == nil {
		err = measured(t.samples)
	}
	return t.samples, err
}

// measured refuses a division by zero, such as the rate of a drain that took no time: JSON cannot
// encode it.
func measured(samples []sample) error {
	for _, s := range samples {
		if math.IsNaN(s.value) || math.IsInf(s.value, 0) {
			return fmt.Errorf("%q came out as %v; measure for longer", s.metric, s.value)
		}
	}
	return nil
}

func (r *runner) add(c benchCase, s system.System, samples []sample) {
	for _, one := range samples {
		name := c.name
		if one.metric != "" {
			name += "/" + one.metric
		}
		r.results.Add(s.Name, name, one.unit, s.Durability, one.value)
	}
}

func (r *runner) startServers(ctx context.Context, dir string) {
	r.servers, r.absent = make(map[string]*system.Server), make(map[string]error)
	services := make(map[string]func() (*system.Server, error))
	for _, s := range r.systems {
		if s.Start == nil {
			continue
		}
		progress("starting what %s needs", s.Name)
		name := cmp.Or(s.Service, s.Name)
		if services[name] == nil {
			services[name] = sync.OnceValues(func() (*system.Server, error) {
				data := filepath.Join(dir, name)
				if err := os.Mkdir(data, 0o755); err != nil {
					return nil, err
				}
				return s.Start(ctx, data)
			})
		}
		var err error
		if r.servers[s.Name], err = services[name](); err != nil {
			r.absent[s.Name] = err
			fmt.Fprintf(os.Stderr, "\rbench: %s is left out: %v\n", s.Name, err)
		}
	}
}

func (r *runner) stopServers() {
	stopped := make(map[*system.Server]bool)
	for name, server := range r.servers {
		if server == nil || stopped[server] {
			continue
		}
		stopped[server] = true
		if err := server.Stop(); err != nil {
			fmt.Fprintf(os.Stderr, "bench: stop what %s needs: %v\n", name, err)
		}
	}
}

var began = time.Now()

// progress shows what is going on, on a terminal in one line.
func progress(format string, args ...any) {
	if !terminal() {
		return
	}
	fmt.Fprintf(os.Stderr, "\r\x1b[K")
	if format != "" {
		fmt.Fprintf(os.Stderr, "%4.0f s  "+format, append([]any{time.Since(began).Seconds()}, args...)...)
	}
}

func terminal() bool {
	info, err := os.Stderr.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
