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
	"github.com/gopawl/pawl/workflow"
)

// statsFlags holds the flags of `stats`.
type statsFlags struct {
	every  time.Duration
	limits limits
}

func (a *app) statsCommand() *cobra.Command {
	var f statsFlags
	c := a.command(&spec{
		use: "stats [--watch TIME] [--fail-if LIMITS]", short: "jobs of each queue by state, and workflow runs by status",
		long: `Counts the jobs of each queue by state. OLDEST is how long the oldest ready job has
been ready. Leased jobs in a file that no process has open were running when their
process ended; the next open makes them ready again. Completed jobs have succeeded,
and their record is kept for a while. STATE is PAUSED until someone resumes the
queue, served if a worker takes its jobs, no worker if the app runs but does not
take them, and stopped if no app has the file. If a queue bounds how many of its jobs
wait, a line has the number and the bound. Each pool has a line: how many jobs of its
queues are leased, the highest number that one of them has for the pool, and the
queues. A queue with a lower number has that number in parentheses.

Another line counts workflow runs, if there are any. Active runs run, sleep or wait.
A run whose job is dead is active too; its job counts as DEAD in its queue. With very
many runs, it counts the newest 16384 and all blocked runs, and says that there are
older ones.

--fail-if takes limits separated by commas: ready, delayed, leased, dead, completed,
oldest, held or blocked, then > or >=, then a number, or a duration for oldest.
Numbers are sums over all queues, oldest is the maximum, held counts the keys that a
dead job holds, and blocked counts runs. queue:NAME. before a word restricts it to one
queue, and pool:NAME. to the queues of a pool.`,
		example: `  jobctl --db jobs.db stats
  jobctl --db jobs.db stats --watch 2s
  jobctl --db jobs.db stats --fail-if 'dead>0,oldest>5m,blocked>0'
  jobctl --db jobs.db stats --fail-if 'queue:email.ready>99,pool:gpu.oldest>1h'`,
		json: `one object with
  at (when it was counted), path, format, size_bytes, free_bytes (null if
    the file has no list of its free pages, as after its process was killed),
    max_bytes (in use, at which new jobs are refused; null if there is no bound,
    or if no app has the file open)
  process (null: no app has the file): pid, name, version, started_at
  queues: a list of ` + queueFields + `  pools: a list of objects with name, leased (how many jobs of its queues),
    queues (a list of objects with name, pool_running)
  runs (null: there are none): active, paused, blocked, done, failed,
    cancelled, terminated, damaged, more (true: older ones were not counted)
`,
		run: func(ctx context.Context, _ []string) error { return a.stats(ctx, &f) },
	})
	c.Flags().Var(ageFlag(&f.every), "watch", "repeat after this `TIME`, until interrupted or until a limit of --fail-if is exceeded")
	c.Flags().Var(manyFlag{flagFunc{f.limits.Set}}, "fail-if", "exit code 5 if one of these `LIMITS` is exceeded")
	return c
}

// stats prints once, or repeatedly. It opens the queue again each time, so it notices when the app
// starts or stops, and a stopped app can start.
func (a *app) stats(ctx context.Context, f *statsFlags) error {
	if f.every > 0 && a.flags.output == "json" {
		return endless("stats")
	}
	for {
		err := a.with(ctx, func(queue admin.Admin) error { return a.statsOnce(ctx, queue, f) })
		switch {
		case err != nil && f.every > 0 && ctx.Err() != nil:
			return interrupted()
		case err != nil || f.every == 0:
			return err
		}
		if err := a.stdout.Flush(); err != nil {
			return fmt.Errorf("write the output: %w", err)
		}
		select {
		case <-time.After(f.every):
		case <-ctx.Done():
			return interrupted()
		}
	}
}

func (a *app) statsOnce(ctx context.Context, queue admin.Admin, f *statsFlags) error {
	s, err := queue.Stats(ctx)
	if err != nil {
		return err
	}
	runs, runsErr := queue.Workflows().Count(ctx) // the queues are shown in any case
	now := a.now()
	switch {
	case a.people():
		if f.every > 0 && a.screen {
			a.stdout.WriteString("\x1b[H\x1b[2J") // clear the screen
		}
		a.printStats(&s, now)
		a.printRuns(runs)
		if runs.Blocked > 0 && f.every == 0 {
			a.say("'jobctl wf list -s blocked' lists the blocked runs, and 'jobctl wf show' explains each")
		}
	default:
		v := viewOfStats(&s, now)
		if counts := admin.WorkflowCounts(runs); counts != (admin.WorkflowCounts{}) {
			v.Runs = &counts
		}
		err = a.print(v)
	}
	switch {
	case err != nil:
		return err
	case errors.As(runsErr, new(*admin.UnsupportedError)): // the engine keeps no runs
	case errors.Is(runsErr, errors.ErrUnsupported):
		a.say("note: the app uses an older release of the library, which does not count runs; 'jobctl wf list' shows them")
	case runsErr != nil:
		return runsErr
	}
	return f.limits.check(&s, runs, now)
}

// printRuns prints a line about runs if there are any.
func (a *app) printRuns(c workflow.Counts) {
	bad, others := plain.Runs(c)
	if bad != "" && a.colors() {
		bad = red + bad + reset
	}
	if text := bad + others; text != "" {
		fmt.Fprintf(a.stdout, "runs: %s\n", text)
	}
}

func (a *app) printStats(s *admin.Stats, now time.Time) {
	who := "stopped"
	if p := s.Process; p != nil {
		if who = fmt.Sprintf("live, pid %d (%s)", p.PID, cell(p.Name, nameWidth)); p.PID == 0 { // the apps of a server
			who = "live, " + p.Name
		}
	}
	fmt.Fprintf(a.stdout, "%s  %s  format %d  %s%s\n", plain.Text(s.Path), who, s.Format, plain.Size(s.Size), space(s.Storage))
	out := a.queueTable()
	for i := range s.Queues {
		out.add(a.queueRow(s, &s.Queues[i], now)...)
	}
	out.flush()
	for _, q := range s.Queues {
		if text, full := plain.Backlog(&q); full {
			fmt.Fprintf(a.stdout, "full: %s jobs of queue %s wait; enqueues are refused\n", text, plain.Text(q.Name))
		} else if text != "" {
			fmt.Fprintf(a.stdout, "bound: %s jobs of queue %s wait\n", text, plain.Text(q.Name))
		}
		if q.Held > 0 {
			name := plain.Text(q.Name)
			fmt.Fprintf(a.stdout, "held: dead jobs hold %s of queue %s; 'jobctl key list %s --held' shows them\n", plural(q.Held, "key"), name, name)
		}
	}
	for _, p := range plain.Pools(s.Queues) {
		fmt.Fprintln(a.stdout, p)
	}
	if len(s.Queues) == 0 {
		a.say("no job was ever enqueued")
	}
}

// space returns how much of a file is unused, and the bound on the rest, if they are known.
func space(s pawl.Storage) string {
	var parts []string
	if s.Free >= 0 {
		parts = append(parts, plain.Size(s.Free)+" free")
	}
	if s.Max > 0 {
		parts = append(parts, "full at "+plain.Size(s.Max)+" in use")
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}
