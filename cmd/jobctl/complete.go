package main

import (
	"context"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/cmd/jobctl/internal/plain"
)

// completionJobs limits the jobs that are read after a tab.
const completionJobs = 200

// anyNumber of arguments is no limit for look.
const anyNumber = math.MaxInt

// look asks the queue for words that may follow, for a command that takes at most most arguments. After
// any failure there are none: a shell has no place for an error.
func (a *app) look(c *cobra.Command, args []string, most int, ask func(context.Context, admin.Admin) []string) ([]string, cobra.ShellCompDirective) {
	const none = cobra.ShellCompDirectiveNoFileComp
	if len(args) >= most || !a.aim() {
		return nil, none
	}
	base := c.Context()
	if base == nil {
		base = context.Background()
	}
	ctx, stop := context.WithTimeout(base, completionTime)
	defer stop()
	queue, err := a.open(ctx)
	if err != nil {
		return nil, none
	}
	defer queue.Close()
	var words []string
	for _, word := range ask(ctx, queue) {
		if word != "" && plain.Text(word) == word && !strings.ContainsAny(word, " \t") { // other words are hard to type
			words = append(words, word)
		}
	}
	return words, none | cobra.ShellCompDirectiveKeepOrder
}

// files completes a file name. The name of a new file often resembles that of an existing one.
func files(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveDefault
}

func (a *app) completeQueues(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return a.look(c, args, anyNumber, queueNames)
}

// completeQueue completes a single queue argument.
func (a *app) completeQueue(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return a.look(c, args, 1, queueNames)
}

func queueNames(ctx context.Context, queue admin.Admin) (names []string) {
	s, err := queue.Stats(ctx)
	if err != nil {
		return nil
	}
	for _, q := range s.Queues {
		names = append(names, q.Name)
	}
	return names
}

// completeSchedule completes the name of a schedule.
func (a *app) completeSchedule(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return a.look(c, args, 1, func(ctx context.Context, queue admin.Admin) (names []string) {
		page, err := queue.Schedules().List(ctx, admin.ScheduleQuery{Limit: admin.MaxLimit})
		if err != nil {
			return nil
		}
		for i := range page.Schedules {
			names = append(names, page.Schedules[i].Name)
		}
		return names
	})
}

// completeGroup completes the name of a group.
func (a *app) completeGroup(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return a.look(c, args, 1, func(ctx context.Context, queue admin.Admin) (names []string) {
		list, _, err := queue.Groups().List(ctx, "", admin.MaxLimit)
		if err != nil {
			return nil
		}
		for i := range list {
			names = append(names, list[i].Name)
		}
		return names
	})
}

// completeKinds offers the kinds of the first jobs.
func (a *app) completeKinds(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return a.look(c, args, anyNumber, func(ctx context.Context, queue admin.Admin) (kinds []string) {
		for _, e := range firstJobs(ctx, queue, "") {
			if !slices.Contains(kinds, e.Kind) {
				kinds = append(kinds, e.Kind)
			}
		}
		return kinds
	})
}

// completeIDs offers the IDs of the first jobs in these states.
func (a *app) completeIDs(states ...pawl.State) cobra.CompletionFunc {
	if len(states) == len(pawl.States()) {
		states = []pawl.State{""}
	}
	return func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		return a.look(c, args, anyNumber, func(ctx context.Context, queue admin.Admin) (ids []string) {
			for _, state := range states {
				for _, e := range firstJobs(ctx, queue, state) {
					ids = append(ids, e.ID.String())
				}
			}
			return ids
		})
	}
}

func firstJobs(ctx context.Context, queue admin.Admin, state pawl.State) (jobs []*pawl.Envelope) {
	q := admin.Query{Filter: admin.Filter{Filter: pawl.Filter{State: state}}, Detail: admin.IDs, Limit: completionJobs}
	page, err := queue.List(ctx, q)
	if err != nil {
		return nil
	}
	for _, listed := range page.Jobs {
		if listed.Err == nil {
			jobs = append(jobs, listed.Job)
		}
	}
	return jobs
}
