package workflow

import (
	"fmt"
	"path"
	"runtime"
	"strings"
)

// compare requires that a call matches the journal. The caller holds the lock.
func (x *execution) compare(want, got *entry) error {
	err := &DeterminismError{Want: want.String(), Got: got.String(), Seq: want.seq, Wrote: want.Build}
	switch {
	case !want.same(got) && want.Build == x.engine.opts.Build:
		err.Reason = "the build has the same name, so what is between calls was not the same again, as a clock, " +
			"chance, the order of a map, a goroutine: do that in a step; or the code was changed under that name"
	case !want.same(got):
		err.Reason = "keep the calls before as they were, in their order, or tell older runs apart by Version"
	case string(want.Key) != string(got.Key) && got.Kind == KindUndo:
		err.Got += " of another branch, or with another fingerprint"
		err.Reason = "keep the order in which branches name their undo steps until the run has ended"
	case string(want.Key) != string(got.Key):
		err.Got += " with another fingerprint"
		err.Reason = "the step was made with other input than now, which has to come from the input of the run and from steps"
	default:
		return nil
	}
	err.Line = callLine()
	return x.complete(err)
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
