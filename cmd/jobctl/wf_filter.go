package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/workflow"
)

// runFilter selects runs.
type runFilter struct {
	flow, status, prefix string
	key                  string
	parent               pawl.ID
	attributes           map[string]string
	since, until         time.Time

	statuses []workflow.Status // the statuses that a command supports; nil: all
}

func (f *runFilter) register(a *app, c *cobra.Command, statuses ...workflow.Status) {
	f.statuses = statuses
	words := statusWords(statuses)
	flags := c.Flags()
	flags.Var(textFlag(&f.flow), "flow", "only runs of `FLOW`")
	flags.VarP(oneOf(&f.status, words...), "status", "s", "only runs in `STATUS`: "+listed(words))
	flags.Var(textFlag(&f.prefix), "id-prefix", "only runs whose ID from their starter begins with `TEXT`")
	flags.Var(manyFlag{flagFunc{f.attribute}}, "attr", "only runs with this `NAME=VALUE` among their attributes; may be repeated")
	flags.Var(textFlag(&f.key), "key", "only runs with this `KEY`")
	flags.Var(parsed(&f.parent, pawl.ParseID), "parent", "only children of this `RUN`")
	flags.Var(a.momentFlag(&f.since), "since", "only runs started at or after this `TIME`; an age such as 2h counts back from now")
	flags.Var(a.momentFlag(&f.until), "until", "only runs started before this `TIME`")
}

// attribute adds an attribute.
func (f *runFilter) attribute(text string) error {
	name, value, ok := strings.Cut(text, "=")
	if !ok || name == "" || value == "" {
		return errors.New("it is not NAME=VALUE")
	}
	if f.attributes == nil {
		f.attributes = make(map[string]string)
	}
	f.attributes[name] = value
	return nil
}

// statusWords returns statuses as flag values; all statuses if there are none.
func statusWords(statuses []workflow.Status) []string {
	if len(statuses) == 0 {
		statuses = admin.WorkflowStatuses()
	}
	return texts(statuses)
}

func (f *runFilter) query() admin.WorkflowQuery {
	return admin.WorkflowQuery{Filter: workflow.Filter{Flow: f.flow, Status: workflow.Status(f.status), Prefix: f.prefix,
		Key: f.key, Parent: f.parent, Attributes: f.attributes, Since: f.since, Until: f.until}}
}

// fits reports whether the command supports the run's status.
func (f *runFilter) fits(run *workflow.Info) bool {
	return f.statuses == nil || slices.Contains(f.statuses, run.Status)
}

func (f *runFilter) given() bool {
	return f.flow != "" || f.status != "" || f.prefix != "" || f.key != "" || !f.parent.IsZero() || len(f.attributes) > 0 ||
		!f.since.IsZero() || !f.until.IsZero()
}

// String describes the filter: flow=order status=waiting.
func (f *runFilter) String() string {
	var parts []string
	add := func(given bool, format string, args ...any) {
		if given {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	add(f.flow != "", "flow=%s", f.flow)
	add(f.status != "", "status=%s", f.status)
	add(f.status == "" && f.statuses != nil, "status=%s", strings.Join(statusWords(f.statuses), "|"))
	add(f.prefix != "", "id~%q", f.prefix)
	add(f.key != "", "key=%q", f.key)
	add(!f.parent.IsZero(), "parent=%s", f.parent)
	for _, name := range slices.Sorted(maps.Keys(f.attributes)) {
		add(true, "%s=%q", name, f.attributes[name])
	}
	add(!f.since.IsZero(), "since=%s", f.since.UTC().Format(time.RFC3339))
	add(!f.until.IsZero(), "until=%s", f.until.UTC().Format(time.RFC3339))
	return strings.Join(parts, " ")
}

// Completions.

func (a *app) firstRuns(ctx context.Context, queue admin.Admin) []workflow.Info {
	page, err := queue.Workflows().List(ctx, admin.WorkflowQuery{Limit: completionJobs})
	if err != nil {
		return nil
	}
	return page.Runs
}

// completeFlows offers the flows of the first runs.
func (a *app) completeFlows(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return a.look(c, args, anyNumber, func(ctx context.Context, queue admin.Admin) (flows []string) {
		for _, run := range a.firstRuns(ctx, queue) {
			if !slices.Contains(flows, run.Flow) {
				flows = append(flows, run.Flow)
			}
		}
		return flows
	})
}

// completeRefs offers the first runs in these statuses, or in any status, for a command that
// takes up to most runs.
func (a *app) completeRefs(most int, statuses ...workflow.Status) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		return a.look(c, args, most, func(ctx context.Context, queue admin.Admin) (refs []string) {
			for _, run := range a.firstRuns(ctx, queue) {
				if run.Status != "" && (len(statuses) == 0 || slices.Contains(statuses, run.Status)) {
					refs = append(refs, run.Flow+":"+run.ID)
				}
			}
			return refs
		})
	}
}

// completeSteps offers the steps of the named run.
func (a *app) completeSteps(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return a.look(c, args, anyNumber, func(ctx context.Context, queue admin.Admin) (steps []string) {
		r, err := oneRef("", args)
		if err != nil {
			return nil
		}
		run, err := r.find(ctx, queue.Workflows())
		if err != nil {
			return nil
		}
		w, err := queue.Workflows().Show(ctx, run, admin.RunJournal)
		if err != nil {
			return nil
		}
		for i := range w.Journal {
			steps = append(steps, w.Journal[i].Step())
		}
		return steps
	})
}
