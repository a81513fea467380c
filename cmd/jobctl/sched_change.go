package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/cmd/jobctl/internal/plain"
	"github.com/gopawl/pawl/schedule"
)

// changeSchedule carries out a change of a schedule, and prints the schedule.
func (a *app) changeSchedule(ctx context.Context, did, name string, do func(admin.Schedules) error) error {
	s, err := read(ctx, a.withSchedules, func(all admin.Schedules) (*admin.Schedule, error) {
		if err := do(all); err != nil {
			return nil, err
		}
		return all.Show(ctx, name, 0)
	})
	if err != nil {
		return err
	}
	next := "it does not fire"
	if !s.Paused.IsZero() {
		next = "it fires when it is resumed"
	}
	if !s.Due.IsZero() {
		next = "next " + a.moment(s.Next)
	}
	return a.result(admin.ScheduleOf(&s.Info), "%s: %s, %s\n", did, plain.Text(name), next)
}

// actCommand returns a command that carries out one action.
func (a *app) actCommand(s *spec, did string, action *admin.ScheduleAction) *cobra.Command {
	s.args, s.exits, s.json = 1, []int{exitNoMatch}, "one object, the schedule, with\n"+scheduleFields
	return a.ofSchedule("sched "+string(action.Verb), s, func(ctx context.Context, name string, _ []string) error {
		return a.changeSchedule(ctx, did, name, func(all admin.Schedules) error { return all.Do(ctx, *action, name) })
	})
}

func (a *app) schedPauseCommand() *cobra.Command {
	action := &admin.ScheduleAction{Verb: admin.Pause}
	c := a.actCommand(&spec{
		use: "pause NAME [--note WHY]", short: "stop a schedule until it is resumed",
		long: `Stops a schedule until 'jobctl sched resume', even across a restart of the app. Jobs that
it has enqueued are not affected. Pausing a paused schedule replaces the note.`,
		example: "  jobctl --db jobs.db sched pause nightly --note 'until the migration is over'",
	}, "paused", action)
	c.Flags().Var(textFlag(&action.Note), "note", "`WHY`, for other operators")
	return c
}

func (a *app) schedResumeCommand() *cobra.Command {
	action := &admin.ScheduleAction{Verb: admin.Resume}
	c := a.actCommand(&spec{
		use: "resume NAME [--catch-up]", short: "end a pause",
		long: `Ends a pause. The ticks of the pause do not fire, unless --catch-up treats them as late
ticks. Resuming a schedule that is not paused is not an error.`,
		example: "  jobctl --db jobs.db sched resume nightly\n  jobctl --db jobs.db sched resume nightly --catch-up",
	}, "resumed", action)
	c.Flags().BoolVar(&action.CatchUp, "catch-up", false, "fire the late ticks that the terms of the schedule allow")
	return c
}

func (a *app) schedResetCommand() *cobra.Command {
	return a.actCommand(&spec{
		use: "reset NAME", short: "return to the terms of the program",
		long:    "Drops the terms that 'jobctl sched set' gave to a schedule of a program.",
		example: "  jobctl --db jobs.db sched reset nightly",
	}, "reset", &admin.ScheduleAction{Verb: admin.Reset})
}

// removedView is the object of `sched remove`.
type removedView struct {
	Name    admin.Text `json:"name"`
	Removed bool       `json:"removed"`
}

func (a *app) schedRemoveCommand() *cobra.Command {
	return a.ofSchedule("sched remove", &spec{
		use: "remove NAME", short: "remove a schedule with its history", args: 1,
		long: `Removes a schedule that an operator added, or that its program no longer defines, with
its history, after a question. Jobs that it has enqueued stay. It also removes a
schedule that is broken because its row is damaged. To get that back, add it again, or
start its program, which adds it.`,
		example: "  jobctl --db jobs.db sched remove nightly",
		json:    "one object with name, removed\n",
		exits:   []int{exitNoMatch, exitConflict},
	}, a.removeSchedule)
}

func (a *app) removeSchedule(ctx context.Context, name string, _ []string) error {
	if err := a.askable("sched remove", "remove a schedule"); err != nil {
		return err
	}
	if !a.flags.yes && !a.confirm(ctx, fmt.Sprintf("Remove the schedule %s with its history?", plain.Text(name))) {
		return notConfirmed()
	}
	err := a.withSchedules(ctx, func(all admin.Schedules) error {
		err := all.Do(ctx, admin.ScheduleAction{Verb: admin.Remove}, name)
		if errors.As(err, new(*pawl.InvalidError)) {
			return &failure{exitConflict, err.Error(), "'jobctl sched pause' stops it."}
		}
		return err
	})
	if err != nil {
		return err
	}
	return a.result(removedView{admin.Text(name), true}, "removed: %s\n", plain.Text(name))
}

// triggeredView is the object of `sched trigger`.
type triggeredView struct {
	Name admin.Text `json:"name"`
	ID   string     `json:"id"`
}

func (a *app) schedTriggerCommand() *cobra.Command {
	return a.ofSchedule("sched trigger", &spec{
		use: "trigger NAME", short: "fire a schedule now", args: 1, ids: true,
		long: `Fires a schedule now, even if it is paused or if an earlier job is still there, and
prints the ID of the job or run. It moves no tick.`,
		example: "  jobctl --db jobs.db sched trigger nightly",
		json:    "one object with name, id (of the job or run)\n",
		exits:   []int{exitNoMatch},
	}, func(ctx context.Context, name string, _ []string) error {
		id, err := read(ctx, a.withSchedules, func(all admin.Schedules) (pawl.ID, error) { return all.Trigger(ctx, name) })
		switch {
		case err != nil:
			return err
		case !a.people() && a.flags.output != "ids":
			return a.print(triggeredView{admin.Text(name), id.String()})
		}
		fmt.Fprintln(a.stdout, id)
		return nil
	})
}

// backfilling is one `sched backfill`.
type backfilling struct {
	from, to time.Time
	most     int
}

// backfilledView is the object of `sched backfill`.
type backfilledView struct {
	Name  admin.Text  `json:"name"`
	From  admin.Stamp `json:"from"`
	To    admin.Stamp `json:"to"`
	Fired int         `json:"fired"`
}

func (a *app) schedBackfillCommand() *cobra.Command {
	b := &backfilling{most: 100}
	c := a.ofSchedule("sched backfill", &spec{
		use: "backfill NAME --from TIME --to TIME", short: "fire the ticks of a period again", args: 1,
		long: `Fires the ticks of a period, whether they have fired or not. The end of the period does
not count. A run of a workflow that was started for the same tick is not started again.
A period with more ticks than --max, or with a tick that is not decided yet, is refused.`,
		example: "  jobctl --db jobs.db sched backfill nightly --from 2026-03-01 --to 2026-03-08",
		json:    "one object with name, from, to (times), fired (how many ticks)\n",
		exits:   []int{exitNoMatch},
	}, func(ctx context.Context, name string, _ []string) error { return b.run(ctx, a, name) })
	c.Flags().Var(a.momentFlag(&b.from), "from", "the `TIME` of the first tick: a date, a time, or an age such as 7d")
	c.Flags().Var(a.momentFlag(&b.to), "to", "the `TIME` at which the period ends; a tick at this time does not fire")
	c.Flags().Var(countFlag(&b.most), "max", fmt.Sprintf("refuse more than `COUNT` ticks, up to %d (default 100)", schedule.MaxCatchUp))
	return c
}

func (b *backfilling) run(ctx context.Context, a *app, name string) error {
	const words = "sched backfill"
	switch {
	case b.from.IsZero() || b.to.IsZero():
		return misused(words, "the period is not given; add --from and --to")
	case b.to.Before(b.from):
		return misused(words, "--to is before --from")
	}
	fired, err := read(ctx, a.withSchedules, func(all admin.Schedules) (int, error) {
		return all.Backfill(ctx, name, b.from, b.to, b.most)
	})
	if err != nil {
		return err
	}
	return a.result(backfilledView{admin.Text(name), admin.Stamp{Time: b.from}, admin.Stamp{Time: b.to}, fired},
		"fired: %s of %s\n", plural(fired, "tick"), plain.Text(name))
}
