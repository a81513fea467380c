package dashboard

import (
	"context"
	"strings"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/workflow"
)

// keyless is a queue for a user who may not see keys: the runs that it reads have none. The keys of jobs are hidden
// where a page shows them.
type keyless struct{ admin.Admin }

// admin returns the queue as the user may see it.
func (q *request) admin() admin.Admin {
	if q.Can(ViewPayload) {
		return q.d.admin
	}
	return keyless{q.d.admin}
}

// Workflows implements [admin.Admin].
func (a keyless) Workflows() admin.Workflows { return keylessRuns{a.Admin.Workflows()} }

type keylessRuns struct{ admin.Workflows }

// List implements [admin.Workflows].
func (r keylessRuns) List(ctx context.Context, q admin.WorkflowQuery) (workflow.Listing, error) {
	page, err := r.Workflows.List(ctx, q)
	for i := range page.Runs {
		hideKey(&page.Runs[i])
	}
	return page, err
}

// Show implements [admin.Workflows].
func (r keylessRuns) Show(ctx context.Context, run pawl.ID, depth admin.RunDepth) (*admin.WorkflowRun, error) {
	w, err := r.Workflows.Show(ctx, run, depth)
	if err == nil {
		hideKey(&w.Info)
	}
	return w, err
}

// hideKey removes the key of a run, also from what it waits for.
func hideKey(info *workflow.Info) {
	info.Key = ""
	for _, what := range []*string{&info.Place, &info.Rate} {
		if strings.HasPrefix(*what, "key ") {
			*what = "key " + hiddenText
		}
	}
}
