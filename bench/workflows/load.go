package workflows

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/gopawl/pawl/bench/report"
)

// trial is one turn of one engine, in a process and a folder of its own.
type trial struct {
	Engine  string
	Callers int

	// The window is open for a time, and until so many workflows counted.
	Window time.Duration
	Count  int

	Profile string // a file for a CPU profile, or empty
}

// figures are what a trial measured.
type figures struct {
	Workflows int           // in the window
	All       int           // since the store was opened
	Took      time.Duration // the window
	CPU       time.Duration // of the process in the window
	P50, P99  time.Duration // from the start of a workflow to its result
	Memory    int64         // of the process at most, in bytes
}

// measure runs a trial in an empty folder.
func (t trial) measure(ctx context.Context, dir string) (f figures, err error) {
	all := slices.Concat(engines(), onServer())
	i := slices.IndexFunc(all, func(e engine) bool { return e.name == t.Engine })
	if i < 0 {
		return f, fmt.Errorf("no engine %q", t.Engine)
	}
	s, err := all[i].open(ctx, dir, t.Callers)
	if err != nil {
		return f, err
	}
	l := newLoad(s, t)
	err = l.run(ctx)
	if err = errors.Join(err, s.close()); err != nil {
		return f, err
	}
	f = l.figures()
	f.Memory, err = peakMemory()
	return f, err
}

// load runs a number of callers. Each starts a workflow, waits for its result and starts the next. The
// window opens when each has had one result, and results inside the window count.
type load struct {
	trial
	store store

	mu      sync.Mutex
	started int
	results int
	warm    int // callers that had a result
	times   []time.Duration
	opened  time.Time
	closed  time.Time
	cpu     time.Duration // at the opening, then in the window
	profile *os.File
}

func newLoad(s store, t trial) *load {
	return &load{trial: t, store: s}
}

// run returns when the window has closed and no workflow is running.
func (l *load) run(ctx context.Context) error {
	callers, ctx := errgroup.WithContext(ctx)
	for range l.Callers {
		callers.Go(func() error { return l.caller(ctx) })
	}
	return callers.Wait()
}

// caller is one that starts workflows until the window has closed.
func (l *load) caller(ctx context.Context) error {
	for first := true; ; first = false {
		n, ok := l.next()
		if !ok {
			return nil
		}
		began := time.Now()
		out, err := l.store.run(ctx, fmt.Sprintf("order-%d", n), n)
		switch {
		case err != nil:
			return fmt.Errorf("workflow %d: %w", n, err)
		case out != n+steps:
			return fmt.Errorf("workflow %d: its result is %d, not %d", n, out, n+steps)
		}
		if err := l.result(first, time.Since(began)); err != nil {
			return err
		}
	}
}

// next is the number of the next workflow, if there is to be one more.
func (l *load) next() (int, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed.IsZero() {
		return 0, false
	}
	l.started++
	return l.started, true
}

// result takes note of a workflow that is done.
func (l *load) result(first bool, took time.Duration) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.results++
	if !l.opened.IsZero() && l.closed.IsZero() {
		l.times = append(l.times, took)
		if time.Since(l.opened) >= l.Window && len(l.times) >= l.Count {
			return l.shut()
		}
	}
	if first {
		l.warm++
		if l.warm == l.Callers {
			return l.open()
		}
	}
	return nil
}

// open opens the window.
func (l *load) open() (err error) {
	if l.Profile != "" {
		if l.profile, err = os.Create(filepath.Clean(l.Profile)); err != nil {
			return err
		}
		if err := pprof.StartCPUProfile(l.profile); err != nil {
			return err
		}
	}
	l.cpu, err = processorTime()
	mark()
	l.opened = time.Now()
	return err
}

// shut closes the window.
func (l *load) shut() error {
	l.closed = time.Now()
	mark()
	cpu, err := processorTime()
	l.cpu = cpu - l.cpu
	if l.profile != nil {
		pprof.StopCPUProfile()
		err = errors.Join(err, l.profile.Close())
	}
	return err
}

func (l *load) figures() figures {
	slices.Sort(l.times)
	return figures{
		Workflows: len(l.times), All: l.results, Took: l.closed.Sub(l.opened), CPU: l.cpu,
		P50: report.Percentile(l.times, 50), P99: report.Percentile(l.times, 99),
	}
}
