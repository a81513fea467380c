package handlers

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// DefaultInherit are the variables of the worker's own environment that a command gets
// unless [ExecOptions] says otherwise. Everything else the worker knows, such as
// credentials, stays with it.
func DefaultInherit() []string {
	return []string{"PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "TMPDIR"}
}

// environ is the environment of commands. It is made once and not changed.
type environ struct {
	base map[string]string // of every command
	jobs []string          // names that a job may set
}

func newEnviron(o *ExecOptions) (*environ, error) {
	e := &environ{base: make(map[string]string), jobs: slices.Clone(o.JobEnv)}
	inherit := o.Inherit
	if inherit == nil {
		inherit = DefaultInherit()
	}
	for _, name := range inherit {
		if err := checkVariable(name, ""); err != nil {
			return nil, fmt.Errorf("inherit: %w", err)
		}
		if value, ok := os.LookupEnv(name); ok {
			e.base[name] = value
		}
	}
	for name, value := range o.Env {
		if err := checkVariable(name, value); err != nil {
			return nil, fmt.Errorf("env: %w", err)
		}
		e.base[name] = value
	}
	for _, name := range o.JobEnv {
		if err := checkVariable(name, ""); err != nil {
			return nil, fmt.Errorf("variables of jobs: %w", err)
		}
		if steersLoader(name) {
			return nil, fmt.Errorf("variables of jobs: %s makes any program load what it names, which makes the allow-list void; give it to all commands by Env, or leave it out", name)
		}
	}
	return e, nil
}

// of is the environment of one run, sorted: what every command gets, over it what the job
// sets, over that what the runner says about the run.
func (e *environ) of(job, run map[string]string) ([]string, error) {
	all := maps.Clone(e.base)
	for _, name := range slices.Sorted(maps.Keys(job)) {
		if !slices.Contains(e.jobs, name) {
			return nil, fmt.Errorf("the job sets the variable %q, which this worker does not let jobs set; add it to the worker's list of variables, or take it out of the job", name)
		}
		if err := checkVariable(name, job[name]); err != nil {
			return nil, err
		}
		all[name] = job[name]
	}
	maps.Copy(all, run)
	env := make([]string, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		env = append(env, name+"="+all[name])
	}
	return env, nil
}

// checkVariable refuses what would be another variable than it says.
func checkVariable(name, value string) error {
	switch {
	case name == "" || strings.ContainsAny(name, "=\x00"):
		return fmt.Errorf("%q is not the name of a variable", name)
	case strings.HasPrefix(name, "PAWL_"):
		return fmt.Errorf("%s: names that begin with PAWL_ are the runner's own", name)
	case strings.ContainsRune(value, 0):
		return fmt.Errorf("the value of %s has a NUL byte", name)
	}
	return nil
}

// steersLoader reports whether a variable has the system's own loader or C library run
// code of the setter's choice in any program. Interpreters have such variables too
// (PYTHONPATH, NODE_OPTIONS, BASH_ENV, …), which nobody could list completely: that is why
// jobs may set none but those which the operator names.
func steersLoader(name string) bool {
	for _, prefix := range []string{"LD_", "DYLD_", "_RLD", "GCONV_PATH", "LIBPATH", "SHLIB_PATH"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
