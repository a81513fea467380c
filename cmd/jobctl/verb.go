package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
)

// verb is what a command does to jobs.
type verb struct {
	words  string       // of the command: "dead retry"
	do     string       // "retry"
	did    string       // "retried"
	ask    string       // "Retry %s?", for "it" or "them"
	states []pawl.State // in which it applies
	only   string       // what it applies to, for an error: "Only a dead job can be retried"
	miss   string       // the result of a job in another state: "not_dead"
	list   string       // the command that shows what there is to choose among
	held   bool         // a job in the right state may be refused nevertheless
	asks   bool         // a running job is asked to end, and ends later
	ready  func() error // refuses flags of the verb before anything is looked at; nil: it has none
	apply  apply
}

// apply carries out the verb on jobs; it is admin.Admin.Do for most.
type apply func(ctx context.Context, queue admin.Admin, how how, ids []pawl.ID) ([]error, error)

// how is how a verb is carried out.
type how struct {
	only *admin.Filter // must hold of a job when it is changed; nil for jobs that were named
	dry  bool          // nothing is changed, and the results are those that a change would have
}

// on is an action that is carried out so.
func (h how) on(a admin.Action) admin.Action {
	a.If, a.DryRun = h.only, h.dry
	return a
}

// act is the apply of an action, which flags may complete.
func act(action *admin.Action) apply {
	return func(ctx context.Context, queue admin.Admin, how how, ids []pawl.ID) ([]error, error) {
		return queue.Do(ctx, how.on(*action), ids...)
	}
}

// changeJSON is the part of --help that tells the fields of a changeView.
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
                its deadline is against it), damaged, failed, or not_tried (an
                error or an interruption came first))
With -o jsonl the objects of jobs alone, one a line; with -o ids the IDs of
those that were %s.
`, counts, fieldOf(v.did), result, v.miss, v.did)
}

// changing is a command that changes jobs: their IDs, or those that filters choose.
func (a *app) changing(v verb, use, short, long, example string, flags func(*cobra.Command)) *cobra.Command {
	ch := &change{app: a, verb: v}
	c := a.command(&spec{
		use: use + " ID... | - | FILTER... | --all", short: short, args: -1, ids: true,
		long: long + `

Of several jobs it does those it can; the exit code is that of the first that it
could not. An ID of - reads IDs from standard input. By filters or --all it looks
first, names the count and asks; -o json, jsonl and ids do not ask and need -y.`,
		example:  example,
		json:     v.changeJSON(),
		exits:    []int{exitNoMatch, exitLocked, exitDamaged, exitConflict, exitFormat},
		complete: a.completeIDs(v.states...),
		run:      ch.run,
	})
	c.Flags().BoolVar(&ch.all, "all", false, "all that there are, after a question")
	ch.filter.register(a, c, v.states...)
	c.Flags().VarP(countFlag(&ch.limit), "limit", "n", "at most `COUNT` of those that the filters choose")
	dryRunFlag(c, &ch.dry)
	if flags != nil {
		flags(c)
	}
	return c
}

// fieldOf is a word or two as the name of a JSON field.
func fieldOf(words string) string { return strings.ReplaceAll(words, " ", "_") }
