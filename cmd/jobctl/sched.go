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

// scheduleFields is the part of --help that lists the fields of an admin.ScheduleView.
const scheduleFields = `  name, state (active, paused, retired: its program does not define it, or
    broken), expression, words, zone (null: UTC)
  group (of the program that defines it; null: an operator does)
  override (whether an operator has set other terms)
  spread, window (durations), catch_up (late ticks that fire)
  overlap (skip, allow, buffer, cancel or terminate)
  buffer (how many ticks may wait)
  kind (of its jobs; null: it starts runs), flow (of its runs), queue
  created_at, next_at (the next tick), due_at (when it is decided), paused_at
  note (of the operator who paused it), retired_at, error (null: not broken)
  alive (a list of jobs or runs), buffered_at (a list of ticks that wait)
  ticks: how many were fired, buffered, skipped, missed, paused, failed
`

// withSchedules opens the queue while do runs. It explains errors about schedules.
func (a *app) withSchedules(ctx context.Context, do func(admin.Schedules) error) error {
	err := a.with(ctx, func(queue admin.Admin) error { return do(queue.Schedules()) })
	switch {
	case err == nil, errors.As(err, new(*failure)):
		return err
	case errors.Is(err, schedule.ErrNotFound):
		return &failure{exitNoMatch, err.Error(), "'jobctl sched list' shows the schedules."}
	case errors.Is(err, pawl.ErrConflict):
		return &failure{exitConflict, err.Error(), "'jobctl sched set' changes the terms of a schedule that a program defines."}
	}
	return err
}

// ofSchedule returns a command whose first argument is the name of a schedule.
func (a *app) ofSchedule(words string, s *spec, run func(ctx context.Context, name string, args []string) error) *cobra.Command {
	s.complete = a.completeSchedule
	s.run = func(ctx context.Context, args []string) error {
		if len(args) == 0 || args[0] == "" {
			return misused(words, "no schedule was named; add its name")
		}
		return run(ctx, args[0], args)
	}
	return a.command(s)
}

func (a *app) schedListCommand() *cobra.Command {
	p := new(paging)
	c := a.command(&spec{
		use: "list [-n COUNT] [--after NAME]", short: "schedules, and when they fire next", ids: true,
		long: `Lists schedules in the order of their names. NEXT is when a schedule fires next. MISSED
counts ticks that came too late, and FAILED those whose job the queue refused. STATE
is paused until someone resumes the schedule, retired if its program no longer defines
it, and broken if its times cannot be computed. A star marks terms that an
operator has set.`,
		example: "  jobctl --db jobs.db sched list\n  jobctl --db jobs.db sched list -o ids",
		json:    "one object with next (a cursor for --after; null at the end) and\n  schedules: a list of objects with the fields below\nWith -o jsonl only the objects of schedules, one per line.\n" + scheduleFields,
		run:     func(ctx context.Context, _ []string) error { return a.listSchedules(ctx, p) },
	})
	p.register(c, "schedules")
	return c
}

func (a *app) listSchedules(ctx context.Context, p *paging) error {
	columns := []column{
		{title: "NAME", cut: middle}, {title: "STATE", color: scheduleColors.of}, {title: "NEXT"}, {title: "WHEN", cut: end},
		{title: "DOES", cut: middle, spare: 2}, {title: "FIRED", right: true, spare: 1}, {title: "MISSED", right: true}, {title: "FAILED", right: true},
	}
	out := a.listing(columns, left("EXPRESSION", "OVERLAP", "QUEUE", "GROUP", "NOTE")...)
	out.of = "schedules"
	firing := admin.FiringUnknown
	now := a.now()
	err := a.withSchedules(ctx, func(s admin.Schedules) error {
		return p.read(out, func(after string, limit int, _ bool) (items []item, next string, err error) {
			page, err := s.List(ctx, admin.ScheduleQuery{After: after, Limit: limit})
			if err != nil {
				return nil, "", err
			}
			firing = page.Firing
			for i := range page.Schedules {
				info := &page.Schedules[i]
				items = append(items, item{plain.Text(info.Name), admin.ScheduleOf(info), scheduleRow(info, now)})
			}
			return items, page.Next, nil
		})
	})
	if err := p.end(out, err, new(damage), "schedule", "there are no schedules"); err != nil {
		return err
	}
	switch {
	case out.count == 0 || !a.people():
	case firing == admin.FiringNo:
		a.say("nobody fires these: the app runs no scheduler; it starts one with schedule.Open and Sync")
	case firing == admin.FiringStopped:
		a.say("nobody fires these now: the app is stopped; it decides what is due when it starts")
	}
	return nil
}

func scheduleRow(i *schedule.Info, now time.Time) []string {
	state, next, words := admin.ScheduleState(i), "-", i.Words
	if i.Override {
		state += "*"
	}
	if !i.Due.IsZero() {
		next = relative(now, i.Next)
	}
	if i.Broken != "" {
		words = firstLine(i.Broken, errorWidth)
	}
	v := admin.ScheduleOf(i)
	return []string{
		cell(i.Name, nameWidth), state, next, orDash(cell(words, errorWidth)), orDash(cell(does(i), nameWidth)),
		fmt.Sprint(i.Counts.Fired), fmt.Sprint(i.Counts.Missed), fmt.Sprint(i.Counts.Failed),
		orDash(cell(i.Terms.Spec, nameWidth)), orDash(string(i.Terms.Overlap)), orDash(cell(string(v.Queue), nameWidth)),
		orDash(cell(i.Group, nameWidth)), orDash(firstLine(i.Note, errorWidth)),
	}
}

// does returns what a tick enqueues or starts.
func does(i *schedule.Info) string {
	switch {
	case i.Job != nil:
		return i.Job.Kind
	case i.Run != nil:
		return "flow " + i.Run.Flow
	}
	return ""
}

// scheduleColors are the colors of the states of schedules.
var scheduleColors = colors{"broken": red, "broken*": red, "paused": yellow, "paused*": yellow, "retired": yellow, "retired*": yellow}

func (a *app) schedShowCommand() *cobra.Command {
	ticks := 5
	c := a.ofSchedule("sched show", &spec{
		use: "show NAME [-n COUNT]", short: "everything about one schedule", args: 1,
		long: `Prints the terms of a schedule, what it does, what became of its ticks, and its next
ticks. A paused schedule shows those that it would have.`,
		example: "  jobctl --db jobs.db sched show nightly\n  jobctl --db jobs.db sched show nightly -n 20 -o json",
		json: "one object with\n" + scheduleFields + `  next_ticks_at (a list of times)
  payload (of its job; null: it starts runs): size_bytes, encoding (messagepack
    or unknown), value (as JSON), base64, hex
`,
		exits: []int{exitNoMatch},
	}, func(ctx context.Context, name string, _ []string) error { return a.showSchedule(ctx, name, ticks) })
	c.Flags().VarP(countFlag(&ticks), "limit", "n", "print the next `COUNT` ticks (default 5)")
	return c
}

func (a *app) showSchedule(ctx context.Context, name string, ticks int) error {
	if ticks > schedule.MaxNext {
		return misused("sched show", "-n %d is not in 0-%d", ticks, schedule.MaxNext)
	}
	s, err := read(ctx, a.withSchedules, func(all admin.Schedules) (*admin.Schedule, error) { return all.Show(ctx, name, ticks) })
	switch {
	case err != nil:
		return err
	case !a.people():
		return a.print(admin.ScheduleDetailOf(s, admin.PayloadAuto))
	}
	a.printSchedule(s)
	return nil
}

func (a *app) printSchedule(s *admin.Schedule) {
	a.fact("name", "%s", plain.Text(s.Name))
	a.fact("state", "%s", admin.ScheduleState(&s.Info))
	switch {
	case s.Broken != "":
		a.fact("error", "%s", plain.Text(s.Broken))
	case !s.Retired.IsZero():
		a.fact("retired", "%s", a.moment(s.Retired))
	case !s.Paused.IsZero():
		a.fact("paused", "%s", a.moment(s.Paused))
	}
	a.textFact("note", s.Note)
	a.fact("expression", "%s", plain.Text(s.Terms.Spec))
	a.fact("when", "%s", plain.Text(s.Words))
	if s.Override {
		a.fact("defined as", "%s; 'jobctl sched reset' returns to it", plain.Text(s.Defined.Spec))
	}
	a.fact("does", "%s", orDash(plain.Text(does(&s.Info))))
	definer := "an operator"
	if s.Group != "" {
		definer = "the program, group " + plain.Text(s.Group)
	}
	a.fact("defined by", "%s", definer)
	a.fact("late ticks", "%s", lateTicks(&s.Terms))
	overlap := string(s.Terms.Overlap)
	if s.Terms.Buffer > 0 {
		overlap += fmt.Sprintf(", up to %d", s.Terms.Buffer)
	}
	a.fact("overlap", "%s", overlap)
	if s.Terms.Spread > 0 {
		a.fact("spread", "%s", s.Terms.Spread)
	}
	c := s.Counts
	a.fact("ticks", "%d fired, %d waiting, %d skipped, %d missed, %d paused, %d failed", c.Fired, c.Buffered, c.Skipped, c.Missed, c.Paused, c.Failed)
	for _, id := range s.Alive {
		a.fact("alive", "%s", id)
	}
	for _, at := range s.Buffered {
		a.fact("waits", "the tick of %s", a.moment(at))
	}
	for _, at := range s.Ticks {
		a.fact("next", "%s", a.moment(at))
	}
}

// lateTicks returns which late ticks fire, in words.
func lateTicks(t *schedule.Terms) string {
	text := fmt.Sprintf("the latest %d fire", t.CatchUp)
	switch t.CatchUp {
	case schedule.None:
		text = "none fires"
	case schedule.Latest:
		text = "the latest fires"
	}
	if t.Window > 0 {
		text += fmt.Sprintf(", if it is at most %s late", t.Window)
	}
	return text
}
