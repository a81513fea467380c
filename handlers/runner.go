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
	// DefaultGrace is the time between SIGTERM and SIGKILL. Cleaning up takes up to 1.5 s
	// more. Both must fit into the worker's StopGrace (default 3 s), or the job is released
	// while its command still runs.
	DefaultGrace = time.Second

	DefaultOutput = 64 << 10 // bytes
	MaxOutput     = 64 << 20 // bytes
)

// ExecOptions configures a [Runner]. A nil *ExecOptions and zero fields mean the defaults.
type ExecOptions struct {
	// Dir is the default working folder of jobs and the base of relative ones. The default is
	// the current folder at the time of NewRunner.
	Dir string

	// Roots are the folders in and below which jobs may work, Dir included. Nil means anywhere;
	// an empty non-nil list and an empty name are errors.
	Roots []string

	// Path lists the folders in which programs without a slash are looked up, in the form of
	// PATH. Relative folders are ignored. The default is PATH at the time of NewRunner.
	Path string

	// Inherit names the worker's environment variables that commands inherit. Nil means
	// DefaultInherit; an empty non-nil list means none.
	Inherit []string

	// Env is set for every command and overrides inherited variables.
	Env map[string]string

	// JobEnv names the variables that jobs may set. The default is none, because a variable
	// can make an allowed program do anything (GIT_SSH_COMMAND, PYTHONPATH, BASH_ENV, …).
	// Variables that control the system's loader, such as LD_PRELOAD, are refused.
	JobEnv []string

	// Grace is the time between SIGTERM and SIGKILL. The default is DefaultGrace. Keep it 2 s
	// below the worker's StopGrace and StuckGrace.
	Grace time.Duration

	// Output is the number of bytes to keep of standard output and standard error together:
	// the first half and the last half. The default is DefaultOutput, the maximum MaxOutput.
	Output int

	// Permanent lists the exit codes that make a job dead. Nil means DefaultPermanent; an empty
	// non-nil list means none.
	Permanent []int

	// OnRun, if set, is called after each started command has ended, before its job is
	// settled, from several goroutines. See [Logs.Keep].
	OnRun func(Run)
}

// Run describes a command that has ended.
type Run struct {
	Job     *pawl.Envelope // read-only
	Attempt int            // 1 on the first attempt
	Args    []string
	Started time.Time
	Took    time.Duration
	Code    int    // exit code; -1 if a signal ended it
	Output  []byte // the kept output, with a line that reports dropped bytes
	Cut     int64  // dropped bytes
	Err     error  // the handler's result; nil means success
}

// Orphan describes the remains of an attempt whose worker died.
type Orphan struct {
	Job  pawl.ID
	PIDs []int // killed processes; process groups on systems other than Linux
	Err  error // why a process may still be alive, or nil
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

// NewRunner returns a runner for the programs on the allow-list: absolute paths, or names that
// are looked up in PATH now. The package comment explains what the list grants.
//
// The runner records running commands in stateDir, so that nothing of an attempt is alive when
// its job runs again. It creates the folder with mode 0700 if needed. Give each queue its own
// folder on a local disk, beside the queue's file and as durable. Only one runner at a time can use the
// folder. It treats recorded attempts as orphans of a dead worker and ends them before it returns;
// [Runner.Orphans] lists them.
//
// On systems other than Linux, macOS and the BSDs the error matches errors.ErrUnsupported.
func NewRunner(stateDir string, allow []string, opts *ExecOptions) (*Runner, error) {
	var o ExecOptions
	if opts != nil {
		o = *opts
	}
	r := &Runner{grace: o.Grace, output: o.Output, permanent: slices.Clone(o.Permanent), onRun: o.OnRun}
	if err := r.settings(allow, &o); err != nil {
		return nil, fmt.Errorf("create a command runner: %w", err)
	}
	var err error
	if r.state, r.orphans, err = openState(stateDir); err != nil {
		return nil, fmt.Errorf("create a command runner: %w", err)
	}
	return r, nil
}

// settings applies everything that needs no state folder.
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
		return fmt.Errorf("grace is %v; it must not be negative (0 means %v)", r.grace, DefaultGrace)
	case r.output < 0 || r.output > MaxOutput:
		return fmt.Errorf("output is %d bytes; it must be between 0 (for %d) and %d", r.output, DefaultOutput, MaxOutput)
	}
	return nil
}

// Orphans returns the commands of a dead worker that NewRunner found and ended.
func (r *Runner) Orphans() []Orphan { return slices.Clone(r.orphans) }

// Close releases the state folder. Stop the worker first: Close does not end running commands,
// and the next runner on the folder treats them as orphans.
func (r *Runner) Close() error { return r.state.close() }
