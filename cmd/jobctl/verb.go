package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/workflow"
)

// verb is what a command does to jobs or runs.
type verb struct {
	words  string       // words of the command: "dead retry"
	do     string       // "retry"
	did    string       // "retried"
	ask    string       // "Retry %s?", for "it" or "them"
	states []pawl.State // the states in which it applies
	only   string       // what it applies to, for an error: "Only a dead job can be retried"
	miss   string       // the result of a job in another state: "not_dead"
	list   string       // the command that shows the candidates
	held   bool         // a job in the right state may still be refused
	asks   bool         // a running job gets a request to end, and ends later
	ready  func() error // rejects flags of the verb before anything is read; nil: no check
	apply  apply

	cascades bool // it may also change the jobs that wait for the named ones

	// For runs only.
	runs      bool
	statuses  []workflow.Status // the statuses that filters select among
	later     bool              // it takes effect when the app runs
	noBlocked bool              // it does not end a blocked run
}

func (v *verb) noun() string {
	if v.runs {
		return "run"
	}
	return "job"
}

// tried is how many items one dry run tries.
func (v *verb) tried() int {
	if v.runs {
		return admin.MaxIDs
	}
	return admin.MaxDryIDs
}

// apply carries out the verb on jobs; usually it is admin.Admin.Do.
type apply func(ctx context.Context, queue admin.Admin, how how, ids []pawl.ID) ([]error, error)

// how is how a verb is carried out.
type how struct {
	only     *admin.Filter     // filter that must match a job when it is changed; nil for named jobs
	statuses []workflow.Status // a run must have one of them when it is changed; nil for named runs
	dry      bool              // change nothing, and return the results that a change would have
}

// on returns an action with these settings.
func (h how) on(a admin.Action) admin.Action {
	a.If, a.DryRun = h.only, h.dry
	return a
}

// act returns the apply of an action, which flags may complete.
func act(action *admin.Action) apply {
	return func(ctx context.Context, queue admin.Admin, how how, ids []pawl.ID) ([]error, error) {
		return queue.Do(ctx, how.on(*action), ids...)
	}
}

// actOnRuns is act for runs.
func actOnRuns(action *admin.RunAction) apply {
	return func(ctx context.Context, queue admin.Admin, how how, runs []pawl.ID) ([]error, error) {
		own := *action
		own.If, own.DryRun = how.statuses, how.dry
		return queue.Workflows().Do(ctx, own, runs...)
	}
}

// changeJSON is the part of --help that lists the fields of a changeView.
func (v *verb) changeJSON() string {
	counts, result := fieldOf(v.did), ""
	if v.asks {
		counts += ", asked_to_cancel"
		result = "asked_to_cancel (it runs), workflow_job,\n                "
	}
	return fmt.Sprintf(`one object with %s,
  skipped (how many), dry_run, and
  jobs: a list of id, error and
        result (%s, %snot_found, %s, conflict (its unique key or
                its deadline prevents it), damaged, unknown (whether it
                happened), failed, or not_tried (after an error or an
                interruption))
With -o jsonl only the objects of jobs, one per line; with -o ids the IDs of
those that were %s.
`, counts, fieldOf(v.did), result, v.miss, v.did)
}

// changing returns a command that changes jobs, selected by IDs or filters.
func (a *app) changing(v verb, use, short, long, example string, flags func(*cobra.Command)) *cobra.Command {
	jobs := new(jobSelection)
	ch := &change{app: a, verb: v, selection: jobs}
	c := a.command(&spec{
		use: use + " ID... | - | FILTER... | --all", short: short, args: -1, ids: true,
		long: long + `

With several jobs it changes those it can; the exit code is that of the first failure.
An ID of - reads IDs from standard input. With filters or --all it first reports how
many jobs match, and asks; -o json, jsonl and ids do not ask and need -y.`,
		example:  example,
		json:     v.changeJSON(),
		exits:    []int{exitNoMatch, exitConflict},
		complete: a.completeIDs(v.states...),
		run:      ch.run,
	})
	jobs.register(a, c, v.states...)
	if v.cascades {
		c.Flags().BoolVar(&jobs.cascade, "cascade", false, "also the jobs that wait for the success of those that are named")
	}
	ch.register(c, flags)
	return c
}

// changingRuns returns a command that changes runs, selected by name or filters.
func (a *app) changingRuns(v verb, short, long, example string, flags func(*cobra.Command)) *cobra.Command {
	v.words, v.runs, v.miss = "wf "+v.do, true, "wrong_status"
	v.list = "'jobctl wf list' shows the runs of all flows."
	runs := &runSelection{blocked: v.noBlocked}
	ch := &change{app: a, verb: v, selection: runs}
	c := a.command(&spec{
		use: v.do + " REF... | - | FILTER... | --all", short: short, args: -1, ids: true,
		long: long + "\n\n" + refText + ` A REF of - reads them from standard input, one per line.

With several runs it changes those it can; the exit code is that of the first failure.
With filters or --all it first reports how many runs match, and asks; -o json, jsonl
and ids do not ask and need -y.`,
		example: example,
		json: fmt.Sprintf(`one object with %s and skipped (how many), dry_run, and
  runs: a list of run, error and
        result (%s, not_found, ended,
                wrong_status (it has changed since the filters selected it),
                conflict (a cancel was already requested), damaged, failed, or
                not_tried (after an error or an interruption))
With -o jsonl only the objects of runs, one per line; with -o ids the IDs of
those that were %s.
`, fieldOf(v.did), fieldOf(v.did), v.did),
		exits:    []int{exitNoMatch, exitConflict},
		complete: a.completeRefs(anyNumber, v.statuses...),
		run:      ch.run,
	})
	runs.register(a, c, v.statuses...)
	ch.register(c, flags)
	return c
}

// register adds the flags that every change has, and the flags of the verb.
func (c *change) register(cmd *cobra.Command, flags func(*cobra.Command)) {
	cmd.Flags().BoolVar(&c.all, "all", false, "all of them, after a question")
	cmd.Flags().VarP(countFlag(&c.limit), "limit", "n", "at most `COUNT` of those that the filters select")
	dryRunFlag(cmd, &c.dry)
	if flags != nil {
		flags(cmd)
	}
}

// fieldOf returns a word or two as the name of a JSON field.
func fieldOf(words string) string { return strings.ReplaceAll(words, " ", "_") }
