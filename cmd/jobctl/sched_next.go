package main

import (
	"context"
	"fmt"
	"time"
	_ "time/tzdata" // time zones, if the system has none

	"github.com/spf13/cobra"

	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/cmd/jobctl/internal/plain"
	"github.com/gopawl/pawl/schedule"
)

// mostTicks is the maximum count that `sched next` accepts.
const mostTicks = 10_000

// ticksView is the JSON object that `sched next` prints.
type ticksView struct {
	Expression string     `json:"expression"`
	Words      string     `json:"words"`
	Zone       string     `json:"zone"`
	Times      []tickView `json:"times"`
}

type tickView struct {
	At          string      `json:"at"`
	Clock       string      `json:"clock"`
	ClockChange *admin.Text `json:"clock_change"`
}

// ticking is one call of `sched next`.
type ticking struct {
	app   *app
	zone  string
	after string
	name  string
	count int
}

func (a *app) schedNextCommand() *cobra.Command {
	t := &ticking{app: a, count: 5}
	c := a.command(&spec{
		use: "next EXPRESSION", short: "the next times of a schedule", nofile: true, args: -1,
		long: `Prints what a cron expression means, in words, and its next times. It needs no file. An
expression has five fields: minute, hour, day of the month, month, and day of the week.
A sixth field, for seconds, may come first. '@every 90s' and names such as @daily are
expressions too, and @open is once whenever the program starts. The prefix TZ=ZONE sets the time zone, as --tz does.

A time that the clock skips counts at the end of the gap, and a time that it shows
twice counts once, unless the schedule runs in every hour of the day.`,
		example: "  jobctl sched next '30 2 * * MON-FRI' --tz Europe/Berlin\n  jobctl sched next '0 9 * * MON#1' -n 12 -o jsonl",
		json: `one object with expression, words, zone (Local: that of this machine), and
  times: a list of at, clock (the same in the zone), clock_change (how the clock
         changes on that day, null: it does not)
`,
		run: t.run,
	})
	flags := c.Flags()
	flags.Var(textFlag(&t.zone), "tz", "the time `ZONE`, such as Europe/Berlin (default: that of this machine, or UTC with --utc)")
	flags.VarP(countFlag(&t.count), "limit", "n", "print `COUNT` times (default 5)")
	flags.Var(textFlag(&t.after), "after", "print those after a `TIME`: a date, a time, or a duration from now such as 2h (default now)")
	flags.Var(textFlag(&t.name), "name", "the `NAME` of the schedule; the values of H depend on it")
	return c
}

func (t *ticking) run(_ context.Context, args []string) error {
	const words = "sched next"
	switch {
	case len(args) == 0:
		return misused(words, "no expression was given; add one in quotes")
	case len(args) > 1:
		return misused(words, "%d arguments were given; put the expression in quotes", len(args))
	case t.count < 1 || t.count > mostTicks:
		return misused(words, "-n %d is not in 1-%d", t.count, mostTicks)
	}
	spec, err := schedule.ParseNamed(t.name, args[0])
	if err != nil {
		return misused(words, "%v", err)
	}
	zone := t.app.location()
	switch own := spec.Zone(); {
	case own != nil && t.zone != "":
		return misused(words, "the expression and --tz name a time zone; choose one")
	case own != nil:
		zone = own
	case t.zone != "":
		if zone, err = schedule.Location(t.zone); err != nil {
			return misused(words, "the time zone %v", err)
		}
	}
	from := t.app.now()
	if t.after != "" {
		if from, err = parseFuture(t.after, from, zone); err != nil {
			return misused(words, "--after %s: %v", t.after, err)
		}
	}
	return t.print(spec, zone, from)
}

func (t *ticking) print(spec schedule.Spec, zone *time.Location, at time.Time) error {
	v := ticksView{Expression: spec.String(), Words: spec.Words(), Zone: zone.String(), Times: []tickView{}}
	table := t.app.table(column{title: "TIME"}, column{title: "WHEN", right: true}, column{title: "CLOCK"})
	now := t.app.now()
	for range t.count {
		if at = spec.Next(at, zone); at.IsZero() { // @open does not depend on the clock
			break
		}
		change := clockChange(at)
		v.Times = append(v.Times, tickView{At: stamp(at), Clock: at.Format(time.RFC3339), ClockChange: optional(change)})
		table.add(at.Format("Mon 2006-01-02 15:04:05 Z07:00"), relative(now, at), change)
	}
	if !t.app.people() {
		return t.app.print(v)
	}
	where := v.Zone
	if zone == time.Local {
		where = "local time"
	}
	fmt.Fprintf(t.app.stdout, "%s (%s)\n", v.Words, where)
	if len(v.Times) > 0 {
		table.flush()
	}
	return nil
}

// clockChange describes how the clock changes on the day of a time. It returns "" if it does not
// change.
func clockChange(at time.Time) string {
	start, end := at.ZoneBounds()
	for _, change := range []time.Time{start, end} {
		if change.IsZero() || change.Format(time.DateOnly) != at.Format(time.DateOnly) {
			continue
		}
		_, was := change.Add(-time.Second).Zone()
		_, is := change.Zone()
		switch by := time.Duration(is-was) * time.Second; {
		case by > 0:
			return "goes forward by " + plain.Span(by)
		case by < 0:
			return "goes back by " + plain.Span(-by)
		}
	}
	return ""
}
