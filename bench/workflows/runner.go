package workflows

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/gopawl/pawl/bench/report"
)

// size is the amount of work.
type size struct {
	rounds  int
	callers []int         // at a time
	window  time.Duration // of a trial by time
	count   int           // of workflows in a trial by number
}

var (
	fullSize  = size{rounds: 5, callers: []int{1, 16, 64}, window: 3 * time.Second, count: 500}
	quickSize = size{rounds: 1, callers: []int{1, 16}, window: 200 * time.Millisecond, count: 20}
)

// perCaller is the minimum mean of workflows for each caller in a trial by time. A slow engine gets a
// longer window for it.
const perCaller = 3

// Metrics.
const (
	throughput = "throughput"
	p50        = "p50"
	p99        = "p99"
	processor  = "processor"
	syncs      = "syncs"
	file       = "file"
	memory     = "memory"
)

type unit struct{ metric, unit string }

// units are the units of the metrics in display order.
var units = []unit{
	{throughput, "workflows/s"},
	{p50, "ms"},
	{p99, "ms"},
	{processor, "ms/workflow"},
	{syncs, "syncs/workflow"},
	{file, "KiB/workflow"},
	{memory, "MiB"},
}

// Runner runs every chosen engine with every number of callers.
type Runner struct {
	size
	disk     string
	profiles string // a folder, or empty

	engines  []engine
	results  report.Results
	failed   []failure
	untraced error  // why no syncs were counted
	load     string // of the machine before the run
}

// failure says why an engine has no figures with a number of callers.
type failure struct {
	engine  string
	callers int
	err     error
}

func (f failure) Error() string {
	return fmt.Sprintf("%s with %d at a time: %v", f.engine, f.callers, f.err)
}

// choose selects the engines whose names match; an empty pattern matches all but those on a server. A number of 0 means the
// default.
func (r *Runner) choose(only string, callers, rounds int) error {
	match, err := regexp.Compile(only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	all := engines()
	if only != "" {
		all = append(all, onServer()...)
	}
	for _, e := range all {
		if match.MatchString(e.name) {
			r.engines = append(r.engines, e)
		}
	}
	if len(r.engines) == 0 {
		return fmt.Errorf("-only %q matches no engine", only)
	}
	r.rounds = cmp.Or(rounds, r.size.rounds)
	if callers > 0 {
		r.callers = []int{callers}
	}
	return nil
}

// run measures. An engine that fails is reported and skipped in the rest of its case; the others
// continue.
//
// First come the trials by time, in rounds. Then each engine runs a trial by number under a tracer,
// with the same number of workflows. It measures what does not depend on the speed of the machine, and
// what grows with the number.
func (r *Runner) run(ctx context.Context) error {
	dir, err := os.MkdirTemp(r.disk, "pawl-workflows-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o711); err != nil { // a server may run as another user
		return err
	}
	r.load = report.LoadAverage()
	if _, err := tracer(""); err != nil {
		r.untraced = err
	}
	for round := range r.rounds {
		r.each(ctx, func(e engine, callers int) error {
			return r.byTime(ctx, dir, e, callers, round)
		})
	}
	r.each(ctx, func(e engine, callers int) error { return r.byNumber(ctx, dir, e, callers) })
	if ctx.Err() != nil {
		return errors.New("interrupted; nothing was written")
	}
	return nil
}

// each gives every engine its turn with every number of callers.
func (r *Runner) each(ctx context.Context, turn func(e engine, callers int) error) {
	for _, callers := range r.callers {
		for _, e := range r.engines {
			if ctx.Err() != nil || r.has(e, callers) {
				continue
			}
			if err := turn(e, callers); err != nil && ctx.Err() == nil {
				f := failure{e.name, callers, err}
				r.failed = append(r.failed, f)
				fmt.Fprintln(os.Stderr, "bench:", f)
			}
		}
	}
}

// has reports whether an engine has failed with this number of callers.
func (r *Runner) has(e engine, callers int) bool {
	return slices.ContainsFunc(r.failed, func(f failure) bool { return f.engine == e.name && f.callers == callers })
}

func (r *Runner) byTime(ctx context.Context, dir string, e engine, callers, round int) error {
	// What is under way at the borders of the window must be little of what is done in it.
	t := trial{Engine: e.name, Callers: callers, Window: r.window, Count: perCaller * callers}
	if r.profiles != "" {
		if err := os.MkdirAll(r.profiles, 0o755); err != nil {
			return err
		}
		t.Profile = filepath.Join(r.profiles, fmt.Sprintf("%s-%d-%d.pprof", e.name, callers, round+1))
	}
	return within(dir, func(dir string) error {
		f, err := t.start(ctx, dir)
		if err != nil {
			return err
		}
		n := float64(f.Workflows)
		r.add(e, callers, throughput, n/f.Took.Seconds())
		r.add(e, callers, p50, report.Milli(f.P50))
		r.add(e, callers, p99, report.Milli(f.P99))
		r.add(e, callers, processor, report.Milli(f.CPU)/n)
		return nil
	})
}

func (r *Runner) byNumber(ctx context.Context, dir string, e engine, callers int) error {
	t := trial{Engine: e.name, Callers: callers, Count: r.count}
	return within(dir, func(dir string) (err error) {
		var f figures
		var counted int
		if r.untraced != nil {
			f, err = t.start(ctx, dir)
		} else if f, counted, err = t.startTraced(ctx, dir); err == nil {
			r.add(e, callers, syncs, float64(counted)/float64(f.Workflows))
		}
		if err != nil {
			return err
		}
		size, err := folderSize(dir)
		if err != nil {
			return err
		}
		r.add(e, callers, file, float64(size)/1024/float64(f.All))
		r.add(e, callers, memory, float64(f.Memory)/(1<<20))
		return nil
	})
}

// within calls a function with an empty folder.
func within(dir string, do func(dir string) error) error {
	own, err := os.MkdirTemp(dir, "trial-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(own)
	if err := os.Chmod(own, 0o711); err != nil {
		return err
	}
	return do(own)
}

func (r *Runner) add(e engine, callers int, metric string, value float64) {
	i := slices.IndexFunc(units, func(u unit) bool { return u.metric == metric })
	r.results.Add(e.name, caseName(callers, metric), units[i].unit, e.durability, value)
}

// caseName names a metric with a number of callers among the results.
func caseName(callers int, metric string) string {
	return fmt.Sprintf("%d at a time/%s", callers, metric)
}

// folderSize is that of the files in a folder and below, in bytes.
func folderSize(dir string) (size int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	})
	return size, err
}
