// Package harness has the parts that all families of faults share. It draws seeds, runs tries
// in parallel until the goal or the time limit is reached, keeps the files of a failed try,
// and prints the table.
package harness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// Family is one way of trying to make the queue break a promise.
type Family struct {
	Name   string // the name for -family
	Goals  string // goals of docs/reliability.md, for example "R2"
	Method string // one line for the table
	Unit   string // what Tried counts, in the plural

	// PR and Nightly are the goals for each change and for each night, goal in units.
	PR, Nightly int

	// Share is the family's share of the time, relative to the others: a bit more than the
	// seconds that PR units take on two processors.
	Share int

	// Parallel is how many tries run at the same time. 0 means GOMAXPROCS.
	Parallel int

	// Missing reports what this machine lacks for the family, "" for nothing. It may be nil.
	Missing func() string

	// Prepare sets up what all tries share, and returns the function that runs one try. Its
	// error is a violation of a promise, unless time is up: the end of the time makes a try
	// fail, so it reports a certain violation with Violate. The harness removes env.Dir at
	// the end.
	Prepare func(env *Env) (func(*Try) error, error)
}

// Each is the Prepare of a family whose tries share nothing.
func Each(try func(*Try) error) func(*Env) (func(*Try) error, error) {
	return func(*Env) (func(*Try) error, error) { return try, nil }
}

// Env is shared by the tries of a family.
type Env struct {
	Ctx  context.Context // ends when time is up or the user interrupts
	Dir  string          // an empty folder, in memory if the system supports that
	Disk string          // an empty folder on a disk
	Goal int             // the requested number of units

	cleanups []func()
}

// Cleanup makes fn run when the family is done. The last fn runs first.
func (e *Env) Cleanup(fn func()) { e.cleanups = append(e.cleanups, fn) }

// Try is one try. All its random choices come from Seed, so the seed repeats the try, except
// for the scheduling of goroutines and processes.
type Try struct {
	Ctx  context.Context
	Seed uint64
	Rand *rand.Rand // random numbers from the seed
	Dir  string     // a folder of the try's own, kept when it fails

	run     *run
	counted atomic.Bool
}

// Count adds units that were tried. Any goroutine may call it. A try that never calls it
// counts as one unit.
func (t *Try) Count(units int) {
	t.counted.Store(true)
	t.run.tried.Add(int64(units))
}

// Enough reports whether the family has reached its goal or time is up. A try of many units
// checks it between units.
func (t *Try) Enough() bool { return t.Ctx.Err() != nil || t.run.enough() }

// Violate records a violation. The try continues.
func (t *Try) Violate(err error) { t.run.violate(t.Seed, t.Dir, err) }

// ErrUntried marks a Violation that breaks no promise: the family could not be tried.
var ErrUntried = errors.New("could not be tried")

// Violation is a broken promise, or a try that could not run.
type Violation struct {
	Seed uint64
	Dir  string // the files of the try, "" for none
	Err  error
}

// Result is what a family found.
type Result struct {
	*Family
	Goal       int    // in units
	Missing    string // why nothing was tried
	Tried      int
	Violations int           // number of violations
	First      []Violation   // the first few
	Setup      time.Duration // time before the first try
	Took       time.Duration // total time
}

// Plan limits the run of a family.
type Plan struct {
	Goal   int           // units
	Time   time.Duration // time limit of the tries, without the setup; 0 means no limit
	Seed   uint64        // seed of the first try
	Step   uint64        // from one seed to the next; 0 means 1
	Once   bool          // run only the first try
	First  bool          // end at the first violation, even within a try
	Folder string        // parent of Env.Disk; "" means the system's folder for temporary files
	OnTry  func(tried, violations int)
}

// setupLimit bounds the time of Prepare. It may build programs with an empty cache on a
// loaded machine, so it does not count as time of the tries.
const setupLimit = 15 * time.Minute

// maxFirst is the number of violations that a Result keeps. A family ends after that many.
const maxFirst = 5

// run is one run of a family.
type run struct {
	plan     Plan
	ctx      context.Context
	stop     context.CancelFunc
	dir      string
	setup    time.Duration
	next     atomic.Uint64
	tried    atomic.Int64
	mu       sync.Mutex
	failures int
	first    []Violation
}

func (r *run) enough() bool { return int(r.tried.Load()) >= r.plan.Goal }

func (r *run) violate(seed uint64, dir string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failures++; len(r.first) < maxFirst {
		r.first = append(r.first, Violation{seed, dir, err})
	}
	if r.plan.First {
		r.stop()
	}
}

func (r *run) violations() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failures
}

// Run tries a family.
func (f *Family) Run(ctx context.Context, plan Plan) (result Result) {
	began := time.Now()
	result = Result{Family: f, Goal: plan.Goal}
	defer func() { result.Took = time.Since(began) }()
	if f.Missing != nil {
		if result.Missing = f.Missing(); result.Missing != "" {
			return result
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := &run{plan: plan, ctx: ctx, stop: cancel}
	if err := r.all(f); err != nil && ctx.Err() == nil { // running out of time is not a violation
		r.violate(plan.Seed, "", fmt.Errorf("%w: %w", ErrUntried, err))
	}
	result.Goal, result.Setup = r.plan.Goal, r.setup
	result.Tried, result.Violations, result.First = int(r.tried.Load()), r.failures, r.first
	return result
}

func (r *run) all(f *Family) (err error) {
	env := &Env{Ctx: r.ctx, Goal: r.plan.Goal}
	if env.Dir, err = MemoryFolder(); err != nil {
		return err
	}
	if env.Disk, err = os.MkdirTemp(r.plan.Folder, "pawl-torture-"); err != nil {
		return err
	}
	r.dir = env.Dir
	defer func() {
		for i := len(env.cleanups) - 1; i >= 0; i-- {
			env.cleanups[i]()
		}
		_ = os.RemoveAll(env.Disk)
		if r.violations() == 0 {
			_ = os.RemoveAll(env.Dir)
		}
	}()
	began, stuck := time.Now(), time.AfterFunc(setupLimit, r.stop)
	try, err := f.Prepare(env)
	r.setup = time.Since(began)
	if err != nil || !stuck.Stop() {
		return err
	}
	if r.plan.Time != 0 {
		r.ctx, r.stop = context.WithTimeout(r.ctx, r.plan.Time)
		defer r.stop()
	}
	env.Ctx = r.ctx
	r.next.Store(r.plan.Seed)
	if r.plan.Once {
		err := r.one(try)
		r.plan.Goal = int(r.tried.Load()) // there is nothing left to try
		return err
	}
	parallel := f.Parallel
	if parallel == 0 {
		parallel = runtime.GOMAXPROCS(0)
	}
	var workers sync.WaitGroup
	for range parallel {
		workers.Go(func() {
			for r.ctx.Err() == nil && !r.enough() && r.violations() < maxFirst {
				if err := r.one(try); err != nil {
					r.violate(r.plan.Seed, "", err)
				}
			}
		})
	}
	workers.Wait()
	return nil
}

// one runs the try of the next seed.
func (r *run) one(try func(*Try) error) error {
	step := cmp.Or(r.plan.Step, 1)
	seed := r.next.Add(step) - step
	dir := filepath.Join(r.dir, fmt.Sprintf("try-%d", seed))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	t := &Try{Ctx: r.ctx, Seed: seed, Rand: rand.New(rand.NewPCG(seed, 0)), Dir: dir, run: r}
	before := r.violations()
	err := Guard(func() error { return try(t) })
	if err != nil && r.ctx.Err() == nil {
		t.Violate(err)
	}
	if err == nil && !t.counted.Load() {
		r.tried.Add(1)
	}
	if r.violations() == before {
		_ = os.RemoveAll(dir)
	}
	if r.plan.OnTry != nil {
		r.plan.OnTry(int(r.tried.Load()), r.violations())
	}
	return nil
}

// Guard turns a panic, or a fault in the map of a file, into an error.
func Guard(do func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return do()
}

// Pick draws one of some values by their weights.
func Pick[T any](r *rand.Rand, values []T, weight func(T) int) T {
	sum := 0
	for _, v := range values {
		sum += weight(v)
	}
	at := r.IntN(sum)
	for _, v := range values {
		if at -= weight(v); at < 0 {
			return v
		}
	}
	panic("the weights have changed")
}

// MemoryVariable names the parent of the folders that MemoryFolder makes. A parent process
// sets it to find the files that a family leaves.
const MemoryVariable = "PAWL_TORTURE_MEMORY"

// MemoryFolder makes a folder in memory, if the system can. Most families prove nothing
// about the disk.
func MemoryFolder() (string, error) {
	parent := cmp.Or(os.Getenv(MemoryVariable), "/dev/shm")
	if dir, err := os.MkdirTemp(parent, "pawl-torture-"); err == nil {
		return dir, nil
	}
	return os.MkdirTemp("", "pawl-torture-")
}
