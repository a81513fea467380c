package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/cmd/jobctl/internal/plain"
)

func (a *app) queuePauseCommand() *cobra.Command {
	return a.pausing(true, "pause", "stop giving jobs of a queue to workers",
		`Stops all fetching from a queue until 'jobctl queue resume', also over a restart of
the app. What runs goes on, and jobs can be enqueued.`)
}

func (a *app) queueResumeCommand() *cobra.Command {
	return a.pausing(false, "resume", "end a pause", "Ends what 'jobctl queue pause' began.")
}

// pausedView is the object of `queue pause` and `queue resume`.
type pausedView struct {
	Queue   admin.Text `json:"queue"`
	Paused  bool       `json:"paused"`
	Changed bool       `json:"changed"`
	DryRun  bool       `json:"dry_run"`
}

func (a *app) pausing(pause bool, word, short, long string) *cobra.Command {
	dry := false
	c := a.command(&spec{
		use: word + " QUEUE", short: short, args: 1, complete: a.completeQueue,
		long:    long + " A queue that is so already stays so: that\nis no error.",
		example: "  jobctl --db jobs.db queue " + word + " email",
		json:    "one object with queue, paused, changed (false: it was so already), dry_run\n",
		exits:   []int{exitNoMatch, exitLocked, exitDamaged, exitFormat},
		run: func(ctx context.Context, args []string) error {
			name, err := oneQueue("queue "+word, args)
			if err != nil {
				return err
			}
			return a.with(ctx, func(queue admin.Admin) error { return a.pause(ctx, queue, name, pause, dry) })
		},
	})
	dryRunFlag(c, &dry)
	return c
}

func (a *app) pause(ctx context.Context, queue admin.Admin, name string, pause, dry bool) error {
	_, q, err := statsOf(ctx, queue, name)
	if err != nil {
		return err
	}
	v := pausedView{Queue: admin.Text(name), Paused: pause, Changed: q.Paused != pause, DryRun: dry}
	if v.Changed && !dry {
		set := queue.Resume
		if pause {
			set = queue.Pause
		}
		if err := set(ctx, name); err != nil {
			return err
		}
		if _, q, err = statsOf(ctx, queue, name); err != nil { // opening a file to write has made jobs ready
			return err
		}
	}
	if !a.people() {
		return a.print(v)
	}
	a.printPaused(v, q)
	return nil
}

func (a *app) printPaused(v pausedView, q *pawl.QueueStats) {
	state, did := "not paused", "resumed"
	if v.Paused {
		state, did = "already paused", "paused"
	}
	switch {
	case !v.Changed:
		fmt.Fprintf(a.stdout, "%s is %s\n", plain.Text(string(v.Queue)), state)
	case v.DryRun:
		fmt.Fprintf(a.stdout, "%s would be %s; nothing was changed\n", plain.Text(string(v.Queue)), did)
	default:
		fmt.Fprintf(a.stdout, "%s: %s, %d ready\n", did, plain.Text(string(v.Queue)), q.Ready)
	}
}
