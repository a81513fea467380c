package dashboard

import (
	"context"
	"errors"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/workflow"
)

// verifyPage shows the open runs that the code of the app cannot continue.
type verifyPage struct {
	Unfit    []unfit
	Fit      int
	NotLive  bool // there is no code to compare with
	Partly   bool // other pages compare the other runs
	NextLink string
	AllLink  string // the page that compares all runs, however long it takes
}

// unfit is a run that would become blocked, or is damaged.
type unfit struct {
	workflow.Info
	What, Why string
}

// verify compares the journals of open runs with the code of the app. No step runs, and nothing changes.
func verify(q *request) error {
	p, within := new(verifyPage), lookTime
	if q.Form.Get("all") != "" {
		within = maxWork / 2
	}
	ask, began := admin.WorkflowQuery{Limit: pageSize, After: q.Form.Get("after")}, time.Now()
	for {
		page, err := q.admin().Workflows().List(q.ctx, ask)
		if err != nil {
			return err
		}
		for _, run := range page.Runs {
			if err := q.verifyRun(p, run); err != nil {
				return err
			}
		}
		if ask.After = page.Next; ask.After == "" || p.NotLive || len(p.Unfit) >= pageSize || time.Since(began) > within {
			break
		}
	}
	if ask.After != "" && !p.NotLive {
		p.NextLink, p.AllLink = link("verify", "after", ask.After), link("verify", "all", "1")
	}
	p.Partly = p.NextLink != "" || q.Form.Get("after") != ""
	return q.show("verify", "runs", "Open runs and the code", p, q.command("wf", "verify"))
}

// verifyRun adds the result of one run. Its error ends the page.
func (q *request) verifyRun(p *verifyPage, run workflow.Info) error {
	if run.Status.Ended() || p.NotLive {
		return nil
	}
	err := q.admin().Workflows().Verify(q.ctx, run.Run)
	var differs *workflow.DeterminismError
	what := "failed"
	switch {
	case err == nil:
		p.Fit++
		return nil
	case errors.Is(err, admin.ErrNotLive):
		p.NotLive = true
		return nil
	case errors.Is(err, workflow.ErrNotRunning), errors.Is(err, workflow.ErrNotFound): // it has ended in the meantime
		return nil
	case errors.As(err, &differs):
		what = "differs"
	case errors.Is(err, workflow.ErrNoFlow):
		what = "not in the code"
	case errors.Is(err, pawl.ErrCorrupt):
		what = "damaged"
	case q.ctx.Err() != nil, errors.Is(err, admin.ErrUnreachable), errors.Is(err, admin.ErrBusy), errors.Is(err, pawl.ErrClosed), errors.Is(err, context.DeadlineExceeded):
		return err
	}
	p.Unfit = append(p.Unfit, unfit{run, what, firstLine(err.Error())})
	return nil
}
