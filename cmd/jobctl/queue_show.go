package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/cmd/jobctl/internal/plain"
	"github.com/gopawl/pawl/driver"
)

func (a *app) queueShowCommand() *cobra.Command {
	return a.command(&spec{
		use: "show QUEUE", short: "one queue", args: 1, complete: a.completeQueue,
		long:    "Prints one queue: how many jobs it has in each state, and whether it is paused.",
		example: "  jobctl --db jobs.db queue show email",
		json:    "one object with\n  " + queueFields,
		exits:   []int{exitNoMatch},
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

// oneQueue returns the argument of a command about one queue.
func oneQueue(command string, args []string) (string, error) {
	if len(args) == 0 {
		return "", usage(command, "no queue was named")
	}
	if err := driver.CheckQueue(args[0]); err != nil {
		return "", usage(command, "%s", err)
	}
	return args[0], nil
}

// statsOf counts the jobs of one queue, which must exist. stats covers all queues.
func statsOf(ctx context.Context, queue admin.Admin, name string) (stats *admin.Stats, q *pawl.QueueStats, err error) {
	s, err := queue.Stats(ctx)
	if err != nil {
		return nil, nil, err
	}
	q, err = findQueue(&s, name)
	return &s, q, err
}

// findQueue returns a queue of the file, or an error if there is none of that name.
func findQueue(s *admin.Stats, name string) (*pawl.QueueStats, error) {
	for i := range s.Queues {
		if s.Queues[i].Name == name {
			return &s.Queues[i], nil
		}
	}
	return nil, &failure{exitNoMatch, fmt.Sprintf("there is no queue %q", name), queuesThere(s)}
}

// findPool returns a pool of the file, or an error if no queue has one of that name.
func findPool(s *admin.Stats, name string) (*plain.Pool, error) {
	pools := plain.Pools(s.Queues)
	for _, p := range pools {
		if p.Name == name {
			return p, nil
		}
	}
	return nil, &failure{exitNoMatch, fmt.Sprintf("no queue has the pool %q", name), "'jobctl stats' shows the pools and their queues."}
}

// knownQueues returns an error if one of the queues is missing.
func knownQueues(ctx context.Context, queue admin.Admin, names []string) error {
	if len(names) == 0 {
		return nil
	}
	s, err := queue.Stats(ctx)
	for _, name := range names {
		if err == nil {
			_, err = findQueue(&s, name)
		}
	}
	return err
}

// queuesThere names the queues of the file, to help correct a misspelling.
func queuesThere(s *admin.Stats) string {
	const shown = 5
	var names []string
	for i := range s.Queues {
		names = append(names, plain.Text(s.Queues[i].Name))
	}
	switch n := len(names); {
	case n == 0:
		return "There is no queue yet."
	case n > shown:
		return fmt.Sprintf("There are %d queues; 'jobctl queue list' shows them.", n)
	}
	return "The queues are " + strings.Join(names, ", ") + "."
}
