package workflow

import (
	"fmt"
	"path"
	"runtime"
	"strings"
)

// compare requires that a call matches the journal. The caller holds the lock.
func (x *execution) compare(want, got *entry) error {
	var other, reason string
	switch {
	case !want.same(got) && want.Build == x.engine.opts.Build:
		reason = "the build name is the same, so code between calls gave another result, such as a clock, " +
			"a random number, the order of a map, or a goroutine: do that in a step; or the code changed and the build name did not"
	case !want.same(got):
		reason = "repeat the calls of the journal in their order, or distinguish older runs by Version"
	case string(want.Key) != string(got.Key) && got.Kind == KindUndo:
		other = " of another branch, or with another fingerprint"
		reason = "keep the order in which branches add their undo steps until the run has ended"
	case string(want.Key) != string(got.Key):
		other = " with another fingerprint"
		reason = "the step had other arguments before; compute them only from the input of the run and the results of steps"
	default:
		return nil
	}
	return x.complete(&DeterminismError{Want: want.String(), Got: got.String() + other, Seq: want.seq, Wrote: want.Build,
		Reason: reason, Line: callLine()})
}

// complete fills in the run and flow of a mismatch.
func (x *execution) complete(err *DeterminismError) error {
	err.Seq = ordinal(err.Seq)
	err.Flow, err.ID, err.Build = x.row.Flow, x.row.ID, x.engine.opts.Build
	return err
}

// mismatch stops the run.
func (x *execution) mismatch(err *DeterminismError) error {
	err.Line = callLine()
	return x.stop(x.complete(err))
}

const module = "github.com/gopawl/pawl/"

// callLine returns the line of the app's code that made the current call, with the folder of its file, or ""
// for an undo step, which the app does not call.
func callLine() string {
	pcs := make([]uintptr, 32)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for {
		f, more := frames.Next()
		switch {
		case strings.HasPrefix(f.Function, module+"workflow."):
		case strings.HasPrefix(f.Function, module+"worker."), strings.HasPrefix(f.Function, "runtime."), f.File == "":
			return ""
		default:
			return fmt.Sprintf("%s/%s:%d", path.Base(path.Dir(f.File)), path.Base(f.File), f.Line)
		}
		if !more {
			return ""
		}
	}
}
