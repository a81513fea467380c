package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
)

func (a *app) queueShowCommand() *cobra.Command {
	return a.command(&spec{
		use: "show QUEUE", short: "one queue", args: 1, complete: a.completeQueue,
		long:    "Prints one queue: how many jobs it has in each state, and whether it is paused.",
		example: "  jobctl --db jobs.db queue show email",
		json:    "one object with\n  " + queueFields,
		exits:   []int{exitNoMatch, exitLocked, exitDamaged, exitFormat},
		run:     func(ctx context.Context, args []string) error { return a.showQueue(ctx, args) },
	})
}

func (a *app) showQueue(ctx context.Context, args []string) error {
	name, err := oneQueue("queue show", args)
	if err != nil {
		return err
	}
	return a.with(ctx, func(queue admin.Admin) error {
		s, q, err := statsOf(ctx, queue, name)
		if err != nil {
			return err
		}
		now := a.now()
		if !a.people() {
			return a.print(viewOfQueue(s, q, now))
		}
		t := a.queueTable()
		t.add(a.queueRow(s, q, now)...)
		t.flush()
		return nil
	})
}

// oneQueue is the argument of a command that is about one queue.
func oneQueue(command string, args []string) (string, error) {
	if len(args) == 0 {
		return "", usage(command, "no queue was named")
	}
	if err := pawl.ValidQueue(args[0]); err != nil {
		return "", usage(command, "%s", err)
	}
	return args[0], nil
}

// statsOf counts the jobs of one queue, which must be there. Stats are those of all.
func statsOf(ctx context.Context, queue admin.Admin, name string) (stats *admin.Stats, q *pawl.QueueStats, err error) {
	s, err := queue.Stats(ctx)
	if err != nil {
		return nil, nil, err
	}
	for i := range s.Queues {
		if s.Queues[i].Name == name {
			return &s, &s.Queues[i], nil
		}
	}
	return nil, nil, &failure{exitNoMatch, fmt.Sprintf("there is no queue %q", name), "'jobctl queue list' shows those that there are."}
}
