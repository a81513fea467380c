package admin

import (
	"context"
	"net/http"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
)

// pruneTime is how long one request removes runs. The client asks again for the others, so an
// interruption of its ends the work.
const pruneTime = 2 * time.Second

// workflowRoutes adds the endpoints of workflows to the table.
func (h *handler) workflowRoutes(table map[string]map[string]route) {
	get, post := http.MethodGet, http.MethodPost
	for path, methods := range map[string]map[string]route{
		pathWorkflows:         {get: {answer: h.workflows, gate: h.lists, large: largePage, params: true}},
		pathWorkflowCount:     {get: {answer: h.countWorkflows, gate: h.lists}},
		pathWorkflowFind:      {get: {answer: h.findWorkflow, params: true}},
		pathWorkflowShow:      {get: {answer: h.showWorkflow, gate: h.lists, large: largeRun, params: true}},
		pathWorkflowSignal:    {post: {answer: h.signalWorkflow, change: true}},
		pathWorkflowCancel:    {post: {answer: h.ask(Workflows.Cancel), change: true}},
		pathWorkflowTerminate: {post: {answer: h.ask(Workflows.Terminate), change: true}},
		pathWorkflowPause:     {post: {answer: h.ask(withoutReason(Workflows.Pause)), change: true}},
		pathWorkflowResume:    {post: {answer: h.ask(withoutReason(Workflows.Resume)), change: true}},
		pathWorkflowFork:      {post: {answer: h.forkWorkflow, change: true}},
		pathWorkflowVerify:    {post: {answer: h.ask(withoutReason(Workflows.Verify)), gate: h.lists}},
		pathWorkflowPrune:     {post: {answer: h.pruneWorkflows, change: true}},
		pathWorkflowRows:      {get: {answer: h.workflowRows, gate: h.lists, large: always, params: true}},
		pathWorkflowRestore:   {post: {answer: h.restoreWorkflows, change: true}},
	} {
		table[path] = methods
	}
}

// largeRun reports whether the values of a run are asked for.
func largeRun(r *http.Request) bool { return r.URL.Query().Get(paramDepth) == depthNames[RunValues] }

func (h *handler) workflows(r *http.Request, _ []byte) (any, error) {
	q, err := workflowQueryOf(r.URL.Query())
	if err != nil {
		return nil, err
	}
	page, err := h.admin.Workflows().List(r.Context(), q)
	if err != nil {
		return nil, err
	}
	return workflowPageOf(page), nil
}

func (h *handler) countWorkflows(r *http.Request, _ []byte) (any, error) {
	c, err := h.admin.Workflows().Count(r.Context())
	if err != nil {
		return nil, err
	}
	return WorkflowCounts(c), nil
}

func (h *handler) findWorkflow(r *http.Request, _ []byte) (any, error) {
	p := params{values: r.URL.Query()}
	flow, id := p.text(paramFlow), p.text(paramID)
	if err := p.end(); err != nil {
		return nil, err
	}
	run, err := h.admin.Workflows().Find(r.Context(), flow, id)
	if err != nil {
		return nil, err
	}
	return runName{run}, nil
}

func (h *handler) showWorkflow(r *http.Request, _ []byte) (any, error) {
	p := params{values: r.URL.Query()}
	text := p.text(paramID)
	depth := RunDepth(p.oneOf(paramDepth, depthNames, int(RunJournal)))
	form := PayloadForm(p.oneOf(paramForm, formNames, int(PayloadAuto)))
	if err := p.end(); err != nil {
		return nil, err
	}
	run, err := pawl.ParseID(text)
	if err != nil {
		return nil, err
	}
	w, err := h.admin.Workflows().Show(r.Context(), run, depth)
	if err != nil {
		return nil, err
	}
	return WorkflowDetailOf(w, form), nil
}

func (h *handler) signalWorkflow(r *http.Request, body []byte) (any, error) {
	var b signalBody
	if err := decode(body, &b); err != nil {
		return nil, err
	}
	payload, err := b.Payload.bytes()
	if err != nil {
		return nil, err
	}
	return nothing{}, h.admin.Workflows().Signal(r.Context(), b.Run, string(b.Name), payload, string(b.Dedup))
}

// ask is an endpoint that asks one thing of a run.
func (h *handler) ask(do func(w Workflows, ctx context.Context, run pawl.ID, reason string) error) func(*http.Request, []byte) (any, error) {
	return func(r *http.Request, body []byte) (any, error) {
		var b askBody
		if err := decode(body, &b); err != nil {
			return nil, err
		}
		return nothing{}, do(h.admin.Workflows(), r.Context(), b.Run, string(b.Reason))
	}
}

// withoutReason is for what is asked without one.
func withoutReason(do func(Workflows, context.Context, pawl.ID) error) func(Workflows, context.Context, pawl.ID, string) error {
	return func(w Workflows, ctx context.Context, run pawl.ID, reason string) error {
		if reason != "" {
			return invalid("reason", "this path takes none")
		}
		return do(w, ctx, run)
	}
}

func (h *handler) forkWorkflow(r *http.Request, body []byte) (any, error) {
	var b forkBody
	if err := decode(body, &b); err != nil {
		return nil, err
	}
	run, err := h.admin.Workflows().Fork(r.Context(), b.Run, string(b.From), string(b.NewID))
	if err != nil {
		return nil, err
	}
	return runName{run}, nil
}

func (h *handler) pruneWorkflows(r *http.Request, body []byte) (any, error) {
	var b pruneBody
	if err := decode(body, &b); err != nil {
		return nil, err
	}
	if b.Before.IsZero() {
		return nil, invalid("before", "it has no time")
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	began := time.Now()
	ctx = bolt.WithProgress(ctx, func(done, _ int64) {
		if done > 0 && time.Since(began) > pruneTime { // something is removed by each request
			cancel()
		}
	})
	n, err := h.admin.Workflows().Prune(ctx, b.Before.Time)
	if err != nil && ctx.Err() != nil && r.Context().Err() == nil {
		return prunedBody{n, true}, nil
	}
	return prunedBody{n, false}, err
}
