package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/workflow"
)

// errNotTried is the result of a job that the command did not reach before an error or an
// interruption.
var errNotTried = errors.New("not tried")

// results has the outcome for each job of one change, in the given order.
type results []result

type result struct {
	id      pawl.ID
	err     error  // nil: done, or still to do
	name    string // name of a run as given; "" if a filter selected it
	blocked bool   // the run is blocked
}

// possible returns the jobs for which no error is known yet.
func (rs results) possible() (todo []*result) {
	for i := range rs {
		if rs[i].err == nil {
			todo = append(todo, &rs[i])
		}
	}
	return todo
}

func (rs results) untried() (left []pawl.ID) {
	for _, r := range rs {
		if r.err == errNotTried {
			left = append(left, r.id)
		}
	}
	return left
}

// failed returns the failures to report. It omits a job that a filter selected and that has
// changed in the meantime: another process was faster.
func (c *change) failed() (failed []result) {
	for _, r := range c.results {
		word := c.outcome(r.err)
		moved := word == "not_found" || word == "ended" || word == c.verb.miss
		if r.err != nil && r.err != errNotTried && !errors.Is(r.err, admin.ErrCancelRequested) && !(c.chosen && moved) {
			failed = append(failed, r)
		}
	}
	return failed
}

// report prints what was done and returns the rest as an error.
func (c *change) report(ctx context.Context) error {
	if err := c.print(); err != nil {
		return err
	}
	show := "job show"
	if c.verb.runs {
		show = "wf show"
	}
	v := verdict{noun: c.verb.noun(), did: c.verb.did, all: len(c.results), done: len(c.results.possible()), untried: len(c.results.untried()), again: againOf(c.chosen, show)}
	for _, r := range c.failed() {
		v.failed = append(v.failed, r.err)
	}
	return v.err(ctx, c.explained)
}

// verdict summarizes a change of several things.
type verdict struct {
	noun, did          string
	all, done, untried int
	failed             []error
	again              string // what to do if only some were done
}

// err returns nil if nothing failed. The exit code is that of the first failure.
func (v *verdict) err(ctx context.Context, explain func(error) *failure) error {
	switch {
	case v.untried > 0 && ctx.Err() != nil:
		return &failure{exitInterrupted, fmt.Sprintf("interrupted: %d of %d %ss were %s", v.done, v.all, v.noun, v.did),
			fmt.Sprintf("%s not tried; run the command again for the rest.", plural(v.untried, v.noun))}
	case len(v.failed) == 0:
		return nil
	}
	first := explain(v.failed[0])
	if len(v.failed) == 1 && v.untried == 0 {
		return first
	}
	lines := reasons(v.failed, v.noun)
	alike := len(lines) == 1
	if v.untried > 0 {
		lines = append(lines, fmt.Sprintf("and %s not tried after that", plural(v.untried, v.noun)))
	}
	if alike && first.next != "" { // a single cause has a single remedy
		lines = append(lines, first.next)
	}
	if v.untried > 0 || first.code == exitLocked {
		lines = append(lines, v.again)
	}
	return &failure{first.code, fmt.Sprintf("%d of %d %ss could not be %s:", len(v.failed), v.all, v.noun, v.did), strings.Join(lines, "\n")}
}

// reasons returns the errors of jobs or runs, one line for each group of similar errors, with
// the first as an example; see [alike].
func reasons(errs []error, of string) []string {
	var all alike
	for _, err := range errs {
		all.add(err.Error())
	}
	return all.lines(of)
}

// againOf returns what to do if only some things were done. Filters no longer select the items
// that were done.
func againOf(chosen bool, show string) string {
	if chosen {
		return "Then run the command again: it finds the rest."
	}
	return fmt.Sprintf("Then 'jobctl %s' shows the state of each.", show)
}

// explained returns the failure of one job or run, with the remedy of the verb.
func (c *change) explained(err error) *failure {
	if c.verb.runs {
		return c.app.failure(c.app.runFailure(err))
	}
	f := c.app.failure(err)
	switch {
	case f.code != exitConflict, errors.Is(err, admin.ErrWorkflowJob):
	case errors.Is(err, pawl.ErrNotEligible):
		f.next = c.verb.only + "; 'jobctl job show' has the details."
	case c.verb.held:
		f.next = "It stays dead; 'jobctl job show' has its unique key and its deadline."
	}
	return f
}

func (c *change) print() error {
	a, asked := c.app, 0
	v := changeView{did: c.verb.did, DryRun: c.dry}
	if c.verb.asks {
		v.Asked = &asked
	}
	all := make([]resultView, 0, len(c.results))
	for _, r := range c.results {
		one := resultView{Result: c.outcome(r.err)}
		switch {
		case !c.verb.runs:
			one.ID = r.id.String()
		case r.id.IsZero():
			one.Run = r.name
		default:
			one.Run = r.id.String()
		}
		switch {
		case r.err == nil:
			v.Done++
		case errors.Is(r.err, admin.ErrCancelRequested):
			asked++
		default:
			v.Skipped++
			text := r.err.Error()
			one.Error = &text
		}
		all = append(all, one)
	}
	if v.Jobs = all; c.verb.runs {
		v.Jobs, v.Runs = nil, all
	}
	switch {
	case len(all) == 0: // the queue could not be reached
		return nil
	case a.flags.output == "json":
		return a.print(v)
	case a.flags.output == "jsonl":
		for _, one := range all {
			if err := a.print(one); err != nil {
				return err
			}
		}
	case a.flags.output == "ids":
		for _, r := range c.results.possible() {
			fmt.Fprintln(a.stdout, r.id)
		}
	case c.dry:
		fmt.Fprintf(a.stdout, "would be %s: %d, skipped: %d; nothing was changed\n", c.verb.did, v.Done, v.Skipped)
	case asked > 0:
		fmt.Fprintf(a.stdout, "%s %d, asked to cancel %d, skipped %d\n", c.verb.did, v.Done, asked, v.Skipped)
		a.say("note: a running job ends when its handler returns; it stays leased until then")
	case v.Done > 0 || len(all) > 1 || c.chosen:
		fmt.Fprintf(a.stdout, "%s %d, skipped %d\n", c.verb.did, v.Done, v.Skipped)
	}
	return nil
}

// outcome returns the word for an error in JSON.
func (c *change) outcome(err error) string {
	switch {
	case err == nil:
		return fieldOf(c.verb.did)
	case err == errNotTried:
		return "not_tried"
	case errors.Is(err, admin.ErrCancelRequested):
		return "asked_to_cancel"
	case errors.Is(err, admin.ErrWorkflowJob):
		return "workflow_job"
	case errors.Is(err, pawl.ErrNotFound), errors.Is(err, workflow.ErrNotFound):
		return "not_found"
	case errors.Is(err, workflow.ErrNotRunning):
		return "ended"
	case errors.Is(err, pawl.ErrNotEligible):
		return c.verb.miss
	case errors.Is(err, pawl.ErrConflict):
		return "conflict"
	case errors.Is(err, pawl.ErrCorrupt):
		return "damaged"
	case errors.Is(err, pawl.ErrUnknownOutcome):
		return "unknown"
	}
	return "failed"
}
