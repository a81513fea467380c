package handlers

import (
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/gopawl/pawl"
)

// Limits of a [Runner].
const (
	// DefaultGrace is how long a command that is to end has from SIGTERM to SIGKILL. What
	// follows takes up to 1.5 s more. All of it has to end before the StopGrace of the worker
	// does (3 s unless set), or else the job is released while its command still runs.
	DefaultGrace = time.Second

	DefaultOutput = 64 << 10 // bytes kept of a command's output
	MaxOutput     = 64 << 20 // the most that may be kept
)

// ExecOptions are the settings of a [Runner]. A nil *ExecOptions, and every zero field,
// means the default.
type ExecOptions struct {
	// Dir is the working folder of jobs that name none, and what their relative ones begin
	// at. The default is the current folder when the runner is made.
	Dir string

	// Roots are the folders in and below which jobs may work. Dir must be one of them. Nil
	// means anywhere; an empty list that is not nil is an error, and so is an empty name.
	Roots []string

	// Path is where programs named without a slash are looked up, in the form of PATH.
	// Relative folders in it are passed over. The default is PATH when the runner is made.
	Path string

	// Inherit names the variables of the worker's own environment that commands get. Nil
	// means DefaultInherit; an empty list that is not nil means none.
	Inherit []string

	// Env is given to every command, over what is inherited.
	Env map[string]string

	// JobEnv names the variables that jobs may set. The default is none: a variable can
	// make an allowed program do anything (GIT_SSH_COMMAND, PYTHONPATH, BASH_ENV, …). Those
	// which steer the system's loader, as LD_PRELOAD does, are refused.
	JobEnv []string

	// Grace is how long a command that is to end has from SIGTERM to SIGKILL. The default
	// is DefaultGrace. Keep it 2 s below the StopGrace and the HungGrace of the worker.
	Grace time.Duration

	// Output is how many bytes of a command's output are kept, the first and the last half
	// of standard output and standard error together. The default is DefaultOutput, the
	// most MaxOutput.
	Output int

	// Permanent are the exit codes that send a job to the dead letters. Nil means
	// DefaultPermanent; an empty list that is not nil means none.
	Permanent []int

	// OnRun, when set, is told of every command that was started, when it has ended and
	// before its job is settled. It is called from many goroutines. [Logs.Keep] fits.
	OnRun func(Run)
}

// Run is one command that has ended.
type Run struct {
	Job     *pawl.Envelope // to read
	Attempt int            // the number of the run, 1 on the first
	Args    []string       // of the job
	Started time.Time
	Took    time.Duration
	Code    int    // its exit code; -1 when a signal ended it
	Output  []byte // what was kept of it, with a line that says how much was not
	Cut     int64  // how many bytes were not kept
	Err     error  // what the job's handler returns; nil for a success
}

// Orphan is what was left of a run whose worker died.
type Orphan struct {
	Job  pawl.ID
	PIDs []int // that were found and killed; on other systems than Linux those of groups
	Err  error // why some of it may be alive still; nil when none is
}

// Runner runs commands. Its methods are safe for use by several goroutines.
type Runner struct {
	allow     *allowList
	folders   *folders
	environ   *environ
	state     *state
	orphans   []Orphan
	grace     time.Duration
	output    int
	permanent []int
	onRun     func(Run)
}

// NewRunner makes a runner of the programs on the allow-list: absolute paths, or names
// that are in PATH now. See the package comment for what being on it means.
//
// StateDir is where it notes what runs, so that nothing of a run is alive when its job
// runs again; it is made if need be, for its owner alone (mode 0700). Give each queue a
// folder of its own, on a local disk, beside the queue's file and as lasting: one runner
// at a time has it, and takes what it finds noted there for orphans of a worker that died,
// which it ends before it returns. [Runner.Orphans] says which.
//
// Mistakes in the arguments are errors, and so is a system other than Linux, macOS and the
// BSDs: errors.ErrUnsupported.
func NewRunner(stateDir string, allow []string, opts *ExecOptions) (*Runner, error) {
	var o ExecOptions
	if opts != nil {
		o = *opts
	}
	r := &Runner{grace: o.Grace, output: o.Output, permanent: slices.Clone(o.Permanent), onRun: o.OnRun}
	if err := r.settings(allow, &o); err != nil {
		return nil, fmt.Errorf("make a runner of commands: %w", err)
	}
	var err error
	if r.state, r.orphans, err = openState(stateDir); err != nil {
		return nil, fmt.Errorf("make a runner of commands: %w", err)
	}
	return r, nil
}

// settings checks everything that needs no state.
func (r *Runner) settings(allow []string, o *ExecOptions) (err error) {
	path := o.Path
	if path == "" {
		path = os.Getenv("PATH")
	}
	if r.allow, err = newAllowList(allow, path); err != nil {
		return err
	}
	if r.folders, err = newFolders(o.Dir, o.Roots); err != nil {
		return err
	}
	if r.environ, err = newEnviron(o); err != nil {
		return err
	}
	if o.Permanent == nil {
		r.permanent = DefaultPermanent()
	}
	for _, code := range r.permanent {
		if err := checkCode(code); err != nil {
			return err
		}
	}
	if r.grace == 0 {
		r.grace = DefaultGrace
	}
	if r.output == 0 {
		r.output = DefaultOutput
	}
	switch {
	case r.grace < 0:
		return fmt.Errorf("grace is %v; leave it out for %v", r.grace, DefaultGrace)
	case r.output < 0 || r.output > MaxOutput:
		return fmt.Errorf("output is %d bytes; it may have between 0, for %d, and %d", r.output, DefaultOutput, MaxOutput)
	}
	return nil
}

// Orphans are the commands of a worker that died which NewRunner found and ended.
func (r *Runner) Orphans() []Orphan { return slices.Clone(r.orphans) }

// Close gives up the state folder. Stop the worker first: commands that still run are not
// ended by it, and a runner that takes the folder next takes them for orphans.
func (r *Runner) Close() error { return r.state.close() }
