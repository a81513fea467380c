package admin

import (
	"net/url"
	"strconv"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/workflow"
)

// What travels about workflows.

// Names of the query parameters besides those of a list of jobs.
const (
	paramFlow   = "flow"
	paramStatus = "status"
	paramPrefix = "id_prefix"
	paramID     = "id"
	paramDepth  = "depth" // info, journal or values
)

var depthNames = []string{RunInfo: "info", RunJournal: "journal", RunValues: "values"}

// runStatuses are all that a run may have, for those who choose by one: a misspelt one would
// match nothing, and look like good news.
var runStatuses = []workflow.Status{
	workflow.Running, workflow.Sleeping, workflow.Waiting, workflow.Paused, workflow.Blocked, workflow.Dead,
	workflow.Done, workflow.Failed, workflow.Cancelled, workflow.Terminated,
}

// WorkflowStatuses are the statuses that a run may have: those of an open one, and those in
// which it has ended.
func WorkflowStatuses() []workflow.Status { return append([]workflow.Status(nil), runStatuses...) }

func workflowValues(q WorkflowQuery) url.Values {
	v := url.Values{}
	for name, text := range map[string]string{
		paramFlow: q.Flow, paramStatus: string(q.Status), paramPrefix: q.Prefix, paramAfter: q.After,
	} {
		if text != "" {
			v.Set(name, text)
		}
	}
	if q.Limit != 0 {
		v.Set(paramLimit, strconv.Itoa(q.Limit))
	}
	return v
}

func workflowQueryOf(v url.Values) (WorkflowQuery, error) {
	p := params{values: v}
	q := WorkflowQuery{
		Filter: workflow.Filter{
			Flow: p.text(paramFlow), Status: workflow.Status(p.text(paramStatus)), Prefix: p.text(paramPrefix),
		},
		After: p.text(paramAfter),
		Limit: p.number(paramLimit),
	}
	return q, p.end()
}

type workflowPage struct {
	Runs []Workflow `json:"runs"`
	Next string     `json:"next"`
}

func workflowPageOf(l workflow.Listing) workflowPage {
	p := workflowPage{Runs: make([]Workflow, len(l.Runs)), Next: l.Next}
	for i := range l.Runs {
		p.Runs[i] = WorkflowOf(l.Runs[i])
	}
	return p
}

func (p *workflowPage) listing() (l workflow.Listing, err error) {
	l.Next = p.Next
	for i := range p.Runs {
		info, err := p.Runs[i].Info()
		if err != nil {
			return workflow.Listing{}, err
		}
		l.Runs = append(l.Runs, info)
	}
	return l, nil
}

// runName names a run, in a body and as an answer.
type runName struct {
	Run pawl.ID `json:"run"`
}

// askBody asks something of a run; Reason is for cancel and terminate alone.
type askBody struct {
	Run    pawl.ID `json:"run"`
	Reason Text    `json:"reason,omitempty"`
}

type signalBody struct {
	Run     pawl.ID  `json:"run"`
	Name    Text     `json:"name"`
	Payload *Payload `json:"payload"`
	Dedup   Text     `json:"dedup,omitempty"`
}

type forkBody struct {
	Run   pawl.ID `json:"run"`
	From  Text    `json:"from"`
	NewID Text    `json:"new_id"`
}

type pruneBody struct {
	Before Stamp `json:"before"`
}

// prunedBody is what one request has removed. More says that it ended before all was.
type prunedBody struct {
	Removed int  `json:"removed"`
	More    bool `json:"more"`
}

// mismatch is a [workflow.DeterminismError] in JSON.
type mismatch struct {
	Flow   Text   `json:"flow"`
	ID     Text   `json:"id"`
	Want   Text   `json:"want"`
	Got    Text   `json:"got"`
	Seq    uint32 `json:"seq"`
	Build  Text   `json:"build"`
	Wrote  Text   `json:"wrote"`
	Reason Text   `json:"reason"`
}

func mismatchOf(e *workflow.DeterminismError) *mismatch {
	return &mismatch{
		Flow: Text(e.Flow), ID: Text(e.ID), Want: Text(e.Want), Got: Text(e.Got), Seq: e.Seq,
		Build: Text(e.Build), Wrote: Text(e.Wrote), Reason: Text(e.Reason),
	}
}

func (m *mismatch) err() *workflow.DeterminismError {
	return &workflow.DeterminismError{
		Flow: string(m.Flow), ID: string(m.ID), Want: string(m.Want), Got: string(m.Got), Seq: m.Seq,
		Build: string(m.Build), Wrote: string(m.Wrote), Reason: string(m.Reason),
	}
}
