package admin

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/workflow"
)

// Workflows implements Admin.
func (c *client) Workflows() Workflows { return clientWorkflows{c} }

// clientWorkflows asks the app that has them.
type clientWorkflows struct{ c *client }

func (w clientWorkflows) get(ctx context.Context, path string, query url.Values, into any) error {
	return w.c.ask(ctx, call{method: http.MethodGet, path: path, query: query, into: into})
}

func (w clientWorkflows) List(ctx context.Context, q WorkflowQuery) (workflow.Listing, error) {
	if _, err := q.limit(); err != nil {
		return workflow.Listing{}, err
	}
	var p workflowPage
	if err := w.get(ctx, pathWorkflows, workflowValues(q), &p); err != nil {
		return workflow.Listing{}, err
	}
	l, err := p.listing()
	if err != nil {
		return workflow.Listing{}, fmt.Errorf("%w: %w", errGarbled, err)
	}
	return l, nil
}

func (w clientWorkflows) Count(ctx context.Context) (workflow.Counts, error) {
	var c WorkflowCounts
	if err := w.get(ctx, pathWorkflowCount, nil, &c); err != nil {
		return workflow.Counts{}, err
	}
	return workflow.Counts(c), nil
}

func (w clientWorkflows) Find(ctx context.Context, flow, id string) (pawl.ID, error) {
	var b runName
	err := w.get(ctx, pathWorkflowFind, url.Values{paramFlow: {flow}, paramID: {id}}, &b)
	return b.named(err)
}

func (w clientWorkflows) Show(ctx context.Context, run pawl.ID, depth RunDepth) (*WorkflowRun, error) {
	query := url.Values{paramID: {run.String()}, paramDepth: {nameOf(depthNames, int(depth))}, paramForm: {formNames[PayloadBase64]}}
	var d WorkflowDetail
	if err := w.get(ctx, pathWorkflowShow, query, &d); err != nil {
		return nil, err
	}
	all, err := d.WorkflowRun()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errGarbled, err)
	}
	return all, nil
}

func (w clientWorkflows) Signal(ctx context.Context, run pawl.ID, name string, payload []byte, dedup string) error {
	if len(payload) > workflow.MaxValue {
		return fmt.Errorf("the signal has %d bytes, at most %d are stored: %w", len(payload), workflow.MaxValue, workflow.ErrTooLarge)
	}
	text := base64.StdEncoding.EncodeToString(payload)
	body := signalBody{run, Text(name), &Payload{Size: len(payload), Base64: &text}, Text(dedup)}
	return w.c.post(ctx, pathWorkflowSignal, body, nil)
}

func (w clientWorkflows) Cancel(ctx context.Context, run pawl.ID, reason string) error {
	return w.c.post(ctx, pathWorkflowCancel, askBody{run, Text(reason)}, nil)
}

func (w clientWorkflows) Terminate(ctx context.Context, run pawl.ID, reason string) error {
	return w.c.post(ctx, pathWorkflowTerminate, askBody{run, Text(reason)}, nil)
}

func (w clientWorkflows) Pause(ctx context.Context, run pawl.ID) error {
	return w.c.post(ctx, pathWorkflowPause, runName{run}, nil)
}

func (w clientWorkflows) Resume(ctx context.Context, run pawl.ID) error {
	return w.c.post(ctx, pathWorkflowResume, runName{run}, nil)
}

func (w clientWorkflows) Fork(ctx context.Context, run pawl.ID, from, newID string) (pawl.ID, error) {
	var b runName
	err := w.c.post(ctx, pathWorkflowFork, forkBody{run, Text(from), Text(newID)}, &b)
	return b.named(err)
}

// named is the run of an answer, which must name one.
func (b *runName) named(err error) (pawl.ID, error) {
	if err == nil && b.Run.IsZero() {
		err = fmt.Errorf("%w: it names no run", errGarbled)
	}
	return b.Run, err
}

func (w clientWorkflows) Verify(ctx context.Context, run pawl.ID) error {
	return w.c.ask(ctx, call{method: http.MethodPost, path: pathWorkflowVerify, body: runName{run}})
}

// Prune asks again and again, since one request removes for a bounded time.
func (w clientWorkflows) Prune(ctx context.Context, before time.Time) (n int, err error) {
	tell := bolt.ProgressOf(ctx)
	for more := true; more; {
		var b prunedBody
		if err := w.c.post(ctx, pathWorkflowPrune, pruneBody{Stamp{before}}, &b); err != nil {
			return n, err
		}
		n, more = n+b.Removed, b.More
		tell(int64(n), -1)
	}
	return n, nil
}
