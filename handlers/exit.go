package handlers

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/ellipsis"
)

// DefaultPermanent returns the exit codes that make a job dead, unless [ExecOptions] or the job
// says otherwise: 64, 65 and 78 mean wrong usage, wrong data and wrong configuration in
// sysexits.h; shells and env use 126 and 127 for a program that cannot run or does not exist.
// Every other code is retried, such as 75 (EX_TEMPFAIL).
func DefaultPermanent() []int { return []int{64, 65, 78, 126, 127} }

// ExitError is the error of a program that ended without success.
type ExitError struct {
	Program string        // argument 0 of the job
	Code    int           // -1 if a signal ended it
	Signal  string        // the signal's name, or ""
	Took    time.Duration // how long it ran
	Tail    string        // the end of its output, at most 3 KiB
}

// maxTail limits the output in an error, in bytes, so that a job's history keeps all of it.
const maxTail = 3 << 10

// Error returns one line, followed by the end of the output.
func (e *ExitError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s ", ellipsis.Truncate(e.Program, 200))
	if e.Signal != "" {
		fmt.Fprintf(&b, "was ended by the signal %q", e.Signal)
	} else {
		fmt.Fprintf(&b, "ended with exit code %d", e.Code)
	}
	fmt.Fprintf(&b, " after %v", e.Took.Round(time.Millisecond))
	if e.Tail == "" {
		return b.String() + ", without output"
	}
	return b.String() + "; the end of its output:\n" + e.Tail
}

// judge returns the handler's result for an exit: nil, an error to retry, or a permanent one.
// permanent holds the runner's exit codes.
func (c *Command) judge(e *ExitError, permanent []int) error {
	switch {
	case e.Signal != "":
		return e
	case e.Code == 0 || slices.Contains(c.OK, e.Code):
		return nil
	case slices.Contains(c.Retry, e.Code):
		return e
	case slices.Contains(c.Permanent, e.Code), slices.Contains(permanent, e.Code):
		return pawl.Permanent(e)
	}
	return e
}

// checkCode refuses impossible exit codes, and 0, whose meaning is fixed.
func checkCode(code int) error {
	if code < 1 || code > 255 {
		return fmt.Errorf("exit code %d is not between 1 and 255; 0 always means success", code)
	}
	return nil
}
