package handlers

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/ellipsis"
)

// Exec is the kind of a job that runs a command; [Runner.Run] handles it. The time limit of an
// attempt is the job's [pawl.Timeout], or the worker's default.
var Exec = pawl.Define[Command]("pawl.exec")

// Command is the payload of a job of kind [Exec]: one program with its arguments. No shell
// interprets them. The JSON names of the fields are also their names in the payload.
type Command struct {
	// Args is the program and its arguments; at least the program. The program is an
	// absolute path, a path with a slash relative to the working folder, or a name that is
	// looked up in [ExecOptions].Path. It must be on the allow-list. The program receives it
	// unchanged as argument 0.
	Args []string `msgpack:"args" json:"args"`

	// Dir is the working folder, absolute or relative to [ExecOptions].Dir, the default.
	Dir string `msgpack:"dir,omitempty" json:"dir,omitempty"`

	// Env is added to the environment that the worker provides. [ExecOptions].JobEnv lists
	// the accepted names.
	Env map[string]string `msgpack:"env,omitempty" json:"env,omitempty"`

	// Stdin is the program's standard input, empty by default.
	Stdin []byte `msgpack:"stdin,omitempty" json:"stdin,omitempty"`

	// OK, Retry and Permanent override the meaning of exit codes: the job succeeds, is
	// retried, or becomes dead. A code may be in only one of them. Code 0 always means success.
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
			return fmt.Errorf("%q contains a NUL byte; arguments cannot", ellipsis.Truncate(text, 100))
		}
	}
	return c.checkCodes()
}

// checkCodes refuses invalid exit codes and contradictory lists.
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
