package main

import (
	"strings"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/workflow"
)

// showJobOfRun prints the state of the job, since when it has that state, the steps in progress, and its last failure.
func (a *app) showJobOfRun(run *workflow.Info, j admin.JobOfRun) {
	e := j.Job
	if e == nil {
		return
	}
	switch {
	case e.State == pawl.Delayed && e.BackoffSince.IsZero(): // what the run waits for is enough
	case e.State == pawl.Delayed:
		a.fact("job", "failed, runs again at %s", a.moment(e.NotBefore))
	case e.State == pawl.Leased && !j.Live:
		a.fact("job", "%s", stateOf(e, true))
	default:
		a.fact("job", "%s since %s", e.State, a.moment(admin.StateSince(e)))
	}
	if j.Live {
		a.textFact("working on", j.Steps)
	} else {
		a.textFact("worked on", j.Steps)
	}
	if e.Crashes > 0 && e.State != pawl.Dead {
		a.fact("crashes", "%d in a row", e.Crashes)
	}
	if n := len(e.History); n > 0 && !strings.Contains(run.Error, e.History[n-1].Error) {
		a.fact("failed", "%s: %s", relative(a.now(), e.History[n-1].At), escapeLines(e.History[n-1].Error, "            "))
	}
}
