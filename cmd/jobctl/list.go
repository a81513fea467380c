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
	when  int // the cell that also has the progress of a running job
}

// paging is one page of a list. It is read in portions, so that memory stays bounded however long
// the list is.
type paging struct {
	limit int
	after string

	rest string // whether more follow: "are" or "may be"; "" if there are none
	next string
}

func (p *paging) register(c *cobra.Command, things string) {
	p.limit = admin.DefaultLimit
	c.Flags().VarP(countFlag(&p.limit), "limit", "n", "at most `COUNT` "+things+", 0 for all (default 50)")
	c.Flags().Var(textFlag(&p.after), "after", "continue after this `CURSOR` from the previous page")
}

// read calls list for portions up to the limit, and adds their items to out. To check whether
// there is more, it asks for one more item, which is not shown.
func (p *paging) read(out *listing, list func(after string, limit int, shown bool) (items []item, next string, err error)) error {
	for after := p.after; ; {
		limit := admin.MaxLimit
		if p.limit > 0 {
			limit = min(limit, p.limit-out.count)
		}
		items, next, err := list(after, limit, true)
		if err != nil {
			return err
		}
		for _, one := range items {
			if err := out.add(one); err != nil {
				return err
			}
		}
		if after = next; next == "" {
			return nil
		}
		if p.limit > 0 && out.count >= p.limit {
			p.next = next
			more, next, err := list(after, 1, false)
			switch {
			case len(more) > 0:
				p.rest = "are"
			case next != "": // checking further would take long
				p.rest = "may be"
			}
			return err
		}
	}
}

// end ends the list after read returned err. none says why the list is empty.
func (p *paging) end(out *listing, err error, damaged *damage, noun, none string) error {
	if p.rest != "" {
		out.next = p.next
	}
	if err == nil || out.count > 0 { // an unreachable queue is not an empty list
		out.close()
	}
	switch a := out.app; {
	case err != nil:
		return err
	case p.rest != "":
		a.say("showing the first %d, there %s more; -n 0 shows all, and --after %s the next ones", out.count, p.rest, p.next)
	case out.count == 0 && damaged.count == 0:
		a.say("%s", none)
	}
	return out.app.damaged(damaged, noun)
}

// list is one page of a list of jobs.
type list struct {
	filter filterFlags
	paging
}

func (l *list) register(a *app, c *cobra.Command, states ...pawl.State) {
	l.filter.register(a, c, states...)
	l.paging.register(c, "jobs")
}

func (l *list) run(ctx context.Context, a *app, out *jobListing) error {
	out.of = "jobs"
	var damaged damage
	err := a.with(ctx, func(queue admin.Admin) error { return l.fill(ctx, queue, out, &damaged) })
	return l.end(out.listing, err, &damaged, "job", "no jobs match")
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

// fill lists up to the limit.
func (l *list) fill(ctx context.Context, queue admin.Admin, out *jobListing, damaged *damage) error {
	if err := l.filter.known(ctx, queue); err != nil {
		return err
	}
	return l.read(out.listing, func(after string, limit int, shown bool) (items []item, next string, err error) {
		q := admin.Query{Filter: l.filter.filters()[0], After: after, Limit: limit, Detail: admin.IDs}
		if shown {
			q.Detail = out.app.detail()
		}
		page, err := queue.List(ctx, q)
		if err != nil || !shown {
			return make([]item, len(page.Jobs)), page.Next, err
		}
		var progress map[pawl.ID]pawl.Progress
		if out.app.people() {
			if progress, err = progressOf(ctx, queue, leasedOf(page.Jobs)...); err != nil {
				return nil, "", err
			}
		}
		for _, listed := range page.Jobs {
			if listed.Err != nil {
				damaged.add(listed.Err)
				continue
			}
			one := item{id: listed.Job.ID.String()}
			if a := out.app; a.people() {
				one.cells = out.cells(listed.Job)
				if p, ok := progress[listed.Job.ID]; ok {
					one.cells[out.when] += ", " + cell(p.String(), progressWidth)
				}
			} else if a.flags.output != "ids" {
				one.json = admin.JobOf(listed.Job, admin.PayloadNone)
			}
			items = append(items, one)
		}
		return items, page.Next, nil
	})
}

// listing writes the items of a list as they arrive, in the form of -o. The app's buffer keeps a
// write error until its last flush.
type listing struct {
	app   *app
	table table
	count int

	of   string // jobs or runs: -o json puts the list into an object, beside the cursor
	next string // the cursor after the last item; "" at the end
}

// listing begins a list. wide are the additional columns of -o wide.
func (a *app) listing(columns []column, wide ...column) *listing {
	if a.wide() {
		columns = append(columns, wide...)
	}
	return &listing{app: a, table: a.table(columns...)}
}

// item is one entry of a list.
type item struct {
	id    string   // for -o ids
	json  any      // for programs
	cells []string // for people: the cells of all columns, including the wide ones
}

func (l *listing) add(it item) error {
	l.count++
	out := l.app.stdout
	switch l.app.flags.output {
	case "table", "wide":
		l.table.add(it.cells...)
		return nil
	case "ids":
		out.WriteString(it.id + "\n")
		return nil
	}
	text, err := encode(it.json)
	if err != nil {
		return err
	}
	if l.app.flags.output == "json" {
		between := ",\n  "
		if l.count == 1 {
			between = l.head() + "\n  "
		}
		out.WriteString(between)
		out.Write(text)
		return nil
	}
	out.Write(append(text, '\n'))
	return nil
}

// close ends the list, so that the output is complete even if an error ended it early.
func (l *listing) close() {
	switch {
	case l.app.people():
		l.table.flush()
	case l.app.flags.output == "json" && l.count == 0:
		l.app.stdout.WriteString(l.head() + "]" + l.tail() + "\n")
	case l.app.flags.output == "json":
		l.app.stdout.WriteString("\n]" + l.tail() + "\n")
	}
}

// head and tail return what -o json writes around the items.
func (l *listing) head() string {
	if l.of == "" {
		return "["
	}
	return fmt.Sprintf("{%q: [", l.of)
}

func (l *listing) tail() string {
	switch {
	case l.of == "":
		return ""
	case l.next == "":
		return `, "next": null}`
	}
	next, _ := encode(l.next) // encoding a string cannot fail
	return fmt.Sprintf(`, "next": %s}`, next)
}
