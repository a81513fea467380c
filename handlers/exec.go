package handlers

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gopawl/pawl"
)

// Exec is the kind of job that runs a command; [Runner.Run] handles it. How long one run
// may take is the job's own timeout, by [pawl.Timeout], or else that of its worker.
var Exec = pawl.Define[Command]("pawl.exec")

// Command is what a job of kind [Exec] runs: one program with its arguments. No shell
// looks at any of it. The names of its fields are the same in a payload and in JSON.
type Command struct {
	// Args is the program and its arguments, one or more. The first is an absolute
	// path, a path with a slash that is relative to the working folder, or a name that
	// is looked up in [ExecOptions].Path. It must lead to a program on the allow-list,
	// which gets it, as it stands here, as its argument 0.
	Args []string `msgpack:"args" json:"args"`

	// Dir is the working folder, absolute or relative to [ExecOptions].Dir, which is the
	// default.
	Dir string `msgpack:"dir,omitempty" json:"dir,omitempty"`

	// Env is added to the environment that the worker gives. Only names that
	// [ExecOptions].JobEnv lists are accepted.
	Env map[string]string `msgpack:"env,omitempty" json:"env,omitempty"`

	// Stdin is what the program reads from its standard input, which is otherwise empty.
	Stdin []byte `msgpack:"stdin,omitempty" json:"stdin,omitempty"`

	// OK, Retry and Permanent say what exit codes mean, in place of what they mean to the
	// [Runner]: the job is done, is tried again, goes to the dead letters. A code stands
	// in one of them at most. Code 0 is always a success.
	OK        []int `msgpack:"ok,omitempty" json:"ok,omitempty"`
	Retry     []int `msgpack:"retry,omitempty" json:"retry,omitempty"`
	Permanent []int `msgpack:"permanent,omitempty" json:"permanent,omitempty"`
}

// Check returns an error for a command that [Runner.Run] refuses whatever its options are.
func (c *Command) Check() error {
	if len(c.Args) == 0 || c.Args[0] == "" {
		return errors.New("the job names no program; give it args, the program first")
	}
	for _, text := range append(slices.Clone(c.Args), c.Dir) {
		if strings.ContainsRune(text, 0) {
			return fmt.Errorf("%q has a NUL byte, which no program can be given", pawl.Clip(text, 100))
		}
	}
	return c.checkCodes()
}

// checkCodes refuses lists of exit codes that contradict one another.
func (c *Command) checkCodes() error {
	seen := make(map[int]bool)
	for _, code := range slices.Concat(c.OK, c.Retry, c.Permanent) {
		if err := checkCode(code); err != nil {
			return err
		}
		if seen[code] {
			return fmt.Errorf("exit code %d is listed twice in ok, retry and permanent", code)
		}
		seen[code] = true
	}
	return nil
}
