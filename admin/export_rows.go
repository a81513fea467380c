package admin

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/workflow"
)

// What is stored of a run, on its way through an export and through the API.

// exportRun is a part of a run in JSON: a line of an export. Its field names are a promise, as
// those of [Job] are. The rows are as they lie in the file: see "Runs in an export" in
// docs/design.md.
type exportRun struct {
	Run  pawl.ID `json:"run"`
	Form int     `json:"form"` // of the rows
	Part int     `json:"part"` // from 1
	Last bool    `json:"last"`
	All  int     `json:"all_rows"` // in all parts

	// Which run it is, for people and for other programs; in its last part alone.
	Flow   *Text    `json:"flow,omitempty"`
	ID     *Text    `json:"id,omitempty"` // that its starter gave it
	Status string   `json:"status,omitempty"`
	Parent *pawl.ID `json:"parent,omitempty"`

	Rows []exportRow `json:"rows"`
}

// exportRow is one row: the bucket, its key behind the run, its content.
type exportRow struct {
	In    string `json:"in"`
	Key   []byte `json:"key,omitempty"`
	Value []byte `json:"value"`
}

func exportRunOf(p *workflow.Rows) exportRun {
	x := exportRun{Run: p.Run, Form: p.Form, Part: p.Part, Last: p.Last(), All: p.All, Rows: make([]exportRow, len(p.Rows))}
	for i, row := range p.Rows {
		x.Rows[i] = exportRow(row)
	}
	return x
}

// tell says which run it is.
func (x *exportRun) tell(run *workflow.Carried) {
	flow, id := Text(run.Flow), Text(run.ID)
	x.Flow, x.ID, x.Status = &flow, &id, string(run.Status)
	if !run.Parent.IsZero() {
		x.Parent = &run.Parent
	}
}

// fits reports whether the line says of its run what the row says.
func (x *exportRun) fits(run *workflow.Carried) bool {
	var parent pawl.ID
	if x.Parent != nil {
		parent = *x.Parent
	}
	return textOf(x.Flow) == run.Flow && textOf(x.ID) == run.ID && x.Status == string(run.Status) && parent == run.Parent
}

// behind stands for a place of which it is known only that more comes.
const behind = "more"

func (x *exportRun) part() *workflow.Rows {
	p := &workflow.Rows{Run: x.Run, Form: x.Form, Part: x.Part, All: x.All, Rows: make([]workflow.Row, len(x.Rows))}
	if !x.Last {
		p.Next = behind
	}
	for i, row := range x.Rows {
		p.Rows[i] = workflow.Row(row)
	}
	return p
}

// rowsBody is an answer with a part of a run, and its job beside the first.
type rowsBody struct {
	exportRun
	Next  string   `json:"next"`
	Mark  uint64   `json:"mark,string"`
	Job   *Job     `json:"job"`
	Error *problem `json:"job_error"`
}

// partsBody is what restore is given.
type partsBody struct {
	Parts list[exportRun] `json:"parts"`
}

func (h *handler) workflowRows(r *http.Request, _ []byte) (any, error) {
	p := params{values: r.URL.Query()}
	text, after := p.text(paramID), p.text(paramAfter)
	if err := p.end(); err != nil {
		return nil, err
	}
	run, err := pawl.ParseID(text)
	if err != nil {
		return nil, err
	}
	rows, err := h.admin.Workflows().Rows(r.Context(), run, after)
	if err != nil {
		return nil, err
	}
	b := rowsBody{exportRun: exportRunOf(&rows), Next: rows.Next, Mark: rows.Mark}
	b.Error, _ = problemOf(rows.JobErr)
	if rows.Job != nil {
		job := JobOf(rows.Job, PayloadBase64)
		b.Job = &job
	}
	return b, nil
}

func (h *handler) restoreWorkflows(r *http.Request, body []byte) (any, error) {
	var b partsBody
	if err := decode(body, &b); err != nil {
		return nil, err
	}
	parts := make([]*workflow.Rows, len(b.Parts))
	for i := range b.Parts {
		parts[i] = b.Parts[i].part()
	}
	return nothing{}, h.admin.Workflows().RestoreRows(r.Context(), parts...)
}

// always says that an answer may be large.
func always(*http.Request) bool { return true }

func (w clientWorkflows) Rows(ctx context.Context, run pawl.ID, after string) (workflow.Rows, error) {
	query := url.Values{paramID: {run.String()}}
	if after != "" {
		query.Set(paramAfter, after)
	}
	var b rowsBody
	if err := w.get(ctx, pathWorkflowRows, query, &b); err != nil {
		return workflow.Rows{}, err
	}
	rows := b.part()
	rows.Next, rows.Mark, rows.JobErr = b.Next, b.Mark, b.Error.err()
	if b.Run != run || b.Last != (b.Next == "") {
		return workflow.Rows{}, fmt.Errorf("%w: it has a part of another run, or none behind it", errGarbled)
	}
	if b.Job != nil {
		var err error
		if rows.Job, err = b.Job.Envelope(); err != nil {
			return workflow.Rows{}, fmt.Errorf("%w: %w", errGarbled, err)
		}
	}
	return *rows, nil
}

func (w clientWorkflows) RestoreRows(ctx context.Context, parts ...*workflow.Rows) error {
	var b partsBody
	for _, p := range parts {
		b.Parts = append(b.Parts, exportRunOf(p))
	}
	return w.c.post(ctx, pathWorkflowRestore, b, nil)
}

func (r runReader) Rows(ctx context.Context, run pawl.ID, after string) (workflow.Rows, error) {
	return r.r.Rows(ctx, run, after)
}

func (l localWorkflows) RestoreRows(ctx context.Context, parts ...*workflow.Rows) error {
	return l.engine().RestoreRows(ctx, parts...)
}

func (w fileWorkflows) Rows(ctx context.Context, run pawl.ID, after string) (rows workflow.Rows, err error) {
	err = w.look(func(r runReader) error {
		rows, err = r.Rows(ctx, run, after)
		return err
	})
	return rows, err
}

func (w fileWorkflows) RestoreRows(ctx context.Context, parts ...*workflow.Rows) error {
	return w.f.change(func(l local) error { return l.Workflows().RestoreRows(ctx, parts...) })
}
