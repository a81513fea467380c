package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/cmd/jobctl/internal/plain"
	"github.com/gopawl/pawl/driver"
)

// pausing is one `queue pause` or `queue resume`.
type pausing struct {
	app   *app
	word  string // pause or resume
	ask   string // the question for --all, for "it" or "them"
	pause bool
	all   bool
	dry   bool
}

func (a *app) queuePauseCommand() *cobra.Command {
	p := &pausing{app: a, word: "pause", ask: "Pause %s?", pause: true}
	return p.command("stop workers from fetching jobs of queues",
		`Stops all fetching from queues until 'jobctl queue resume', even across a restart of
the app. Running jobs continue, and jobs can be enqueued. Pausing a paused queue is
not an error.`)
}

func (a *app) queueResumeCommand() *cobra.Command {
	p := &pausing{app: a, word: "resume", ask: "Resume %s?"}
	return p.command("end a pause",
		"Ends a pause, and the rest of a queue after a throttle. Resuming a queue that is\nnot paused is not an error.")
}

// pausedView is an object of `queue pause` and `queue resume`.
type pausedView struct {
	Queue   admin.Text `json:"queue"`
	Paused  bool       `json:"paused"`
	Changed bool       `json:"changed"`
	DryRun  bool       `json:"dry_run"`
}

func (p *pausing) command(short, long string) *cobra.Command {
	a := p.app
	c := a.command(&spec{
		use: p.word + " QUEUE... | --all", short: short, args: -1, ids: true, complete: a.completeQueues,
		long:    long + " A queue that does not exist is an error, and then no queue is changed. --all\nreports the number of queues and asks.",
		example: "  jobctl --db jobs.db queue " + p.word + " email\n  jobctl --db jobs.db queue " + p.word + " --all -y",
		json:    "a list of objects with queue, paused, changed (false: nothing to do),\n  dry_run; with -o ids the names of the queues\n",
		exits:   []int{exitNoMatch},
		run:     p.run,
	})
	c.Flags().BoolVar(&p.all, "all", false, "all queues, after a question")
	dryRunFlag(c, &p.dry)
	return c
}

func (p *pausing) run(ctx context.Context, args []string) error {
	words := "queue " + p.word
	switch {
	case p.all && len(args) > 0:
		return misused(words, "--all and a queue were given; choose one")
	case !p.all && len(args) == 0:
		return misused(words, "no queue was named; add names of queues, or --all")
	}
	for _, name := range args {
		if err := driver.CheckQueue(name); err != nil {
			return usage(words, "%s", err)
		}
	}
	if p.all && !p.dry {
		if err := p.app.askable(words, p.word+" all queues"); err != nil {
			return err
		}
	}
	todo, err := read(ctx, p.app.with, func(queue admin.Admin) ([]pawl.QueueStats, error) { return p.choose(ctx, queue, args) })
	if err != nil {
		return err
	}
	if p.all && !p.dry && !p.app.flags.yes {
		if err := p.app.askAbout(ctx, len(todo), "queue", "all queues", p.ask); err != nil {
			return err
		}
	}
	return p.change(ctx, todo)
}

// choose finds the queues, which must all exist.
func (p *pausing) choose(ctx context.Context, queue admin.Admin, names []string) (todo []pawl.QueueStats, err error) {
	s, err := queue.Stats(ctx)
	if err != nil {
		return nil, err
	}
	if p.all {
		if len(s.Queues) == 0 {
			return nil, &failure{exitNoMatch, "there is no queue", "A queue exists once a job was enqueued on it."}
		}
		return s.Queues, nil
	}
	seen := make(map[string]bool)
	for _, name := range names {
		q, err := findQueue(&s, name)
		if err != nil {
			return nil, err
		}
		if !seen[name] {
			seen[name] = true
			todo = append(todo, *q)
		}
	}
	return todo, nil
}

// changes reports whether a queue needs a pause, or has a pause or a rest that a resume ends.
func (p *pausing) changes(q *pawl.QueueStats) bool {
	return q.Paused != p.pause || !p.pause && !q.Rests.IsZero()
}

// change pauses or resumes the queues that need it, and prints each result.
func (p *pausing) change(ctx context.Context, todo []pawl.QueueStats) error {
	a := p.app
	out := &listing{app: a}
	show := func(q *pawl.QueueStats) error {
		v := pausedView{Queue: admin.Text(q.Name), Paused: p.pause, Changed: p.changes(q), DryRun: p.dry}
		if a.people() {
			a.printPaused(v, q)
			return nil
		}
		return out.add(item{id: plain.Text(q.Name), json: v})
	}
	err := a.with(ctx, func(queue admin.Admin) error {
		set := queue.Resume
		if p.pause {
			set = queue.Pause
		}
		for i := range todo {
			q := &todo[i]
			if p.changes(q) && !p.dry {
				if err := set(ctx, q.Name); err != nil {
					return err
				}
				_, now, err := statsOf(ctx, queue, q.Name) // opening a file for writing makes leased jobs ready
				if err != nil {
					return err
				}
				q.Counts = now.Counts
			}
			if err := show(q); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil || out.count > 0 {
		out.close()
	}
	return err
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
