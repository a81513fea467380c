package handlers

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gopawl/pawl"
)

// DefaultPermanent are the exit codes that send a job to the dead letters, unless
// [ExecOptions] or the job says otherwise. 64, 65 and 78 are those of sysexits.h for a
// wrong call, wrong data and a wrong configuration, 126 and 127 those of shells and env
// for a program that cannot be run and one that is not there. Every other code is worth
// a retry, 75 (EX_TEMPFAIL) above all.
func DefaultPermanent() []int { return []int{64, 65, 78, 126, 127} }

// ExitError is the error of a run whose program ended and did not succeed.
type ExitError struct {
	Program string        // argument 0 of the job
	Code    int           // its exit code; -1 when a signal ended it
	Signal  string        // the name of that signal, "" without one
	Took    time.Duration // how long it ran
	Tail    string        // the end of its output, at most 3 KiB
}

// maxTail is how much of the output an error carries: with the text around it, as much as
// the history of a job keeps.
const maxTail = 3 << 10

// Error is one line, and below it the end of the output.
func (e *ExitError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s ", pawl.Clip(e.Program, 200))
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

// judge says what the end of a program means for its job: nil, an error that is worth a
// retry, or a permanent one. Permanent lists the codes of the runner.
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

// checkCode refuses what no program can end with, or what has a fixed meaning.
func checkCode(code int) error {
	if code < 1 || code > 255 {
		return fmt.Errorf("exit code %d is not between 1 and 255; 0 always means success", code)
	}
	return nil
}
