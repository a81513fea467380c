package main

import (
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/cmd/jobctl/internal/plain"
	"github.com/gopawl/pawl/driver"
)

func (a *app) throughputCommand() *cobra.Command {
	q := admin.ThroughputQuery{Last: time.Hour}
	c := a.command(&spec{
		use: "throughput [--queue QUEUE] [--last TIME]", short: "jobs enqueued, succeeded, failed, and dead in the last week",
		long: `Prints what happened to jobs in the last hour, or in up to a week, from counts that the
file has: by minute for up to an hour, by ten minutes for up to a day, and otherwise by
hour. Periods without a change are left out. FAILED attempts are tried again. BUILD is a
build of the app that first ran jobs then. A kill loses at most the counts of the last
minute in which something happened. Beyond 100 queues in an hour, queues are counted
together.`,
		example: "  jobctl --db jobs.db throughput\n  jobctl --db jobs.db throughput --queue email --last 7d -o json",
		json: `one object with
  queue (null: all), step (a duration), damaged (rows that could not be read)
  periods: a list of objects with at (when it begins), enqueued, succeeded,
    retried (attempts that failed and are tried again), dead
  builds: a list of objects with at, version, revision, oldest first; the
    first one may be older than the periods
`,
		exits: []int{exitNoMatch},
		run:   func(ctx context.Context, _ []string) error { return a.throughput(ctx, q) },
	})
	c.Flags().StringVarP(&q.Queue, "queue", "q", "", "only jobs of this `QUEUE`")
	c.Flags().Var(ageFlag(&q.Last), "last", "up to this `TIME` ago, at most 7d (default 1h)")
	return c
}

func (a *app) throughput(ctx context.Context, q admin.ThroughputQuery) error {
	if _, _, err := q.Step(); err != nil {
		return usage("throughput", "%s", err)
	}
	t, err := read(ctx, a.with, func(queue admin.Admin) (t admin.Throughput, err error) {
		if q.Queue != "" {
			if _, _, err := statsOf(ctx, queue, q.Queue); err != nil {
				return t, err
			}
		}
		return queue.Throughput(ctx, q)
	})
	if err != nil {
		return err
	}
	if !a.people() {
		return a.print(admin.ThroughputOf(q.Queue, t))
	}
	out := a.table([]column{
		{title: "SINCE"}, {title: "ENQUEUED", right: true}, {title: "SUCCEEDED", right: true}, {title: "FAILED", right: true},
		{title: "DEAD", right: true, color: colorOfCount}, {title: "BUILD", cut: end},
	}...)
	for i := range t.Periods {
		p := &t.Periods[i]
		build := ""
		for _, b := range t.BuildsIn(i) {
			build = plain.Text(b.Name())
		}
		if build != "" || p.Counted() {
			out.add(throughputRow(a.clock(p.At), p.Totals, build)...)
		}
	}
	total := t.Total()
	out.add(throughputRow("total", total, "")...)
	out.flush()
	if !total.Counted() {
		a.say("nothing happened in the last %s", plain.Span(q.Last))
	}
	if t.Damaged > 0 {
		a.say("%s could not be read; 'jobctl db check' says more", plural(t.Damaged, "row"))
	}
	return nil
}

func throughputRow(since string, t driver.Totals, build string) []string {
	n := func(v int64) string { return strconv.FormatInt(v, 10) }
	return []string{since, n(t.Enqueued), n(t.Succeeded), n(t.Retried), n(t.Died), orDash(build)}
}
