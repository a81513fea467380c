package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
)

// jobListing is a listing whose items are jobs.
type jobListing struct {
	*listing
	cells func(*pawl.Envelope) []string
}

// list is one page of a list of jobs, read in portions, so that memory stays bounded however
// long the list is.
type list struct {
	filter filterFlags
	limit  int
	after  string

	rest string // "are" or "may be": whether more jobs follow; "": there are none
	next string
}

func (l *list) register(a *app, c *cobra.Command, states ...pawl.State) {
	l.limit = admin.DefaultLimit
	l.filter.register(a, c, states...)
	c.Flags().VarP(countFlag(&l.limit), "limit", "n", "at most `COUNT` jobs, 0 for all (default 50)")
	c.Flags().Var(textFlag(&l.after), "after", "continue after this `CURSOR` from the previous page")
	_ = c.RegisterFlagCompletionFunc("limit", cobra.NoFileCompletions)
	_ = c.RegisterFlagCompletionFunc("after", cobra.NoFileCompletions)
}

func (l *list) run(ctx context.Context, a *app, out *jobListing) error {
	out.of = "jobs"
	var damaged damage
	err := a.with(ctx, func(queue admin.Admin) error { return l.fill(ctx, queue, out, &damaged) })
	if l.rest != "" {
		out.next = l.next
	}
	if err == nil || out.count > 0 { // an unreachable queue is not an empty list
		out.close()
	}
	switch {
	case err != nil:
		return err
	case l.rest != "":
		a.say("showing the first %d, there %s more; -n 0 shows all, and --after %s the next ones", out.count, l.rest, l.next)
	case out.count == 0 && damaged.count == 0:
		a.say("no jobs match")
	}
	return a.damaged(&damaged, "job")
}

// detail returns how much of each job the output needs.
func (a *app) detail() admin.Detail {
	switch a.flags.output {
	case "ids":
		return admin.IDs
	case "wide":
		return admin.Payloads
	}
	return admin.Summary
}

// shownCell is how many bytes of a payload's text are decoded for a cell.
const shownCell = 4 * payloadWidth

// payloadCell returns a payload on one line, truncated.
func payloadCell(payload []byte) string {
	value, _, err := admin.DecodeJSON(payload, shownCell)
	switch {
	case len(payload) == 0:
		return "-"
	case err != nil:
		return cell(fmt.Sprintf("%x", payload[:min(len(payload), shownCell)]), payloadWidth)
	}
	return cell(string(value), payloadWidth)
}

// fill lists up to the limit, and checks whether there is more.
func (l *list) fill(ctx context.Context, queue admin.Admin, out *jobListing, damaged *damage) error {
	if err := l.filter.known(ctx, queue); err != nil {
		return err
	}
	q := admin.Query{Filter: l.filter.filters()[0], After: l.after, Detail: out.app.detail()}
	for detail := q.Detail; ; {
		q.Limit, q.Detail = admin.MaxLimit, detail
		if l.limit > 0 {
			q.Limit = min(q.Limit, l.limit-out.count)
		}
		page, err := queue.List(ctx, q)
		if err != nil {
			return err
		}
		for _, listed := range page.Jobs {
			if listed.Err != nil {
				damaged.add(listed.Err)
				continue
			}
			one := item{id: listed.Job.ID.String()}
			if a := out.app; a.people() {
				one.cells = out.cells(listed.Job)
			} else if a.flags.output != "ids" {
				one.json = jobOf(listed.Job)
			}
			if err := out.add(one); err != nil {
				return err
			}
		}
		if q.After = page.Next; q.After == "" {
			return nil
		}
		if l.limit > 0 && out.count >= l.limit {
			l.next = q.After
			q.Limit, q.Detail = 1, admin.IDs
			page, err := queue.List(ctx, q)
			switch {
			case len(page.Jobs) > 0:
				l.rest = "are"
			case page.Next != "": // checking further would take long
				l.rest = "may be"
			}
			return err
		}
	}
}
