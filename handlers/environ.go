package handlers

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// DefaultInherit returns the variables that a command inherits from the worker unless
// [ExecOptions] says otherwise. Everything else, such as credentials, stays with the worker.
func DefaultInherit() []string {
	return []string{"PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "TMPDIR"}
}

// environ builds the environment of commands. It is immutable.
type environ struct {
	base map[string]string // for every command
	jobs []string          // names that jobs may set
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
			return nil, fmt.Errorf("variables of jobs: %s makes any program load other code, which defeats the allow-list; set it for all commands in Env, or leave it out", name)
		}
	}
	return e, nil
}

// of returns the sorted environment of one attempt. The job's variables override the common ones,
// and the runner's override both.
func (e *environ) of(job, run map[string]string) ([]string, error) {
	all := maps.Clone(e.base)
	for _, name := range slices.Sorted(maps.Keys(job)) {
		if !slices.Contains(e.jobs, name) {
			return nil, fmt.Errorf("the job sets the variable %q, which this worker does not let jobs set; add it to the worker's list of variables, or remove it from the job", name)
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

// checkVariable refuses names and values that would set another variable.
func checkVariable(name, value string) error {
	switch {
	case name == "" || strings.ContainsAny(name, "=\x00"):
		return fmt.Errorf("%q is not a variable name", name)
	case strings.HasPrefix(name, "PAWL_"):
		return fmt.Errorf("%s: names that begin with PAWL_ are reserved for the runner", name)
	case strings.ContainsRune(value, 0):
		return fmt.Errorf("the value of %s has a NUL byte", name)
	}
	return nil
}

// steersLoader reports whether a variable makes the system's loader or C library run other
// code in any program. Interpreters have such variables too (PYTHONPATH, NODE_OPTIONS,
// BASH_ENV, …), too many to list, so jobs may set only what the operator names.
func steersLoader(name string) bool {
	for _, prefix := range []string{"LD_", "DYLD_", "_RLD", "GCONV_PATH", "LIBPATH", "SHLIB_PATH"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
