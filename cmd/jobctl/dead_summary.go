package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
)

// groupView is an object of `dead summary`.
type groupView struct {
	Key         admin.Text  `json:"key"`
	Count       int64       `json:"count"`
	FirstDiedAt admin.Stamp `json:"first_died_at"`
	LastDiedAt  admin.Stamp `json:"last_died_at"`
	Example     string      `json:"example"`
}

func (a *app) deadSummaryCommand() *cobra.Command {
	var filter filterFlags
	by, limit := "error", admin.DefaultLimit
	c := a.command(&spec{
		use: "summary [FILTER...] [--by KEY]", short: "dead jobs grouped by what they have in common",
		long: `Groups dead jobs by what they have in common, the largest group first, with the
times when the first and the last job of a group became dead, and the ID of the
last as an example. Errors are grouped by their first line, ignoring numbers, IDs,
times, addresses and quoted texts.`,
		example: `  jobctl --db jobs.db dead summary --died-since 2h
  jobctl --db jobs.db dead summary --by payload.customer.id -q billing
  jobctl --db jobs.db dead summary --by kind -o json`,
		json: `a list of objects with
  key ("": no error, or no such field), count, first_died_at, last_died_at,
  example (the ID of the last dead job)
`,
		run: func(ctx context.Context, _ []string) error {
			return a.deadSummary(ctx, &filter, by, limit)
		},
	})
	c.Flags().Var(textFlag(&by), "by", "group by `KEY`: error (default), kind, queue, reason, or payload.PATH, a field such as payload.user.id")
	a.completeFlag(c, "by", cobra.FixedCompletions([]string{"error", "kind", "queue", "reason", "payload."}, cobra.ShellCompDirectiveNoFileComp))
	filter.register(a, c, pawl.Dead)
	c.Flags().VarP(countFlag(&limit), "limit", "n", "at most `COUNT` groups, 0 for all (default 50)")
	return c
}

func (a *app) deadSummary(ctx context.Context, f *filterFlags, by string, limit int) error {
	var groups []admin.Group
	damaged := int64(0)
	err := a.with(ctx, func(queue admin.Admin) (err error) {
		if err := f.known(ctx, queue); err != nil {
			return err
		}
		groups, damaged, err = admin.Summarize(ctx, queue, f.filters()[0], by)
		return err
	})
	if err != nil {
		return err
	}
	now, shown := a.now(), groups
	if limit > 0 {
		shown = groups[:min(len(groups), limit)]
	}
	out := a.listing([]column{{title: "COUNT", right: true}, {title: "FIRST", spare: 1}, {title: "LAST"}, {title: "EXAMPLE"}, {title: summaryTitle(by), cut: end}})
	for _, g := range shown {
		view := groupView{admin.Text(g.Key), g.Count, admin.Stamp{Time: g.First}, admin.Stamp{Time: g.Last}, g.Example.String()}
		cells := []string{fmt.Sprint(g.Count), relative(now, g.First), relative(now, g.Last), g.Example.String(), orDash(cell(g.Key, keyWidth))}
		if err := out.add(item{g.Example.String(), view, cells}); err != nil {
			return err
		}
	}
	out.close()
	switch more := len(groups) - len(shown); {
	case more > 0:
		a.say("showing the largest %d groups, there are %d more; -n 0 shows all", len(shown), more)
	case len(groups) == 0 && damaged == 0:
		a.say("no jobs match")
	}
	if damaged > 0 {
		return &failure{exitDamaged, fmt.Sprintf("%s could not be read", plural(int(damaged), "dead job")), "'jobctl dead list' names them."}
	}
	return nil
}

// keyWidth is how many characters of a key a table shows.
const keyWidth = 120

// summaryTitle returns the head of the column of keys.
func summaryTitle(by string) string {
	switch by {
	case "error", "kind", "queue", "reason":
		return strings.ToUpper(by)
	}
	return cell(by, nameWidth)
}
