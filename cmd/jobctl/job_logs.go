package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/cmd/jobctl/internal/plain"
)

func (a *app) jobLogsCommand() *cobra.Command {
	follow := false
	c := a.command(&spec{
		use: "logs ID [-f]", short: "what the last attempts of a job logged", args: -1,
		long: `Prints what the last attempts of a job logged by pawl.Log, the oldest first: the
first and the last lines of each. The log of an attempt that crashed its process
may lack the last second. A job that succeeded has logs only while its record is
kept. ID may also be the beginning or the end of an ID.

-f prints what a running app adds, within about a second, until the job has ended.`,
		example: "  jobctl --db jobs.db job logs 01902a3b-7a40-7000-8000-0123456789ab\n  jobctl --db jobs.db job logs -f 9ab…",
		json: `one object with id and
  logs: a list, the oldest first, of
    attempt, began_at (a time)
    head, tail (the first and the last lines)
    dropped (how many bytes between them are not kept)
`,
		exits:    []int{exitNoMatch},
		complete: a.completeIDs(pawl.States()...),
		run:      func(ctx context.Context, args []string) error { return a.showLogs(ctx, args, follow) },
	})
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on until the job has ended")
	return c
}

// logsView is the stored logs of a job, in JSON.
type logsView struct {
	ID   pawl.ID   `json:"id"`
	Logs []logView `json:"logs"`
}

type logView struct {
	Attempt int         `json:"attempt"`
	BeganAt admin.Stamp `json:"began_at"`
	Head    admin.Text  `json:"head"`
	Tail    admin.Text  `json:"tail"`
	Dropped int64       `json:"dropped"`
}

func (a *app) showLogs(ctx context.Context, args []string, follow bool) error {
	if follow && !a.people() {
		return usage("job logs", "-f prints lines for people; leave out -o")
	}
	return a.withJob(ctx, "job logs", args, func(queue admin.Admin, id pawl.ID) error {
		logs, err := queue.Logs(ctx, id)
		switch {
		case err != nil:
			return err
		case !a.people():
			view := logsView{ID: id, Logs: []logView{}}
			for _, l := range logs {
				view.Logs = append(view.Logs, logView{l.Attempt, admin.Stamp{Time: l.Began}, admin.Text(l.Head), admin.Text(l.Tail), l.Dropped})
			}
			return a.print(view)
		}
		p := &logPrinter{app: a, printed: make(map[int64]int64)}
		p.print(logs)
		if follow {
			return p.follow(ctx, queue, id)
		}
		if len(logs) == 0 {
			a.say("the job logged nothing")
		}
		return nil
	})
}

// logPrinter prints logs that grow.
type logPrinter struct {
	app     *app
	printed map[int64]int64 // printed bytes of an attempt, by its start time
}

// print prints what was added since the last call.
func (p *logPrinter) print(logs []pawl.RunLog) {
	for i := range logs {
		l := &logs[i]
		run := l.Began.UnixNano()
		was, known := p.printed[run]
		if !known {
			fmt.Fprintf(p.app.stdout, "attempt %d, begun %s\n", l.Attempt, p.app.moment(l.Began))
		}
		for _, line := range added(l, was) {
			fmt.Fprintln(p.app.stdout, plain.Text(line))
		}
		p.printed[run] = int64(len(l.Head)+len(l.Tail)) + l.Dropped
	}
}

// added returns the lines of a log after its first bytes. A single line stands for the lines that
// are not kept.
func added(l *pawl.RunLog, after int64) (lines []string) {
	head, between := l.Head[min(after, int64(len(l.Head))):], l.Dropped
	after = max(after-int64(len(l.Head)), 0)
	between -= min(after, l.Dropped)
	tail := l.Tail[min(max(after-l.Dropped, 0), int64(len(l.Tail))):]
	for line := range strings.Lines(head) {
		lines = append(lines, strings.TrimSuffix(line, "\n"))
	}
	if between > 0 {
		lines = append(lines, fmt.Sprintf("… %s not kept …", plural(int(between), "byte")))
	}
	for line := range strings.Lines(tail) {
		lines = append(lines, strings.TrimSuffix(line, "\n"))
	}
	return lines
}

// follow prints what is added until the job has ended.
func (p *logPrinter) follow(ctx context.Context, queue admin.Admin, id pawl.ID) error {
	if isLive, err := live(ctx, queue); err != nil || !isLive {
		return err
	}
	return p.app.follow(ctx, func() (ended bool, err error) {
		e, look := queue.Job(ctx, id)
		logs, err := queue.Logs(ctx, id) // after the state, so that the last logs are among them
		if errors.Is(look, pawl.ErrNotFound) || errors.Is(err, pawl.ErrNotFound) {
			return true, nil // it succeeded, and its logs were removed with it
		}
		if err := errors.Join(look, err); err != nil {
			return false, err
		}
		p.print(logs)
		return e.State == pawl.Dead || e.State == pawl.Completed, nil
	})
}

// followEvery is the interval at which -f looks. An app stores logs about once a second.
const followEvery = time.Second

// follow calls look every followEvery until it reports the end, and writes what look prints.
func (a *app) follow(ctx context.Context, look func() (ended bool, err error)) error {
	for {
		if ended, err := look(); ended || err != nil {
			return err
		}
		if err := a.stdout.Flush(); err != nil {
			return err
		}
		select {
		case <-time.After(followEvery):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
