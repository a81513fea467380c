package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/cmd/jobctl/internal/plain"
)

func (a *app) jobWhyCommand() *cobra.Command {
	return a.command(&spec{
		use: "why ID", short: "what keeps a job from running", args: -1,
		long: `Prints what keeps a job from running now, one line for each thing: a delay, a paused
queue, a kind that nobody fetches, a closed gate, a limit, a rate, or a rest of its
queue or its key, a full pool, a job with the same idempotency key, or jobs that it
waits for. For the job of a workflow run it prints what the run waits for, as 'jobctl
wf show' does, but not in JSON. ID may also be the beginning or the end of an ID.`,
		example: "  jobctl --db jobs.db job why 01902a3b-7a40-7000-8000-0123456789ab\n  jobctl --db jobs.db job why 9ab…",
		json: `one object with id and
  obstacles: a list, empty for a job that only waits for its turn, of
    what (running, dead, completed, delay, stopped, paused, no_worker, need,
    queue, pool, queue_rate, queue_rest, key, turn, held_key, key_rate,
    key_rest, effect, jobs, dead_jobs, gone_jobs),
    text, queue, kind, key (null: none), need (null: none), pool (null: none)
    until_at (a time: when it ends by itself, or since when the job runs, is
    dead, or is completed; null: not known)
    running, limit (jobs that run, and may run)
    holders (a list of IDs of jobs that run)
`,
		exits:    []int{exitNoMatch},
		complete: a.completeIDs(pawl.States()...),
		run:      a.explainJob,
	})
}

// whyView is what keeps a job from running, in JSON.
type whyView struct {
	ID        pawl.ID              `json:"id"`
	Obstacles []admin.ObstacleView `json:"obstacles"`
}

func (a *app) explainJob(ctx context.Context, args []string) error {
	return a.withJob(ctx, "job why", args, func(queue admin.Admin, id pawl.ID) error {
		all, err := queue.Why(ctx, id)
		if err != nil {
			return err
		}
		if !a.people() {
			view := whyView{ID: id, Obstacles: []admin.ObstacleView{}}
			for _, o := range all {
				view.Obstacles = append(view.Obstacles, admin.ObstacleOf(o))
			}
			return a.print(view)
		}
		for _, o := range all {
			if o.What == pawl.ByDelay {
				waits, err := admin.WhyDelayed(ctx, queue, id, o.Kind, a.moment)
				if err != nil {
					return err
				}
				if a.showWaits(waits) {
					continue
				}
			}
			fmt.Fprintln(a.stdout, plain.Text(o.String()))
		}
		if len(all) == 0 {
			fmt.Fprintln(a.stdout, "nothing keeps it from running; it waits for its turn")
		}
		return nil
	})
}
