package dashboard

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
)

// fork is what a user asks for.
type fork struct {
	id       pawl.ID
	run      *admin.WorkflowRun
	from, to string // the step, and the ID of the new run
}

// forkOf reads a request for a fork.
func (q *request) forkOf() (fork, error) {
	id, err := q.runID()
	if err != nil {
		return fork{}, err
	}
	f := fork{id: id, from: q.Form.Get("from"), to: strings.TrimSpace(q.Form.Get("to"))}
	f.run, err = q.admin().Workflows().Show(q.ctx, id, admin.RunJournal)
	return f, err
}

// steps are the steps that a fork may begin with, in the order of the journal.
func (f *fork) steps() (steps []string) {
	for i := range f.run.Journal {
		if step := f.run.Journal[i].Step(); step != "" {
			steps = append(steps, step)
		}
	}
	return steps
}

// check refuses what is missing, before a file is opened for writing.
func (f *fork) check() error {
	switch {
	case f.to == "":
		return &refusal{http.StatusBadRequest, "The new run has no ID.", "Go back and give one that no run of the flow has."}
	case !slices.Contains(f.steps(), f.from):
		return &refusal{http.StatusBadRequest, "The run has no step " + clipped(f.from) + ".", "Go back and choose a step of its journal."}
	}
	return nil
}

func (q *request) forkCommand(f fork) string {
	return q.command("wf", "fork", f.id.String(), "--from", cmp.Or(f.from, "STEP"), "--id", cmp.Or(f.to, "NEW"))
}

// forkChange starts a new run from a step of another.
func forkChange() change {
	return change{path: "fork", action: Fork,
		plan: func(q *request) (plan, error) {
			f, err := q.forkOf()
			if err != nil {
				return plan{}, err
			}
			steps := f.steps()
			p := plan{Title: "Fork run " + f.id.String(), Keep: url.Values{"id": {f.id.String()}}, Back: link("run", "id", f.id), Button: "Start the new run",
				Lines: []string{"A new run starts with the input of this run and the results of its steps before the chosen one. It executes that step and all later ones itself, also if this run has executed them. This run does not change."},
				Fields: []field{
					{Name: "from", Label: "First step", Value: cmp.Or(f.from, first(steps)), Known: steps, Help: "that the new run executes itself", Required: true},
					{Name: "to", Label: "ID of the new run", Value: f.to, Help: "that no run of flow " + f.run.Flow + " has", Required: true},
				},
				Commands: []string{q.forkCommand(f)}}
			if len(steps) == 0 {
				p.Lines, p.Fields, p.Button = []string{"The run has not taken a step yet, so there is nothing to fork from."}, nil, ""
			}
			return p, nil
		},
		do: func(q *request) (result, error) {
			f, err := q.forkOf()
			if err == nil {
				err = f.check()
			}
			if err != nil {
				return result{target: f.id.String()}, err
			}
			r := result{Title: "Fork run " + f.id.String(), target: f.id.String() + " from " + f.from, Commands: []string{q.forkCommand(f)}}
			made, err := q.admin().Workflows().Fork(q.ctx, f.id, f.from, f.to)
			r.OK, r.Back, r.Lines = err == nil, link("run", "id", made), []string{"Run " + made.String() + " was started."}
			return r, err
		},
	}
}
