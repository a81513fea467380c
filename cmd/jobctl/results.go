package main

import (
	"cmp"
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

// untried returns how many jobs were not tried.
func (c *change) untried() (n int) {
	for _, r := range c.results {
		if r.err == errNotTried {
			n++
		}
	}
	return n
}

// failed returns the failures to report. It omits a job that a filter selected and that has
// changed in the meantime: another process was faster.
func (c *change) failed() (failed []error) {
	for _, r := range c.results {
		word := c.outcome(r.err)
		moved := word == "not_found" || word == "ended" || word == c.verb.miss
		if r.err != nil && r.err != errNotTried && !errors.Is(r.err, admin.ErrCancelRequested) && !(c.chosen && moved) {
			failed = append(failed, r.err)
		}
	}
	return failed
}

// report prints what was done and returns the rest as an error, with the exit code of the first
// failure.
func (c *change) report(ctx context.Context) error {
	if err := c.print(); err != nil {
		return err
	}
	noun, failed, untried := c.verb.noun(), c.failed(), c.untried()
	of := fmt.Sprintf("%d %ss", len(c.results), noun)
	var all alike // the first error of each group is an example
	unknown := 0
	for _, err := range failed {
		all.add(err.Error())
		if errors.Is(err, pawl.ErrUnknownOutcome) {
			unknown++
		}
	}
	lines := all.lines(noun)
	alike := len(lines) == 1
	if untried > 0 && ctx.Err() != nil {
		if unknown > 0 {
			lines = append(lines, lookFirst)
		}
		lines = append(lines, fmt.Sprintf("%s not tried; run the command again for the rest.", plural(untried, noun)))
		return &failure{exitInterrupted, fmt.Sprintf("interrupted: %d of %s were %s", len(c.results.possible()), of, c.verb.did), strings.Join(lines, "\n")}
	}
	if len(failed) == 0 {
		return nil
	}
	first := c.explained(failed[0])
	if len(failed) == 1 && untried == 0 {
		return partial{first}
	}
	if untried > 0 {
		lines = append(lines, fmt.Sprintf("and %s not tried after that", plural(untried, noun)))
	}
	if alike && first.next != "" { // a single cause has a single remedy
		lines = append(lines, first.next)
	}
	if untried > 0 || first.code == exitLocked {
		lines = append(lines, c.again())
	}
	head := fmt.Sprintf("%d of %s could not be %s:", len(failed), of, c.verb.did)
	if unknown == len(failed) {
		head = fmt.Sprintf("it is not known whether %d of %s were %s:", unknown, of, c.verb.did)
	}
	return partial{&failure{first.code, head, strings.Join(lines, "\n")}}
}

// again returns what to do if only some things were done. Filters no longer select the items
// that were done.
func (c *change) again() string {
	switch {
	case c.chosen:
		return "Then run the command again: it finds the rest."
	case c.verb.runs:
		return "Then 'jobctl wf show' shows the state of each."
	}
	return "Then 'jobctl job show' shows the state of each."
}

// explained returns the failure of one job or run, with the remedy of the verb.
func (c *change) explained(err error) *failure {
	if c.verb.runs {
		return c.app.failure(c.app.runFailure(err))
	}
	f := c.app.failure(err)
	switch {
	case errors.Is(err, pawl.ErrUnknownOutcome):
		f.next = lookFirst + "\n" + listShows
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

// outcomes are the words for errors in JSON, in the order in which they are tried.
var outcomes = []struct {
	is   error
	word string // "" for that of the verb
}{
	{errNotTried, "not_tried"},
	{admin.ErrCancelRequested, "asked_to_cancel"},
	{admin.ErrWorkflowJob, "workflow_job"},
	{pawl.ErrNotFound, "not_found"},
	{workflow.ErrNotFound, "not_found"},
	{workflow.ErrNotRunning, "ended"},
	{pawl.ErrNotEligible, ""},
	{pawl.ErrConflict, "conflict"},
	{pawl.ErrCorrupt, "damaged"},
	{pawl.ErrUnknownOutcome, "unknown"},
}

// outcome returns the word for an error in JSON.
func (c *change) outcome(err error) string {
	if err == nil {
		return fieldOf(c.verb.did)
	}
	for _, o := range outcomes {
		if errors.Is(err, o.is) {
			return cmp.Or(o.word, c.verb.miss)
		}
	}
	return "failed"
}
