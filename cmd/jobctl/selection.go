package main

import (
	"context"
	"slices"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/workflow"
)

// selection is the set of jobs or runs that a change concerns.
type selection interface {
	// given reports whether there is a filter, and String describes it.
	given() bool
	String() string

	// read parses the arguments that name jobs or runs.
	read(a *app, words string, args []string) error

	// named returns what the arguments name, with an error for each missing item.
	named(ctx context.Context, queue admin.Admin) (results, error)

	// match lists what the filters select, at most limit items unless limit is 0.
	match(ctx context.Context, queue admin.Admin, limit int, damaged *damage) (results, error)

	// condition makes the change require that the filters still match.
	condition(h *how)
}

// jobSelection is a set of jobs to change.
type jobSelection struct {
	filterFlags
	ids     []pawl.ID
	cascade bool // also change the jobs that wait for the success of the named ones
}

func (s *jobSelection) read(a *app, words string, args []string) (err error) {
	if s.cascade && len(args) == 0 {
		return misused(words, "--cascade was given without an ID; name the jobs, or use only filters")
	}
	s.ids, err = a.readIDs(words, args)
	return err
}

// named puts a job before the jobs that wait for it. So if the change is interrupted, the same command
// finds the remaining jobs.
func (s *jobSelection) named(ctx context.Context, queue admin.Admin) (all results, err error) {
	for _, id := range s.ids {
		all = append(all, result{id: id})
	}
	if !s.cascade {
		return all, nil
	}
	known := make(map[pawl.ID]bool)
	for _, id := range s.ids {
		known[id] = true
	}
	for _, id := range s.ids {
		waiting, err := queue.Dependents(ctx, id)
		if err != nil {
			return nil, err
		}
		for _, id := range waiting {
			if !known[id] {
				known[id] = true
				all = append(all, result{id: id})
			}
		}
	}
	return all, nil
}

func (s *jobSelection) match(ctx context.Context, queue admin.Admin, limit int, damaged *damage) (all results, err error) {
	if err := s.known(ctx, queue); err != nil {
		return nil, err
	}
	for _, f := range s.filters() {
		q := admin.Query{Filter: f, Detail: admin.IDs}
		for e, err := range admin.Jobs(ctx, queue, q) {
			switch {
			case limit > 0 && len(all) == limit:
				return all, nil
			case err != nil && e != nil:
				damaged.add(err)
			case err != nil:
				return nil, err
			default:
				all = append(all, result{id: e.ID})
			}
		}
	}
	return all, nil
}

func (s *jobSelection) condition(h *how) {
	all := s.filters() // they differ only in the state
	one := all[0]
	if len(all) > 1 {
		one.State = ""
		for _, f := range all {
			one.States = append(one.States, f.State)
		}
	}
	h.only = &one
}

// runSelection is a set of runs to change.
type runSelection struct {
	runFilter
	refs    []ref
	blocked bool // record whether named runs are blocked
}

func (s *runSelection) read(a *app, words string, args []string) (err error) {
	s.refs, err = a.readRefs(words, args)
	return err
}

func (s *runSelection) named(ctx context.Context, queue admin.Admin) (all results, err error) {
	w := queue.Workflows()
	for _, r := range s.refs {
		one := result{name: r.text}
		one.id, one.err = r.find(ctx, w)
		if one.err == nil && s.blocked {
			var run *admin.WorkflowRun
			if run, one.err = w.Show(ctx, one.id, admin.RunInfo); one.err == nil {
				one.blocked = run.Status == workflow.Blocked
			}
		}
		if one.err != nil && !ofOne(one.err) {
			return nil, one.err
		}
		if !slices.ContainsFunc(all, func(other result) bool { return one.err == nil && other.id == one.id }) {
			all = append(all, one)
		}
	}
	return all, nil
}

func (s *runSelection) match(ctx context.Context, queue admin.Admin, limit int, damaged *damage) (all results, err error) {
	for run, err := range admin.WorkflowRuns(ctx, queue.Workflows(), s.query()) {
		switch {
		case err != nil:
			return nil, err
		case limit > 0 && len(all) == limit:
			return all, nil
		}
		if err := damagedRun(&run); err != nil {
			damaged.add(err)
		} else if s.fits(&run) {
			all = append(all, result{id: run.Run, blocked: run.Status == workflow.Blocked})
		}
	}
	return all, nil
}

// condition implements selection. The flow and the ID of a run never change.
func (s *runSelection) condition(h *how) {
	if h.statuses = s.statuses; s.status != "" {
		h.statuses = []workflow.Status{workflow.Status(s.status)}
	}
}
