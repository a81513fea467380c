package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/cmd/jobctl/internal/plain"
	"github.com/gopawl/pawl/workflow"
)

// jobOfRun is what the status of an open run does not show: whether its job is running or only
// could be, since when, and its own last error.
type jobOfRun struct {
	job    *pawl.Envelope // nil: the run has ended, or its error explains the problem
	live   bool           // an app has the file
	paused bool           // the queue is paused
}

// lookAtJob reads the job. It may vanish at any time, when the run ends.
func lookAtJob(ctx context.Context, queue admin.Admin, run *workflow.Info) (j jobOfRun, err error) {
	if run.Status.Ended() {
		return j, nil
	}
	j.job, err = queue.Job(ctx, run.Run)
	if errors.Is(err, pawl.ErrNotFound) || errors.Is(err, pawl.ErrCorrupt) {
		return jobOfRun{}, nil
	}
	if err != nil {
		return j, err
	}
	s, err := queue.Stats(ctx)
	j.live = s.Process != nil
	for _, q := range s.Queues {
		if q.Name == j.job.Queue {
			j.paused = q.Paused
		}
	}
	return j, err
}

// showJobOfRun prints the state of the job, since when it has that state, and its last failure.
func (a *app) showJobOfRun(run *workflow.Info, j jobOfRun) {
	e := j.job
	if e == nil {
		return
	}
	switch {
	case e.State == pawl.Delayed && e.BackoffSince.IsZero(): // what the run waits for is enough
	case e.State == pawl.Delayed:
		a.fact("job", "failed, runs again at %s", a.moment(e.NotBefore))
	case e.State == pawl.Leased && !j.live:
		a.fact("job", "%s", stateOf(e, true))
	default:
		a.fact("job", "%s since %s", e.State, a.moment(admin.StateSince(e)))
	}
	if e.Crashes > 0 && e.State != pawl.Dead {
		a.fact("crashes", "%d in a row", e.Crashes)
	}
	if n := len(e.History); n > 0 && !strings.Contains(run.Error, e.History[n-1].Error) {
		a.fact("failed", "%s: %s", relative(a.now(), e.History[n-1].At), escapeLines(e.History[n-1].Error, "            "))
	}
}

// waitsFor returns what a run waits for that could otherwise run; "" for another run.
func (j jobOfRun) waitsFor(run *workflow.Info) string {
	switch {
	case j.job == nil || run.Status != workflow.Running:
	case j.job.State == pawl.Delayed || j.job.State == pawl.Leased && j.live:
	case j.paused && !j.live:
		return "the app, which is not running, and its queue, which is paused"
	case j.paused:
		return "its queue, which is paused: 'jobctl queue resume'"
	case !j.live:
		return "the app, which is not running"
	case j.job.State == pawl.Ready:
		return fmt.Sprintf("a free worker with the flow %s", plain.Text(run.Flow))
	}
	return ""
}
