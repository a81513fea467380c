package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/cmd/jobctl/internal/plain"
)

func (a *app) queueListCommand() *cobra.Command {
	return a.command(&spec{
		use: "list", short: "queues with their jobs in each state", ids: true,
		long:    "Lists the queues in the order of their first jobs.",
		example: "  jobctl --db jobs.db queue list\n  jobctl --db jobs.db queue list -o jsonl | jq -r 'select(.paused).name'",
		json:    "a list of objects with\n  " + queueFields + "With -o ids the names of the queues.\n",
		exits:   []int{exitLocked, exitDamaged, exitFormat},
		run:     func(ctx context.Context, _ []string) error { return a.listQueues(ctx) },
	})
}

func (a *app) listQueues(ctx context.Context) error {
	return a.with(ctx, func(queue admin.Admin) error {
		s, err := queue.Stats(ctx)
		if err != nil {
			return err
		}
		now := a.now()
		out := &listing{app: a, table: *a.queueTable()}
		for i := range s.Queues {
			q := &s.Queues[i]
			if err := out.add(item{plain.Text(q.Name), viewOfQueue(&s, q, now), a.queueRow(&s, q, now)}); err != nil {
				return err
			}
		}
		out.close()
		if len(s.Queues) == 0 {
			a.say("no job was ever enqueued")
		}
		return nil
	})
}
