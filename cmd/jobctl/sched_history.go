package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/schedule"
)

// ranging is one `sched history`.
type ranging struct {
	count int
	after int
}

func (a *app) schedHistoryCommand() *cobra.Command {
	h := &ranging{count: 20}
	c := a.ofSchedule("sched history", &spec{
		use: "history NAME [-n COUNT] [--after NUMBER]", short: "what became of the ticks of a schedule", args: 1,
		long: fmt.Sprintf(`Prints what became of the ticks of a schedule, oldest first. An entry is one tick, or
several in a row with the same decision. A schedule keeps its last %d entries.`, schedule.MaxHistory),
		example: "  jobctl --db jobs.db sched history nightly\n  jobctl --db jobs.db sched history nightly -n 0 -o jsonl",
		json: `a list of objects with number (counts from 1), decision (fired,
  buffered, skipped, missed, paused, failed or clock), first_at, last_at (the
  first and the last tick), ticks (how many), at (when they were decided), job
  (or run), why, manual (whether an operator caused it)
`,
		exits: []int{exitNoMatch},
	}, func(ctx context.Context, name string, _ []string) error { return h.run(ctx, a, name) })
	c.Flags().VarP(countFlag(&h.count), "limit", "n", "the newest `COUNT` entries, 0 for all (default 20)")
	c.Flags().Var(countFlag(&h.after), "after", "only those after this `NUMBER`")
	return c
}

func (h *ranging) run(ctx context.Context, a *app, name string) error {
	list, err := read(ctx, a.withSchedules, func(s admin.Schedules) ([]schedule.Entry, error) { return s.History(ctx, name, uint64(h.after)) })
	if err != nil {
		return err
	}
	if h.count > 0 {
		list = list[max(0, len(list)-h.count):]
	}
	out := a.listing([]column{
		{title: "NR", right: true, spare: 1}, {title: "TICK"}, {title: "DECISION", color: decisionColors.of}, {title: "DECIDED", spare: 2}, {title: "JOB"}, {title: "WHY", cut: end},
	})
	for i := range list {
		if err := out.add(item{strconv.FormatUint(list[i].N, 10), admin.EntryOf(&list[i]), a.entryRow(&list[i])}); err != nil {
			return err
		}
	}
	out.close()
	if len(list) == 0 {
		a.say("no tick has been decided yet")
	}
	return nil
}

func (a *app) entryRow(e *schedule.Entry) []string {
	tick, decision, why, job := a.clock(e.First), string(e.Decision), e.Why, "-"
	switch {
	case e.Ticks >= schedule.MaxMissed:
		tick += fmt.Sprintf(" and %d or more", schedule.MaxMissed)
	case e.Ticks > 1:
		tick += fmt.Sprintf(" and %d more", e.Ticks-1)
	}
	if e.Manual {
		decision += " by hand"
	}
	if !e.Job.IsZero() {
		job = e.Job.String()
	}
	if late := e.At.Sub(e.Last); e.Decision == schedule.Fired && !e.Manual && late > time.Minute && why == "" {
		why = "late by " + late.Round(time.Second).String()
	}
	return []string{strconv.FormatUint(e.N, 10), tick, decision, a.clock(e.At), job, orDash(firstLine(why, errorWidth))}
}

// decisionColors are the colors of decisions.
var decisionColors = colors{
	string(schedule.Missed): red, string(schedule.Failed): red,
	string(schedule.Skipped): yellow, string(schedule.Paused): yellow, string(schedule.Clock): yellow,
}
