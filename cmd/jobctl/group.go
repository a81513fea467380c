package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/cmd/jobctl/internal/plain"
	"github.com/gopawl/pawl/group"
)

// groupFields is the part of --help that lists the fields of an admin.GroupView.
const groupFields = `  name, state (open, closed: it ends once no member is pending, ended,
    or damaged)
  total, pending, succeeded, dead, removed (counts of its members)
  created_at (null: an import stored members alone), ended_at
  done, success (IDs of its callbacks; null: none)
  done_enqueued, success_enqueued
`

// withGroups opens the queue while do runs. It explains errors about groups.
func (a *app) withGroups(ctx context.Context, do func(admin.Groups) error) error {
	err := a.with(ctx, func(queue admin.Admin) error { return do(queue.Groups()) })
	if errors.Is(err, pawl.ErrNotFound) && !errors.As(err, new(*failure)) {
		return &failure{exitNoMatch, err.Error(), "'jobctl group list' shows the groups."}
	}
	return err
}

func (a *app) groupListCommand() *cobra.Command {
	p := new(paging)
	c := a.command(&spec{
		use: "list [-n COUNT] [--after NAME]", short: "groups, and how many of their members are done", ids: true,
		long: `Lists groups in the order of their names, with the counts of their members. A group is
open until its program closes it. A closed group ends once no member is pending, and
then enqueues its callback.`,
		example: "  jobctl --db jobs.db group list\n  jobctl --db jobs.db group list -o ids",
		json:    "one object with next (a cursor for --after; null at the end) and\n  groups: a list of objects with the fields below\nWith -o jsonl only the objects of groups, one per line.\n" + groupFields,
		run:     func(ctx context.Context, _ []string) error { return a.listGroups(ctx, p) },
	})
	p.register(c, "groups")
	return c
}

func (a *app) listGroups(ctx context.Context, p *paging) error {
	columns := []column{
		{title: "NAME", cut: middle}, {title: "STATE"}, {title: "TOTAL", right: true}, {title: "PENDING", right: true},
		{title: "SUCCEEDED", right: true}, {title: "DEAD", right: true}, {title: "REMOVED", right: true},
	}
	out := a.listing(columns, left("CREATED", "ENDED")...)
	out.of = "groups"
	err := a.withGroups(ctx, func(g admin.Groups) error {
		return p.read(out, func(after string, limit int, _ bool) (items []item, next string, err error) {
			list, next, err := g.List(ctx, after, limit)
			for i := range list {
				s := &list[i]
				v := admin.GroupOf(s)
				row := []string{plain.Text(s.Name), v.State, fmt.Sprint(s.Total), fmt.Sprint(s.Pending), fmt.Sprint(s.Succeeded),
					fmt.Sprint(s.Dead), fmt.Sprint(s.Removed), a.clock(s.Created), a.clock(s.Ended)}
				items = append(items, item{plain.Text(s.Name), v, row})
			}
			return items, next, err
		})
	})
	return p.end(out, err, new(damage), "group", "there are no groups")
}

// oneGroup returns a command for one group, which prints it after do.
func (a *app) oneGroup(verb string, s *spec, do func(ctx context.Context, g admin.Groups, name string) error) *cobra.Command {
	s.use, s.args, s.complete, s.exits, s.json = verb+" NAME", 1, a.completeGroup, []int{exitNoMatch}, "one object, the group, with\n"+groupFields
	s.example = "  jobctl --db jobs.db group " + verb + " import/7"
	s.run = func(ctx context.Context, args []string) error {
		if len(args) == 0 || args[0] == "" {
			return misused("group "+verb, "no group was named; add its name")
		}
		status, err := read(ctx, a.withGroups, func(g admin.Groups) (status group.Status, err error) {
			if err = do(ctx, g, args[0]); err == nil {
				status, err = g.Show(ctx, args[0])
			}
			return status, err
		})
		if err != nil {
			return err
		}
		return a.printGroup(&status)
	}
	return a.command(s)
}

func (a *app) groupShowCommand() *cobra.Command {
	return a.oneGroup("show", &spec{
		short: "a group, its counts, and its callbacks",
		long:  "Shows a group: the counts of its members, and what became of its callbacks.",
	}, func(context.Context, admin.Groups, string) error { return nil })
}

func (a *app) groupCloseCommand() *cobra.Command {
	return a.oneGroup("close", &spec{
		short: "let a group end once no member is pending",
		long: `Closes a group, as its program does after it has enqueued the members. The group ends
once no member is pending, and then enqueues its callback. Closing a closed group
does nothing, except after a salvage: then it enqueues the callbacks that are due.`,
	}, func(ctx context.Context, g admin.Groups, name string) error { return g.Close(ctx, name) })
}

func (a *app) groupCancelCommand() *cobra.Command {
	return a.oneGroup("cancel", &spec{
		short: "cancel the pending members of a group",
		long: `Cancels the members of a group that have not ended. A waiting member becomes dead at
once. For a running member, the context of its handler ends, and the member ends when
the handler returns. The command reads all jobs of the queue.`,
	}, func(ctx context.Context, g admin.Groups, name string) error {
		n, err := g.Cancel(ctx, name)
		if err == nil && a.people() {
			a.say("cancelled %s", plural(n, "member"))
		}
		return err
	})
}

// printGroup prints a group.
func (a *app) printGroup(s *group.Status) error {
	v := admin.GroupOf(s)
	if !a.people() {
		return a.print(v)
	}
	a.fact("group", "%s", plain.Text(s.Name))
	a.fact("state", "%s", v.State)
	a.fact("members", "%d: %d pending, %d succeeded, %d dead, %d removed", s.Total, s.Pending, s.Succeeded, s.Dead, s.Removed)
	a.timeFact("created", s.Created)
	a.timeFact("ended", s.Ended)
	for _, c := range []struct {
		name string
		is   group.Callback
	}{{"done", s.Done}, {"success", s.Success}} {
		if c.is.ID.IsZero() {
			continue
		}
		state := "not enqueued yet"
		if c.is.Enqueued {
			state = "enqueued"
		}
		a.fact(c.name, "job %s, %s", c.is.ID, state)
	}
	return nil
}
