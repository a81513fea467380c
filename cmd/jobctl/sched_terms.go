package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/schedule"
)

// termFlags are the terms of a schedule. Only flags that are given change them.
type termFlags struct {
	terms schedule.Terms
	set   []func(*schedule.Terms)
}

func (t *termFlags) register(c *cobra.Command) {
	given := func(parse func(string) error, apply func(*schedule.Terms)) flagFunc {
		return flagFunc{func(text string) error {
			t.set = append(t.set, apply)
			return parse(text)
		}}
	}
	flags, overlap := c.Flags(), ""
	flags.Var(given(textFlag(&t.terms.Zone).Set, func(to *schedule.Terms) { to.Zone = t.terms.Zone }), "tz", "the time `ZONE`, such as Europe/Berlin (default UTC)")
	flags.Var(given(countFlag(&t.terms.CatchUp).Set, func(to *schedule.Terms) { to.CatchUp = t.terms.CatchUp }), "catch-up", "fire the latest `COUNT` of several late ticks (default 1)")
	flags.Var(given(ageFlag(&t.terms.Window).Set, func(to *schedule.Terms) { to.Window = t.terms.Window }), "window", "a tick that is later than this `TIME` does not fire (default: no limit)")
	policy := oneOf(&overlap, string(schedule.Skip), string(schedule.Allow), string(schedule.Buffer), string(schedule.CancelOther), string(schedule.TerminateOther))
	flags.Var(chosen{given(policy.Set, func(to *schedule.Terms) {
		if to.Overlap, to.Buffer = schedule.OverlapPolicy(overlap), 0; to.Overlap == schedule.Buffer {
			to.Buffer = 1
		}
	}), policy.(chosen).words}, "overlap", "`WHAT` a tick does while an earlier job is alive: skip (default), allow, buffer, cancel or terminate")
	flags.Var(given(countFlag(&t.terms.Buffer).Set, func(*schedule.Terms) {}), "buffer", "with --overlap buffer, at most `COUNT` ticks wait (default 1)")
	flags.Var(given(ageFlag(&t.terms.Spread).Set, func(to *schedule.Terms) { to.Spread = t.terms.Spread }), "spread", "delay each tick by up to this `TIME`, by the name of the schedule")
}

// over returns terms changed by the given flags.
func (t *termFlags) over(terms schedule.Terms) schedule.Terms {
	for _, apply := range t.set {
		apply(&terms)
	}
	if t.terms.Buffer > 0 { // it may come before --overlap
		terms.Buffer = t.terms.Buffer
	}
	return terms
}

func (a *app) schedAddCommand() *cobra.Command {
	terms, line := new(termFlags), &jobLine{MaxRetries: pawl.DefaultMaxRetries}
	c := a.command(&spec{
		use: "add NAME EXPRESSION KIND [JSON|-|@FILE]", short: "add a schedule that enqueues jobs", args: 4,
		long: `Adds a schedule that enqueues a job of a kind, with arguments as 'jobctl job enqueue'
takes them. It belongs to operators: a program that starts does not change it. A
schedule of the same name is replaced, unless a program defines it. 'jobctl sched next'
tries an expression.`,
		example: `  jobctl --db jobs.db sched add nightly '30 2 * * *' report.build '{"Days":1}'
  jobctl --db jobs.db sched add open '0 9 * * MON' shop.open --tz Europe/Berlin`,
		json:  "one object, the schedule, with\n" + scheduleFields,
		exits: []int{exitConflict},
		run:   func(ctx context.Context, args []string) error { return a.addSchedule(ctx, args, terms, line) },
	})
	terms.register(c)
	flags := c.Flags()
	flags.VarP(nameFlag(&line.Queue, driver.CheckQueue), "queue", "q", "the `QUEUE` of the jobs (default "+pawl.DefaultQueue+")")
	flags.IntVar(&line.Priority, "priority", 0, "a `NUMBER` from -128 to 127; higher runs first")
	flags.Var(ageFlag((*time.Duration)(&line.RunTimeout)), "run-timeout", "the `TIME` limit of one attempt (default: the worker's)")
	flags.Var(countFlag(&line.MaxRetries), "max-retries", fmt.Sprintf("at most `COUNT` attempts after the first (default %d)", pawl.DefaultMaxRetries))
	flags.Var(ageFlag((*time.Duration)(&line.Retain)), "retain", "keep the record of its success for this `TIME`")
	flags.Var(manyFlag{flagFunc{line.header}}, "header", "a `KEY=VALUE` stored beside the arguments; may be repeated")
	return c
}

func (a *app) addSchedule(ctx context.Context, args []string, terms *termFlags, line *jobLine) error {
	const words = "sched add"
	if len(args) < 3 {
		return misused(words, "name the schedule, its expression in quotes, and the kind of its jobs")
	}
	var err error
	if line.Args, err = a.optionalArgument(args, 3, jsonFile); err != nil {
		return err
	}
	line.Kind = args[2]
	job, err := line.checked()
	if err != nil {
		return usage(words, "%s", err)
	}
	d := admin.ScheduleDefinition{Name: args[0], Job: job, Terms: terms.over(schedule.Terms{Spec: args[1], CatchUp: schedule.Latest, Overlap: schedule.Skip})}
	return a.changeSchedule(ctx, "added", args[0], func(all admin.Schedules) error { return all.Put(ctx, d) })
}

func (a *app) schedSetCommand() *cobra.Command {
	terms := new(termFlags)
	c := a.ofSchedule("sched set", &spec{
		use: "set NAME [EXPRESSION]", short: "change when a schedule fires", args: 2,
		long: `Changes the terms of a schedule that are given, and keeps the others. If a program
defines the schedule, the new terms stay until 'jobctl sched reset', even when the
program starts again.`,
		example: `  jobctl --db jobs.db sched set nightly '0 4 * * *'
  jobctl --db jobs.db sched set nightly --overlap buffer --buffer 3`,
		json:  "one object, the schedule, with\n" + scheduleFields,
		exits: []int{exitNoMatch},
	}, func(ctx context.Context, name string, args []string) error {
		return a.setSchedule(ctx, name, args, terms)
	})
	terms.register(c)
	return c
}

func (a *app) setSchedule(ctx context.Context, name string, args []string, flags *termFlags) error {
	if len(args) == 1 && len(flags.set) == 0 {
		return misused("sched set", "nothing to change was given; add an expression, or a flag")
	}
	return a.changeSchedule(ctx, "set", name, func(all admin.Schedules) error {
		s, err := all.Show(ctx, name, 0)
		if err != nil {
			return err
		}
		terms := s.Terms
		if len(args) == 2 {
			terms.Spec = args[1]
			if own, err := schedule.ParseNamed(name, terms.Spec); err == nil && own.Zone() != nil {
				terms.Zone = ""
			}
		}
		terms = flags.over(terms)
		return all.Do(ctx, admin.ScheduleAction{Verb: admin.Set, Terms: &terms}, name)
	})
}
