package admin

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/workflow"
)

// runsOfFilter returns which runs without a job a filter selects, by queue and flow. Such runs
// have usually ended. Any other condition of a filter applies only to jobs.
func runsOfFilter(f Filter) (flow string, some bool) {
	flow, isRun := strings.CutPrefix(f.Kind, workflow.KindPrefix)
	jobs := f
	jobs.Queue, jobs.Kind, jobs.Queues = "", "", nil
	return flow, jobs.isZero() && (f.Kind == "" || isRun && flow != "")
}

func inQueue(f *Filter, queue string) bool {
	return (f.Queue == "" || f.Queue == queue) && anyOf(f.Queues, queue)
}

// runs writes the runs that have no job, or that got one while the jobs were read.
func (x *exporter) runs(ctx context.Context) error {
	flow, some := runsOfFilter(x.opts.Filter)
	if !some {
		return nil
	}
	query := WorkflowQuery{Filter: workflow.Filter{Flow: flow}}
	for run, err := range WorkflowRuns(ctx, x.from.Workflows(), query) {
		switch {
		case errors.As(err, new(*UnsupportedError)): // the engine keeps no runs
			return nil
		case err != nil:
			return err
		case x.carried[run.Run] || run.Status != "" && !inQueue(&x.opts.Filter, run.Queue):
			continue
		case run.Run.IsZero():
			err = x.damage(pawl.ID{}, fmt.Errorf("%w: a run: %s", pawl.ErrCorrupt, run.Error))
		default:
			_, err = x.family(ctx, run.Run)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// family writes a run and the runs that it waits for, because it could not continue without
// them. It reports whether the run exists.
func (x *exporter) family(ctx context.Context, run pawl.ID) (known bool, err error) {
	for wanted := []pawl.ID{run}; len(wanted) > 0; {
		id := wanted[0]
		if wanted = wanted[1:]; x.carried[id] {
			known = known || id == run
			continue
		}
		children, err := x.run(ctx, id)
		switch {
		case err == nil:
			known = known || id == run
		case errors.As(err, new(*UnsupportedError)): // the engine keeps no runs
			return false, nil
		case !errors.Is(err, workflow.ErrNotFound):
			return known, err
		case id != run:
			err = x.damage(id, fmt.Errorf("%w: a run waits for run %s, which is not there", pawl.ErrCorrupt, id))
			if err != nil {
				return known, err
			}
		}
		wanted = append(wanted, children...)
	}
	return known, nil
}

// run writes a run and its job, both as of one moment, and returns the runs that it waits for.
func (x *exporter) run(ctx context.Context, id pawl.ID) (children []pawl.ID, err error) {
	parts, err := x.parts(ctx, id)
	if err != nil && !unreadable(err) {
		return nil, err
	}
	x.carried[id] = true
	if err != nil {
		return nil, x.damage(id, err)
	}
	var check workflow.RowsCheck
	var run *workflow.Carried
	for i := range parts {
		if run, err = check.Add(&parts[i]); err != nil { // no import would accept it
			return nil, x.damage(id, fmt.Errorf("%w: %w", pawl.ErrCorrupt, err))
		}
	}
	if first := parts[0]; first.JobErr != nil {
		if err := x.damage(id, first.JobErr); err != nil {
			return nil, err
		}
	} else if first.Job != nil {
		if err := x.job(first.Job, nil); err != nil {
			return nil, err
		}
	}
	for i := range parts {
		line := exportRunOf(&parts[i])
		if line.Last {
			line.identify(run)
		}
		if err := x.to.Encode(exportLine{Run: &line}); err != nil {
			return nil, err
		}
	}
	x.done.Runs++
	return run.Children, nil
}

// unreadable reports whether the error concerns the run, and not the whole file.
func unreadable(err error) bool {
	return errors.Is(err, pawl.ErrCorrupt) || errors.Is(err, workflow.ErrTooMany) || errors.Is(err, errRestless)
}

var errRestless = errors.New("the run changes all the while; pause it, or export a backup")

// attempts is how often to retry reading a run that changes between its parts.
const attempts = 20

// parts reads all parts of a run as of one moment.
func (x *exporter) parts(ctx context.Context, id pawl.ID) (parts []workflow.Rows, err error) {
	w := x.from.Workflows()
	for range attempts {
		parts = parts[:0]
		for after := ""; ; {
			p, err := w.Rows(ctx, id, after)
			if err != nil {
				return nil, err
			}
			if len(parts) > 0 && (p.Mark != parts[0].Mark || p.Part != len(parts)+1) {
				break
			}
			parts = append(parts, p)
			if after = p.Next; after == "" {
				return parts, nil
			}
		}
	}
	return nil, fmt.Errorf("run %s: %w", id, errRestless)
}
