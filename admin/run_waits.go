package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/workflow"
)

// JobOfRun is what the status of an open run does not say: whether its job is running or only ready to, since when, its
// last error, and the steps in progress.
type JobOfRun struct {
	Job    *pawl.Envelope // nil: the run has ended, or its error explains the problem
	Live   bool           // an app has the file
	Paused bool           // the queue is paused
	Steps  string         // the steps that have been running for more than a second, each with its beginning
}

// LookAtJob reads the job of a run. It may vanish at any time, when the run ends.
func LookAtJob(ctx context.Context, a Admin, run *workflow.Info) (j JobOfRun, err error) {
	if run.Status.Ended() {
		return j, nil
	}
	j.Job, err = a.Job(ctx, run.Run)
	if errors.Is(err, pawl.ErrNotFound) || errors.Is(err, pawl.ErrCorrupt) {
		return JobOfRun{}, nil
	}
	if err != nil {
		return j, err
	}
	s, err := a.Stats(ctx)
	j.Live = s.Process != nil
	for _, q := range s.Queues {
		if q.Name == j.Job.Queue {
			j.Paused = q.Paused
		}
	}
	if err != nil || j.Job.State != pawl.Leased {
		return j, err
	}
	noted, err := a.Progress(ctx, run.Run)
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, pawl.ErrCorrupt) {
		return j, nil
	}
	if len(noted) > 0 && !noted[0].At.Before(j.Job.LeasedSince) { // otherwise an earlier attempt noted it
		j.Steps = noted[0].Text
	}
	return j, err
}

// waits returns what a run waits for that could otherwise run; "" for another run.
func (j JobOfRun) waits(run *workflow.Info) string {
	switch {
	case j.Job == nil || run.Status != workflow.Running:
	case j.Job.State == pawl.Delayed || j.Job.State == pawl.Leased && j.Live:
	case j.Paused && !j.Live:
		return "the app, which is not running, and its queue, which is paused"
	case j.Paused:
		return "its queue, which is paused: 'jobctl queue resume'"
	case !j.Live:
		return "the app, which is not running"
	case j.Job.State == pawl.Ready:
		return fmt.Sprintf("a free worker with the flow %s", run.Flow)
	}
	return ""
}

// WhyDelayed returns what a workflow run waits for, as [WorkflowRun.WaitsFor] does, if that is why its job is delayed.
// It returns nil for a job that belongs to no run, and for a job that waits for a retry.
func WhyDelayed(ctx context.Context, a Admin, id pawl.ID, kind string, moment func(time.Time) string) ([]string, error) {
	if !strings.HasPrefix(kind, workflow.KindPrefix) {
		return nil, nil
	}
	w, err := a.Workflows().Show(ctx, id, RunJournal)
	if err != nil { // its job is all that can be seen
		return nil, ctx.Err()
	}
	j, err := LookAtJob(ctx, a, &w.Info)
	if err != nil || j.Job != nil && !j.Job.BackoffSince.IsZero() { // it failed
		return nil, ctx.Err()
	}
	return w.WaitsFor(j, moment), nil
}

// WaitsFor returns what an open run waits for, and until when, with one text for each thing. The run has been read with its
// journal. Names in the texts come from the file, and moment formats the times.
func (w *WorkflowRun) WaitsFor(j JobOfRun, moment func(time.Time) string) (all []string) {
	add := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	switch w.Status {
	case workflow.Blocked:
		add("a matching build of the app; 'jobctl wf resume' tries the same one again")
		if w.Cancelling != "" {
			add("its cancel waits for that too; 'jobctl wf terminate' ends the run without undoing anything")
		}
		return all
	case workflow.Dead, workflow.Paused:
		add("'jobctl wf resume'")
	}
	switch job := j.waits(&w.Info); {
	case w.Place != "":
		add("the end of another run, since %s has as many open runs as it may", w.Place)
		for _, run := range w.Holders {
			add("run %s is open", run)
		}
		return all
	case w.Rate != "" && w.Due.IsZero():
		add("its turn, since %s has as many starts as its rate permits", w.Rate)
		return all
	case w.Rate != "":
		add("its turn, at %s or later, since %s has as many starts as its rate permits", moment(w.Due), w.Rate)
		return all
	case job != "":
		add("%s", job)
		return all // the journal's wait may have ended by now
	case w.Status.Ended(), w.Status == workflow.Dead:
		return all
	}
	selects, taken := false, slices.Clone(w.Waits) // the signals of a Select
	for i := range w.Journal {
		e := &w.Journal[i]
		if e.State != workflow.EntryPending {
			continue
		}
		add("%s", waitOf(e, moment))
		selects = selects || e.Kind == workflow.KindSelect
		if e.Kind == workflow.KindWait {
			taken = slices.DeleteFunc(taken, func(signal string) bool { return signal == e.Name })
		}
	}
	if selects && len(taken) > 0 {
		add("any of these signals: %s", strings.Join(taken, ", "))
	}
	if w.Status == workflow.Sleeping && len(w.Journal) == 0 && w.Error == "" && !w.Due.IsZero() {
		add("its begin at %s; 'jobctl wf resume' lets it begin at once", moment(w.Due))
	}
	return all
}

// waitOf returns what a call waits for.
func waitOf(e *workflow.Entry, moment func(time.Time) string) string {
	until, at, name := "", "", e.Step()
	if !e.Due.IsZero() {
		until, at = " until "+moment(e.Due), " at "+moment(e.Due)
	}
	switch e.Kind {
	case workflow.KindSleep:
		return name + until
	case workflow.KindSelect:
		return "select " + name + until
	case workflow.KindCondition:
		return fmt.Sprintf("condition %s of a shared value", name)
	case workflow.KindWait:
		if name != e.Name { // the call is in a branch, or is not the first for its signal
			until += fmt.Sprintf(" (%s)", name)
		}
		return "signal " + e.Name + until
	case workflow.KindChild:
		return fmt.Sprintf("%s, run %s", name, e.Child)
	}
	return fmt.Sprintf("attempt %d of %s%s", e.Attempts+1, name, at)
}
