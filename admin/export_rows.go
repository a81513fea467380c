package admin

import (
	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/workflow"
)

// exportRun is one line of an export: a part of a run in JSON. Like those of [Job], its field
// names are stable. The rows have the form that they have in the file: see "Runs in an export"
// in docs/internals/format.md.
type exportRun struct {
	Run  pawl.ID `json:"run"`
	Form int     `json:"form"` // of the rows
	Part int     `json:"part"` // from 1
	Last bool    `json:"last"`
	All  int     `json:"all_rows"` // in all parts

	// Identify the run for people and for other programs; set only in its last part.
	Flow   *Text    `json:"flow,omitempty"`
	ID     *Text    `json:"id,omitempty"` // the ID from its starter
	Status string   `json:"status,omitempty"`
	Parent *pawl.ID `json:"parent,omitempty"`

	Rows []exportRow `json:"rows"`
}

// exportRow is one row: the bucket, the part of the key after the run, and the content.
type exportRow struct {
	In    string `json:"in"`
	Key   []byte `json:"key,omitempty"`
	Value []byte `json:"value"`
}

func exportRunOf(p *workflow.Rows) exportRun {
	rows := each(p.Rows, func(row workflow.Row) exportRow { return exportRow(row) })
	return exportRun{Run: p.Run, Form: p.Form, Part: p.Part, Last: p.Last(), All: p.All, Rows: rows}
}

// identify fills in which run it is.
func (x *exportRun) identify(run *workflow.Carried) {
	flow, id := Text(run.Flow), Text(run.ID)
	x.Flow, x.ID, x.Status = &flow, &id, string(run.Status)
	if !run.Parent.IsZero() {
		x.Parent = &run.Parent
	}
}

// fits reports whether the line describes the same run as the row.
func (x *exportRun) fits(run *workflow.Carried) bool {
	var parent pawl.ID
	if x.Parent != nil {
		parent = *x.Parent
	}
	return textOf(x.Flow) == run.Flow && textOf(x.ID) == run.ID && x.Status == string(run.Status) && parent == run.Parent
}

// behind stands for an unknown position after which there is more.
const behind = "more"

func (x *exportRun) part() *workflow.Rows {
	rows := each(x.Rows, func(row exportRow) workflow.Row { return workflow.Row(row) })
	p := &workflow.Rows{Run: x.Run, Form: x.Form, Part: x.Part, All: x.All, Rows: rows}
	if !x.Last {
		p.Next = behind
	}
	return p
}
