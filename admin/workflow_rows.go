package admin

import (
	"context"
	"errors"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/workflow"
)

type rowsRequest struct {
	Run   pawl.ID
	After string
}

var opRows = define(operation[rowsRequest, workflow.Rows]{
	path: "workflows/rows", work: lists, large: always[rowsRequest],
	do: func(ctx context.Context, a Admin, r *rowsRequest) (workflow.Rows, error) {
		return a.Workflows().Rows(ctx, r.Run, r.After)
	},
	check: func(r *rowsRequest, rows *workflow.Rows) error {
		if rows.Run != r.Run {
			return errors.New("it has a part of another run")
		}
		return checkPage(len(rows.Rows), rows.All, r.After, rows.Next)
	},
})

func (w clientRuns) Rows(ctx context.Context, run pawl.ID, after string) (workflow.Rows, error) {
	return ask(ctx, w.c, opRows, rowsRequest{run, after})
}

func (d directRuns) Rows(ctx context.Context, run pawl.ID, after string) (workflow.Rows, error) {
	return readRuns(d, func(r *workflow.Reader) (workflow.Rows, error) { return r.Rows(ctx, run, after) })
}

type restoreRowsRequest struct{ Parts []*workflow.Rows }

var opRestoreRows = defineChange("workflows/restore", func(ctx context.Context, a Admin, r *restoreRowsRequest) error {
	return a.Workflows().RestoreRows(ctx, r.Parts...)
})

func (w clientRuns) RestoreRows(ctx context.Context, parts ...*workflow.Rows) error {
	return send(ctx, w.c, opRestoreRows, restoreRowsRequest{parts})
}

func (d directRuns) RestoreRows(ctx context.Context, parts ...*workflow.Rows) error {
	_, err := changeRuns(d, func(e *workflow.Engine) (nothing, error) { return nothing{}, e.RestoreRows(ctx, parts...) })
	return err
}
